internal import CSRTP
internal import Primitives

/// Encrypts the RTP packets of one receiver under AEAD_AES_128_GCM (RFC 7714), in place: the sending half of the packet path.
///
/// libsrtp2 does the rest (reception, SRTCP, the other profiles). It could do this too, at three times the cost: a cipher of four
/// calls, a list of streams to walk, and ten separate pieces of memory a receiver, which are cold each time its turn comes.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// | header with CSRCs and extensions: additional data, stays clear|
/// | payload with padding: encrypted                               |
/// | authentication tag, 16 bytes                                  |
///
/// IV = salt XOR  | 00 00 |     SSRC     |      ROC     |  SEQ  |       (section 8.1)
/// ```
/// No packet index is used twice under one key: that would give the authentication key away (section 8.4).
public struct SRTPSender: ~Copyable {
    /// Bytes that protection adds.
    public static let tagLength = 16
    /// A packet older than this behind its stream's newest is refused: as `SRTPSession.replayWindow`.
    static let window = 1_024

    private let kernel: UnsafePointer<csrtp_gcm_kernel>
    private let key: UnsafeMutableRawPointer
    /// The session salt as it lies in the IV: two bytes, the words under SSRC and ROC, and the half word under SEQ.
    private let salt: (UInt16, UInt32, UInt32, UInt16)
    private var streams = SendingStreams()

    /// A sender with this master key and salt (28 bytes); nil when a library call fails.
    init?(masterKey: [UInt8], kernel: UnsafePointer<csrtp_gcm_kernel>) {
        var sessionKey = [UInt8](repeating: 0, count: 16)
        var sessionSalt = [UInt8](repeating: 0, count: 12)
        // The master salt of 12 bytes is filled up with zeros to AES-CM's 14 (RFC 7714 section 11).
        let master = Array(masterKey[..<16]), masterSalt = Array(masterKey[16...]) + [0, 0]
        let key = UnsafeMutableRawPointer.allocate(byteCount: max(64, kernel.pointee.state_size), alignment: 64)
        guard csrtp_derive(master, masterSalt, 0, &sessionKey, 16) == 1,
            csrtp_derive(master, masterSalt, 2, &sessionSalt, 12) == 1, kernel.pointee.key(key, sessionKey) == 1
        else {
            key.deallocate()
            return nil
        }
        self.kernel = kernel
        self.key = key
        salt = sessionSalt.withUnsafeBytes { bytes in
            (
                bytes.loadUnaligned(as: UInt16.self), bytes.loadUnaligned(fromByteOffset: 2, as: UInt32.self),
                bytes.loadUnaligned(fromByteOffset: 6, as: UInt32.self),
                bytes.loadUnaligned(fromByteOffset: 10, as: UInt16.self)
            )
        }
        for index in sessionKey.indices { sessionKey[index] = 0 }
    }

    deinit {
        kernel.pointee.wipe(key)
        key.deallocate()
    }

    /// Encrypts the packet of `length` bytes at `packet`, which has room for the tag; the new length, or -1 when the packet is
    /// malformed or its index was used before.
    public mutating func protect(_ packet: UnsafeMutableRawPointer, length: Int) -> Int {
        guard length >= 12 else { return -1 }
        let first = packet.load(as: UInt8.self)
        var header = 12 &+ 4 &* Int(first & 0x0f)
        if first & 0x10 != 0 {
            guard header &+ 4 <= length else { return -1 }
            header &+=
                4 &+ 4 &* Int(UInt16(bigEndian: packet.loadUnaligned(fromByteOffset: header &+ 2, as: UInt16.self)))
        }
        guard header <= length else { return -1 }
        let sequence = packet.loadUnaligned(fromByteOffset: 2, as: UInt16.self)
        let ssrc = packet.loadUnaligned(fromByteOffset: 8, as: UInt32.self)
        let index = streams.stream(UInt32(bigEndian: ssrc)).pointee.take(UInt16(bigEndian: sequence))
        guard index >= 0 else { return -1 }
        let rollOver = UInt32(truncatingIfNeeded: index >> 16).bigEndian
        let isSealed = withUnsafeTemporaryIV { iv in
            iv.storeBytes(of: salt.0, as: UInt16.self)
            iv.storeBytes(of: salt.1 ^ ssrc, toByteOffset: 2, as: UInt32.self)
            iv.storeBytes(of: salt.2 ^ rollOver, toByteOffset: 6, as: UInt32.self)
            iv.storeBytes(of: salt.3 ^ sequence, toByteOffset: 10, as: UInt16.self)
            let bytes = packet.assumingMemoryBound(to: UInt8.self)
            return kernel.pointee.seal(
                key, iv.assumingMemoryBound(to: UInt8.self), bytes, header, bytes + header, length &- header,
                bytes + length)
        }
        return isSealed == 1 ? length &+ Self.tagLength : -1
    }

    @inline(__always)
    private func withUnsafeTemporaryIV(_ body: (UnsafeMutableRawPointer) -> Int32) -> Int32 {
        var iv: (UInt64, UInt64) = (0, 0)
        return withUnsafeMutableBytes(of: &iv) { body($0.baseAddress!) }
    }

    /// Asks for what `protect` will read, so that it is near when its turn comes.
    @inline(__always) public func prefetch() {
        Prefetch.lines(key, kernel.pointee.state_size)
        streams.prefetch()
    }

    /// Forgets a stream. Its SSRC must never be used again with this key.
    mutating func release(ssrc: UInt32) { streams.remove(ssrc) }
}
