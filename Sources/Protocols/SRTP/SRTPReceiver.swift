internal import CSRTP
internal import Primitives

/// Decrypts what one peer sends under AEAD_AES_128_GCM (RFC 7714), in place: the receiving half of the packet path.
///
/// Without libsrtp2, like `SRTPSender` and for the same reason: a subscriber's report costs a tenth.
public struct SRTPReceiver: ~Copyable {
    private let media: GCMKey
    private let control: GCMKey
    private var streams = ReceivingStreams()

    /// A receiver with this master key and salt (28 bytes); nil when a library call fails.
    init?(masterKey: [UInt8], kernel: UnsafePointer<csrtp_gcm_kernel>) {
        guard let media = GCMKey(master: masterKey, for: .rtp, seals: false, kernel: kernel),
            let control = GCMKey(master: masterKey, for: .rtcp, seals: false, kernel: kernel)
        else { return nil }
        self.media = media
        self.control = control
    }

    /// Decrypts an RTP packet after checking its tag and that it was not seen before.
    public mutating func unprotectRTP(_ packet: UnsafeMutableRawBufferPointer) -> SRTPResult {
        guard packet.count >= 12 &+ GCMKey.tagLength, let base = packet.baseAddress else { return .dropped(.truncated) }
        let length = packet.count &- GCMKey.tagLength
        let header = RTPHeaderLength.of(base, within: length)
        guard header >= 0 else { return .dropped(.truncated) }
        let sequence = UInt16(bigEndian: base.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
        let ssrc = UInt32(bigEndian: base.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
        let known = streams.find(ssrc)
        guard known != nil || streams.hasRoom else { return .dropped(.tooManyStreams) }
        let index = known?.pointee.packets.index(of: sequence) ?? Int64(sequence)
        if let known, !known.pointee.packets.isFresh(index) { return .dropped(.srtpReplayed) }
        guard
            media.open(
                base + header, length &- header, additional: base, header, ssrc: ssrc,
                index: UInt64(bitPattern: index))
        else { return .dropped(.srtpAuthentication) }
        (known ?? streams.add(ssrc)).pointee.packets.use(index)
        return .clear(length: length)
    }

    /// Decrypts an RTCP compound after checking its tag and that it was not seen before.
    ///
    /// ```text
    /// | first header and SSRC, 8 bytes: clear | reports: encrypted | tag, 16 bytes |E| index |
    /// ```
    /// Compounds that are authenticated only (E = 0) are refused: nothing negotiates them in DTLS-SRTP.
    public mutating func unprotectRTCP(_ packet: UnsafeMutableRawBufferPointer) -> SRTPResult {
        let clear = packet.count &- GCMKey.tagLength &- 4
        guard clear >= 8, let base = packet.baseAddress else { return .dropped(.truncated) }
        let ssrc = UInt32(bigEndian: base.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
        let word = base.loadUnaligned(fromByteOffset: packet.count &- 4, as: UInt32.self)
        let known = streams.find(ssrc)
        guard known != nil || streams.hasRoom else { return .dropped(.tooManyStreams) }
        let index = UInt32(bigEndian: word) & 0x7fff_ffff
        if let known, !known.pointee.isFresh(report: index) { return .dropped(.srtpReplayed) }
        guard UInt32(bigEndian: word) != index else { return .dropped(.srtpError) }
        // Section 9.2: the additional data is the clear header and the last word.
        var additional = (base.loadUnaligned(as: UInt64.self), UInt64(word))
        let isRight = withUnsafeBytes(of: &additional) { bytes in
            control.open(
                base + 8, clear &- 8, additional: bytes.baseAddress!, 12, ssrc: ssrc, index: UInt64(index))
        }
        guard isRight else { return .dropped(.srtpAuthentication) }
        streams.use(report: index, of: known ?? streams.add(ssrc))
        return .clear(length: clear)
    }

    /// Prefetches what the next report's decryption will read.
    @inline(__always) public mutating func prefetchForReports() {
        control.prefetch()
        streams.prefetch()
    }

    mutating func release(ssrc: UInt32) { streams.release(ssrc) }
    mutating func retain(ssrc: UInt32) { streams.retain(ssrc) }
}
