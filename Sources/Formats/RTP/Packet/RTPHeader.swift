import Primitives

/// The header of one RTP packet (RFC 3550 section 5.1), read once; everything is an offset into the packet.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |V=2|P|X|  CC   |M|     PT      |       sequence number         |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                           timestamp                           |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |           synchronization source (SSRC) identifier            |
/// +=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+
/// |            contributing source (CSRC) identifiers             |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
public struct RTPHeader: Sendable, Hashable {
    /// Bytes before the CSRC list.
    public static let fixedLength = 12

    /// The payload format's marker; for video the last packet of a frame.
    public var marker: Bool
    /// Payload type, 0 to 127.
    public var payloadType: UInt8
    /// Sequence number as sent; wraps.
    public var sequenceNumber: UInt16
    /// Media timestamp as sent; wraps.
    public var timestamp: UInt32
    /// Synchronisation source.
    public var ssrc: UInt32
    /// The "defined by profile" word of the extension, 0 when there is none.
    public var extensionProfile: UInt16
    /// Where the first extension element starts, after the profile and length words.
    public var extensionOffset: Int
    /// Bytes of extension elements with their padding; 0 when there are none.
    public var extensionLength: Int
    /// Where the payload starts.
    public var payloadOffset: Int
    /// Bytes of payload without padding; 0 for a padding-only packet (a bandwidth probe).
    public var payloadLength: Int
    /// Bytes of padding after the payload, including the count byte.
    public var paddingLength: Int

    /// Whether elements have two-byte headers (RFC 8285 section 4.3: 0x100 and four bits for the application).
    @inlinable public var isTwoByteExtension: Bool { extensionProfile & 0xfff0 == 0x1000 }
    /// Whether elements have one-byte headers (RFC 8285 section 4.2).
    @inlinable public var isOneByteExtension: Bool { extensionProfile == 0xbede }
    /// Length of the whole packet.
    @inlinable public var packetLength: Int { payloadOffset + payloadLength + paddingLength }

    /// Reads the header of `packet`; nil when the packet cannot be RTP (RFC 3550 appendix A.1).
    public init?(_ packet: RawSpan) {
        let count = packet.byteCount
        guard count >= Self.fixedLength else { return nil }
        let first = packet.readUInt8(0)
        guard first & 0xc0 == 0x80 else { return nil }
        let second = packet.readUInt8(1)
        marker = second & 0x80 != 0
        payloadType = second & 0x7f
        sequenceNumber = packet.readUInt16(2)
        timestamp = packet.readUInt32(4)
        ssrc = packet.readUInt32(8)
        // Contributing sources are skipped: an SFU mixes nothing.
        var offset = Self.fixedLength + 4 * Int(first & 0x0f)
        extensionProfile = 0
        extensionOffset = offset
        extensionLength = 0
        if first & 0x10 != 0 {
            guard offset + 4 <= count else { return nil }
            extensionProfile = packet.readUInt16(offset)
            extensionLength = 4 * Int(packet.readUInt16(offset + 2))
            extensionOffset = offset + 4
            offset = extensionOffset + extensionLength
        }
        guard offset <= count else { return nil }
        payloadOffset = offset
        paddingLength = 0
        if first & 0x20 != 0 {
            guard offset < count else { return nil }
            paddingLength = Int(packet.readUInt8(count - 1))
            guard paddingLength > 0, paddingLength <= count - offset else { return nil }
        }
        payloadLength = count - offset - paddingLength
    }
}
