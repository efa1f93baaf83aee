import Primitives

/// Writes a compound RTCP datagram into a slot, packet by packet.
///
/// Lists grow by adding to the packet begun last, so that nothing is collected in arrays first:
/// ```swift
/// var writer = RTCPWriter(slot)
/// writer.beginReceiverReport(ssrc: own)
/// writer.addReportBlock(block)
/// writer.beginNACK(senderSSRC: own, mediaSSRC: media)
/// writer.addMissing(17)
/// let datagram = slot[..<writer.length]
/// ```
/// Each call returns false, and leaves the datagram valid, when the slot or the packet has no more room.
public struct RTCPWriter {
    let buffer: UnsafeMutableRawBufferPointer
    /// Bytes written.
    public internal(set) var length = 0
    /// Where the packet begun last starts.
    var start = 0

    /// A writer into `buffer`, from its first byte.
    public init(_ buffer: UnsafeMutableRawBufferPointer) { self.buffer = buffer }

    /// Begins a sender report (RFC 3550 section 6.4.1); add report blocks after it.
    @discardableResult
    public mutating func beginSenderReport(
        ssrc: UInt32, ntpTimestamp: UInt64, rtpTimestamp: UInt32, packetCount: UInt32, octetCount: UInt32
    ) -> Bool {
        guard begin(RTCPType.senderReport, count: 0, bodyLength: 24) else { return false }
        buffer.write(ssrc, at: start + 4)
        buffer.write(ntpTimestamp, at: start + 8)
        buffer.write(rtpTimestamp, at: start + 16)
        buffer.write(packetCount, at: start + 20)
        buffer.write(octetCount, at: start + 24)
        return true
    }

    /// Begins a receiver report (RFC 3550 section 6.4.2); add report blocks after it.
    @discardableResult
    public mutating func beginReceiverReport(ssrc: UInt32) -> Bool {
        guard begin(RTCPType.receiverReport, count: 0, bodyLength: 4) else { return false }
        buffer.write(ssrc, at: start + 4)
        return true
    }

    /// Adds a block to the sender or receiver report begun last; false when it has 31 or the slot is full.
    @discardableResult
    public mutating func addReportBlock(_ block: ReportBlock) -> Bool {
        let offset = length
        guard length > 0, buffer[start] & 0x1f < 31, extend(by: ReportBlock.length) else { return false }
        buffer[start] += 1
        buffer.write(block.ssrc, at: offset)
        let lost = UInt32(bitPattern: max(-0x80_0000, min(0x7f_ffff, block.cumulativeLost))) & 0xff_ffff
        buffer.write(UInt32(block.fractionLost) << 24 | lost, at: offset + 4)
        buffer.write(block.highestSequence, at: offset + 8)
        buffer.write(block.jitter, at: offset + 12)
        buffer.write(block.lastSenderReport, at: offset + 16)
        buffer.write(block.delaySinceLastSenderReport, at: offset + 20)
        return true
    }

    /// Appends a source description with one CNAME of at most 255 bytes (RFC 3550 section 6.5.1).
    @discardableResult
    public mutating func appendSourceDescription(ssrc: UInt32, cname: [UInt8]) -> Bool {
        // The item, its end mark, and padding to a word.
        let chunk = (4 + 2 + cname.count + 1 + 3) & ~3
        guard cname.count <= 255, begin(RTCPType.sourceDescription, count: 1, bodyLength: chunk) else { return false }
        buffer.write(ssrc, at: start + 4)
        buffer[start + 8] = SourceDescription.Item.cname
        buffer[start + 9] = UInt8(cname.count)
        for (index, byte) in cname.enumerated() { buffer[start + 10 + index] = byte }
        for offset in (start + 10 + cname.count)..<length { buffer[offset] = 0 }
        return true
    }

    /// Appends a BYE of at most 31 sources (RFC 3550 section 6.6).
    @discardableResult
    public mutating func appendGoodbye(_ ssrcs: [UInt32]) -> Bool {
        guard ssrcs.count <= 31,
            begin(RTCPType.goodbye, count: UInt8(truncatingIfNeeded: ssrcs.count), bodyLength: 4 * ssrcs.count)
        else { return false }
        for (index, ssrc) in ssrcs.enumerated() { buffer.write(ssrc, at: start + 4 + 4 * index) }
        return true
    }

    /// Appends the receiver's reference time (RFC 3611 section 4.4).
    @discardableResult
    public mutating func appendReceiverReferenceTime(ssrc: UInt32, ntpTimestamp: UInt64) -> Bool {
        guard begin(RTCPType.extendedReport, count: 0, bodyLength: 16) else { return false }
        buffer.write(ssrc, at: start + 4)
        buffer.write(UInt32(4 << 24 | 2), at: start + 8)
        buffer.write(ntpTimestamp, at: start + 12)
        return true
    }

    /// Appends answers to receivers' reference times (RFC 3611 section 4.5).
    @discardableResult
    public mutating func appendDelaySinceLastReceiverReport(
        ssrc: UInt32, _ items: [DelaySinceLastReceiverReport.Item]
    ) -> Bool {
        guard items.count <= 255, begin(RTCPType.extendedReport, count: 0, bodyLength: 8 + 12 * items.count)
        else { return false }
        buffer.write(ssrc, at: start + 4)
        buffer.write(UInt32(5 << 24) | UInt32(3 * items.count), at: start + 8)
        for (index, item) in items.enumerated() {
            let offset = start + 12 + 12 * index
            buffer.write(item.ssrc, at: offset)
            buffer.write(item.lastReceiverReport, at: offset + 4)
            buffer.write(item.delay, at: offset + 8)
        }
        return true
    }

    /// Writes a common header and makes room for the body; the caller fills it.
    mutating func begin(_ type: UInt8, count: UInt8, bodyLength: Int) -> Bool {
        guard length + 4 + bodyLength <= buffer.count else { return false }
        start = length
        length += 4 + bodyLength
        buffer[start] = 0x80 | count
        buffer[start + 1] = type
        buffer.write(UInt16(truncatingIfNeeded: bodyLength / 4), at: start + 2)
        return true
    }

    /// Makes the packet begun last `count` bytes longer.
    mutating func extend(by count: Int) -> Bool {
        guard length + count <= buffer.count else { return false }
        length += count
        buffer.write(UInt16(truncatingIfNeeded: (length - start) / 4 - 1), at: start + 2)
        return true
    }
}
