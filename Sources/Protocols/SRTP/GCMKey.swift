internal import CSRTP
internal import Primitives

/// One direction's session key and salt under AEAD_AES_128_GCM, for RTP or for RTCP (RFC 7714 sections 8.1 and 9.1).
///
/// ```text
///  0  0  0  0  0  0  0  0  0  0  1  1
///  0  1  2  3  4  5  6  7  8  9  0  1
/// +--+--+--+--+--+--+--+--+--+--+--+--+
/// |00|00|    SSRC   |  packet index   |--+     RTP: roll-over counter and sequence number; RTCP: 31 bits
/// +--+--+--+--+--+--+--+--+--+--+--+--+  |
/// |         session salt              |->(+)--> IV
/// +--+--+--+--+--+--+--+--+--+--+--+--+
/// ```
struct GCMKey: ~Copyable {
    /// Bytes of the tag.
    static let tagLength = 16

    /// What a key is for, as the label that it is derived under (RFC 3711 section 4.3.2).
    enum Purpose: UInt8 {
        case rtp = 0, rtcp = 3

        var salt: UInt8 { rawValue + 2 }
    }

    private let kernel: UnsafePointer<csrtp_gcm_kernel>
    private let state: UnsafeMutableRawPointer
    /// The salt's halves of 48 bits, as numbers.
    private let saltHigh: UInt64, saltLow: UInt64

    /// The key derived from `master` (key and salt); nil when a library call fails. It either encrypts or decrypts.
    init?(master: [UInt8], for purpose: Purpose, seals: Bool, kernel: UnsafePointer<csrtp_gcm_kernel>) {
        var key = [UInt8](repeating: 0, count: 16), salt = [UInt8](repeating: 0, count: 12)
        // The master salt of 12 bytes is padded with zeros to AES-CM's 14 (RFC 7714 section 11).
        let masterKey = Array(master[..<16]), masterSalt = Array(master[16...]) + [0, 0]
        let state = UnsafeMutableRawPointer.allocate(byteCount: max(64, kernel.pointee.state_size), alignment: 64)
        guard csrtp_derive(masterKey, masterSalt, purpose.rawValue, &key, 16) == 1,
            csrtp_derive(masterKey, masterSalt, purpose.salt, &salt, 12) == 1,
            kernel.pointee.key(state, key, seals ? 1 : 0) == 1
        else {
            state.deallocate()
            return nil
        }
        self.kernel = kernel
        self.state = state
        saltHigh = salt[..<6].reduce(0) { $0 << 8 | UInt64($1) }
        saltLow = salt[6...].reduce(0) { $0 << 8 | UInt64($1) }
        for index in key.indices { key[index] = 0 }
    }

    deinit {
        kernel.pointee.wipe(state)
        state.deallocate()
    }

    /// Encrypts `length` bytes at `text` in place; the tag follows them.
    @inline(__always)
    func seal(
        _ text: UnsafeMutableRawPointer, _ length: Int, additional: UnsafeRawPointer, _ additionalLength: Int,
        ssrc: UInt32, index: UInt64
    ) -> Bool {
        withIV(ssrc, index) { iv in
            let text = text.assumingMemoryBound(to: UInt8.self)
            let header = additional.assumingMemoryBound(to: UInt8.self)
            return kernel.pointee.seal(state, iv, header, additionalLength, text, length, text + length) == 1
        }
    }

    /// Decrypts `length` bytes at `text` in place, followed by their tag; false when it is wrong.
    @inline(__always)
    func open(
        _ text: UnsafeMutableRawPointer, _ length: Int, additional: UnsafeRawPointer, _ additionalLength: Int,
        ssrc: UInt32, index: UInt64
    ) -> Bool {
        withIV(ssrc, index) { iv in
            let text = text.assumingMemoryBound(to: UInt8.self)
            let header = additional.assumingMemoryBound(to: UInt8.self)
            return kernel.pointee.open(state, iv, header, additionalLength, text, length, text + length) == 1
        }
    }

    @inline(__always)
    private func withIV(_ ssrc: UInt32, _ index: UInt64, _ body: (UnsafePointer<UInt8>) -> Bool) -> Bool {
        let high = saltHigh ^ UInt64(ssrc), low = saltLow ^ index
        var iv = ((high << 16 | low >> 32).bigEndian, (low << 32).bigEndian)
        return withUnsafeBytes(of: &iv) { body($0.baseAddress!.assumingMemoryBound(to: UInt8.self)) }
    }

    /// Prefetches the memory that `seal` and `open` read.
    @inline(__always) func prefetch() { Prefetch.lines(state, kernel.pointee.state_size) }
}
