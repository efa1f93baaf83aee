import COpenSSL
import Glibc

/// A unit in which the speed of the machine cancels out: the processor time of a fixed piece of work.
///
/// AES-128-GCM over 1,050 bytes with 12 bytes of additional data (the cost of an SRTP packet of a video through OpenSSL), one
/// loopback send and one receive: about 4 us on a quiet machine. These machines change their speed by a factor of two within an
/// hour, so every run samples it throughout and also gives its figures in reference packets.
///
/// Not Sendable: one thread samples.
public final class ReferencePacket {
    /// Bytes that are encrypted and sent.
    public static let length = 1_050
    /// Packets of one sample: long enough for the clock, short enough (half a millisecond) not to disturb others.
    public static let packetsPerSample = 128

    private let context: OpaquePointer
    private let sender: Int32
    private let receiver: Int32
    private var destination: sockaddr_in
    private let buffer: UnsafeMutableRawBufferPointer
    private var counter: UInt64 = 0
    /// Nanoseconds per packet of every sample so far.
    public private(set) var samples: [Double] = []

    /// nil if the machine has no loopback UDP or no AES-GCM.
    public init?() {
        guard let context = EVP_CIPHER_CTX_new() else { return nil }
        let key = [UInt8](repeating: 7, count: 16)
        sender = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        receiver = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        destination = sockaddr_in()
        destination.sin_family = sa_family_t(AF_INET)
        destination.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        self.context = context
        buffer = .allocate(byteCount: Self.length + 16, alignment: 64)
        buffer.initializeMemory(as: UInt8.self, repeating: 0x5a)
        guard EVP_CipherInit_ex(context, EVP_aes_128_gcm(), nil, key, nil, 1) == 1, sender >= 0, receiver >= 0,
            bindReceiver()
        else { return nil }
    }

    deinit {
        close(sender)
        close(receiver)
        EVP_CIPHER_CTX_free(context)
        buffer.deallocate()
    }

    /// Nanoseconds of one reference packet: the median of all samples.
    public var nanoseconds: Double { samples.median }

    /// Takes one sample; returns its nanoseconds per packet.
    @discardableResult public func sample() -> Double {
        let start = ProcessorTime.thread
        for _ in 0..<Self.packetsPerSample { carryOne() }
        let result = Double(ProcessorTime.thread - start) / Double(Self.packetsPerSample)
        samples.append(result)
        return result
    }

    private func carryOne() {
        counter += 1
        var nonce = (counter, UInt32(0))
        var written: Int32 = 0
        withUnsafeBytes(of: &nonce) { iv in
            _ = EVP_EncryptInit_ex(context, nil, nil, nil, iv.bindMemory(to: UInt8.self).baseAddress)
        }
        let bytes = buffer.bindMemory(to: UInt8.self).baseAddress!
        EVP_EncryptUpdate(context, nil, &written, bytes, 12)
        EVP_EncryptUpdate(context, bytes + 12, &written, bytes + 12, Int32(Self.length - 12))
        EVP_EncryptFinal_ex(context, bytes + Self.length, &written)
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, bytes + Self.length)
        _ = withUnsafePointer(to: &destination) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(sender, buffer.baseAddress, buffer.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        _ = recv(receiver, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
    }

    private func bindReceiver() -> Bool {
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafeMutablePointer(to: &destination) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(receiver, $0, length) == 0 && getsockname(receiver, $0, &length) == 0
            }
        }
    }
}
