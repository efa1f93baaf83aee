public import Primitives

/// Changes to the fixed header of a packet in a slot. Each writes in place and moves nothing.
///
/// The slot must hold at least the fixed header.
public enum RTPPatch {
    /// Writes a fixed header without CSRC, extension or padding; the payload starts at `RTPHeader.fixedLength`
    /// unless an extension is written there (the code that writes it sets the X bit).
    @inlinable @inline(__always) public static func writeFixedHeader(
        to packet: UnsafeMutableRawBufferPointer, marker: Bool, payloadType: UInt8, sequenceNumber: UInt16,
        timestamp: UInt32, ssrc: UInt32
    ) {
        packet.write(UInt8(0x80), at: 0)
        packet.write((marker ? 0x80 : 0) | (payloadType & 0x7f), at: 1)
        packet.write(sequenceNumber, at: 2)
        packet.write(timestamp, at: 4)
        packet.write(ssrc, at: 8)
    }

    /// Changes the packet to another stream; the marker and the rest stay.
    static func readdress(
        _ packet: UnsafeMutableRawBufferPointer, payloadType: UInt8, sequenceNumber: UInt16, ssrc: UInt32
    ) {
        packet[1] = (packet[1] & 0x80) | (payloadType & 0x7f)
        packet.write(sequenceNumber, at: 2)
        packet.write(ssrc, at: 8)
    }

    /// Pads a packet of `length` bytes that has no padding yet by 1 to 255 bytes (RFC 3550 section 5.1).
    /// Returns the new length; nil when there is no room or the count is out of range.
    @inlinable public static func pad(
        _ packet: UnsafeMutableRawBufferPointer, length: Int, by count: Int
    ) -> Int? {
        guard count > 0, count <= 255, length + count <= packet.count, packet[0] & 0x20 == 0 else { return nil }
        for offset in length..<(length + count - 1) { packet[offset] = 0 }
        packet[length + count - 1] = UInt8(count)
        packet[0] |= 0x20
        return length + count
    }
}
