public import Primitives

/// Retransmission payload format (RFC 4588 section 4): the original sequence number precedes the original payload.
///
/// ```text
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                         RTP header of the RTX stream          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |            OSN                |   original RTP packet payload |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
public enum RTX {
    /// By how many bytes a wrapped packet is longer than the original.
    public static let overhead = 2

    /// The sequence number of the packet inside; nil for padding-only packets, which carry none.
    @inlinable public static func originalSequenceNumber(_ header: RTPHeader, in packet: RawSpan) -> UInt16? {
        guard header.payloadLength >= overhead else { return nil }
        return packet.readUInt16(header.payloadOffset)
    }

    /// Turns the RTX packet in `packet` into the original in place and returns its length; nil when it contains none.
    ///
    /// Extensions are kept as they came; those of the retransmission (abs-send-time, transport sequence) describe
    /// the retransmission. Padding is removed.
    public static func unwrap(
        _ packet: UnsafeMutableRawBufferPointer, header: RTPHeader, ssrc: UInt32, payloadType: UInt8
    ) -> Int? {
        guard header.payloadLength >= overhead, header.packetLength <= packet.count else { return nil }
        let offset = header.payloadOffset
        let original = UInt16(packet[offset]) << 8 | UInt16(packet[offset + 1])
        let length = header.payloadLength - overhead
        packet.baseAddress!.advanced(by: offset).copyMemory(
            from: packet.baseAddress!.advanced(by: offset + overhead), byteCount: length)
        packet[0] &= ~0x20
        RTPPatch.readdress(packet, payloadType: payloadType, sequenceNumber: original, ssrc: ssrc)
        return offset + length
    }

    /// Turns the packet of `length` bytes in `packet` into a retransmission of itself in place and returns the new
    /// length; nil when the slot has no room for two more bytes.
    public static func wrap(
        _ packet: UnsafeMutableRawBufferPointer, length: Int, payloadOffset: Int, ssrc: UInt32, payloadType: UInt8,
        sequenceNumber: UInt16
    ) -> Int? {
        guard payloadOffset >= RTPHeader.fixedLength, payloadOffset <= length, length + overhead <= packet.count
        else { return nil }
        let base = packet.baseAddress!
        base.advanced(by: payloadOffset + overhead).copyMemory(
            from: base.advanced(by: payloadOffset), byteCount: length - payloadOffset)
        packet[payloadOffset] = packet[2]
        packet[payloadOffset + 1] = packet[3]
        RTPPatch.readdress(packet, payloadType: payloadType, sequenceNumber: sequenceNumber, ssrc: ssrc)
        return length + overhead
    }
}
