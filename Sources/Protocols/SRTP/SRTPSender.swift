internal import CSRTP
internal import Primitives

/// Encrypts what is sent to one receiver under AEAD_AES_128_GCM (RFC 7714), in place: the sending half of the packet path.
///
/// libsrtp2 serves the other profiles. It could serve this one, too, at three times the cost: a cipher of four calls, a linked list of streams, and
/// ten separate allocations per receiver, which are not in the cache when its turn comes.
///
/// ```text
/// | header with CSRCs and extensions: additional data, stays clear|
/// | payload with padding: encrypted                               |
/// | authentication tag, 16 bytes                                  |
/// ```
/// No two different packets leave with one index under one key: that would reveal the authentication key (section 8.4). The same packet may leave again, byte
/// for byte, which its tag proves: if RTX was not negotiated, a receiver requests packets of the media stream itself again.
public struct SRTPSender: ~Copyable {
    /// Bytes that protection adds to RTP.
    public static let tagLength = GCMKey.tagLength

    private let media: GCMKey
    private var streams = SendingStreams()
    private let control: GCMKey
    /// The index of the last report. One counter serves all SSRCs, so their nonces differ even more.
    private var reportIndex: UInt32 = 0

    /// A sender with this master key and salt (28 bytes); nil when a library call fails.
    init?(masterKey: [UInt8], kernel: UnsafePointer<csrtp_gcm_kernel>) {
        guard let media = GCMKey(master: masterKey, for: .rtp, seals: true, kernel: kernel),
            let control = GCMKey(master: masterKey, for: .rtcp, seals: true, kernel: kernel)
        else { return nil }
        self.media = media
        self.control = control
    }

    /// Encrypts the packet of `length` bytes at `packet`, which has room for the tag; the new length, or -1 when the packet is
    /// malformed or its index was used before by another one.
    public mutating func protect(_ packet: UnsafeMutableRawPointer, length: Int) -> Int {
        let header = RTPHeaderLength.of(packet, within: length)
        guard header >= 0 else { return -1 }
        let sequence = UInt16(bigEndian: packet.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
        let ssrc = UInt32(bigEndian: packet.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
        let stream = streams.stream(ssrc)
        let (index, isFresh) = stream.pointee.index(sequence)
        guard isFresh || stream.pointee.mayRepeat(index),
            media.seal(
                packet + header, length &- header, additional: packet, header, ssrc: ssrc,
                index: UInt64(bitPattern: index)),
            stream.pointee.admits(packet + length, of: index, isFresh: isFresh)
        else { return -1 }
        return length &+ Self.tagLength
    }

    /// Encrypts the RTCP compound of `length` bytes at `packet`, which has room for the tag and four bytes; the new length, or -1 when it is
    /// malformed or the key is used up (2^31 reports, RFC 3711 section 9.2).
    mutating func protectRTCP(_ packet: UnsafeMutableRawPointer, length: Int) -> Int {
        guard length >= 8, reportIndex < 0x7fff_ffff else { return -1 }
        reportIndex &+= 1
        let word = (reportIndex | 0x8000_0000).bigEndian
        let ssrc = UInt32(bigEndian: packet.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
        // RFC 7714 section 9.2: the additional data is the unencrypted header and the word after the tag.
        var additional = (packet.loadUnaligned(as: UInt64.self), UInt64(word))
        let isSealed = withUnsafeBytes(of: &additional) { bytes in
            control.seal(
                packet + 8, length &- 8, additional: bytes.baseAddress!, 12, ssrc: ssrc, index: UInt64(reportIndex))
        }
        guard isSealed else { return -1 }
        packet.storeBytes(of: word, toByteOffset: length &+ Self.tagLength, as: UInt32.self)
        return length &+ Self.tagLength &+ 4
    }

    /// Prefetches what `protect` will read.
    @inline(__always) public mutating func prefetch() {
        media.prefetch()
        streams.prefetch()
    }

    /// Removes a stream. Its SSRC must never be used again with this key.
    mutating func release(ssrc: UInt32) { streams.remove(ssrc) }
}

/// How long an RTP header is with its contributing sources and extensions (RFC 3550 sections 5.1 and 5.3.1).
enum RTPHeaderLength {
    /// -1 where it does not fit into `length` bytes.
    @inline(__always) static func of(_ packet: UnsafeRawPointer, within length: Int) -> Int {
        guard length >= 12 else { return -1 }
        let first = packet.load(as: UInt8.self)
        var header = 12 &+ 4 &* Int(first & 0x0f)
        if first & 0x10 != 0 {
            guard header &+ 4 <= length else { return -1 }
            header &+=
                4 &+ 4 &* Int(UInt16(bigEndian: packet.loadUnaligned(fromByteOffset: header &+ 2, as: UInt16.self)))
        }
        return header <= length ? header : -1
    }
}
