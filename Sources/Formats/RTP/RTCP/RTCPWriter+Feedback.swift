import Primitives

extension RTCPWriter {
    /// Begins a generic NACK (RFC 4585 section 6.2.1); add missing numbers after it. Without any it has no meaning.
    @discardableResult
    public mutating func beginNACK(senderSSRC: UInt32, mediaSSRC: UInt32) -> Bool {
        // Includes room for one entry, so that no empty NACK is sent for lack of room.
        guard length + 16 <= buffer.count else { return false }
        return beginFeedback(RTCPType.transportFeedback, 1, senderSSRC, mediaSSRC, bodyLength: 8)
    }

    /// Adds a missing number to the NACK begun last; numbers must ascend. A number up to 16 above that of the last entry shares the entry.
    @discardableResult
    public mutating func addMissing(_ number: UInt16) -> Bool {
        if length - start > 12 {
            let entry = length - 4
            let first = UInt16(buffer[entry]) << 8 | UInt16(buffer[entry + 1])
            let distance = number &- first
            if distance == 0 { return true }
            if distance <= 16 {
                let mask = UInt16(buffer[entry + 2]) << 8 | UInt16(buffer[entry + 3])
                buffer.write(mask | 1 << (distance - 1), at: entry + 2)
                return true
            }
        }
        let entry = length
        guard extend(by: 4) else { return false }
        buffer.write(number, at: entry)
        buffer.write(UInt16(0), at: entry + 2)
        return true
    }

    /// Appends a picture loss indication (RFC 4585 section 6.3.1).
    @discardableResult
    public mutating func appendPictureLoss(senderSSRC: UInt32, mediaSSRC: UInt32) -> Bool {
        beginFeedback(RTCPType.payloadFeedback, 1, senderSSRC, mediaSSRC, bodyLength: 8)
    }

    /// Appends a full intra request for one stream (RFC 5104 section 4.3.1.1: media SSRC is 0, the entry names it).
    @discardableResult
    public mutating func appendFullIntraRequest(
        senderSSRC: UInt32, mediaSSRC: UInt32, sequenceNumber: UInt8
    ) -> Bool {
        guard beginFeedback(RTCPType.payloadFeedback, 4, senderSSRC, 0, bodyLength: 16) else { return false }
        buffer.write(mediaSSRC, at: start + 12)
        buffer.write(UInt32(sequenceNumber) << 24, at: start + 16)
        return true
    }

    /// Appends an estimated maximum bitrate for up to 255 streams (draft-alvestrand-rmcat-remb-03), rounded down.
    @discardableResult
    public mutating func appendMaximumBitrate(senderSSRC: UInt32, bitsPerSecond: UInt64, ssrcs: [UInt32]) -> Bool {
        guard ssrcs.count <= 255,
            beginFeedback(RTCPType.payloadFeedback, 15, senderSSRC, 0, bodyLength: 16 + 4 * ssrcs.count)
        else { return false }
        let exponent = max(0, 64 - 18 - bitsPerSecond.leadingZeroBitCount)
        let mantissa = UInt32(bitsPerSecond >> UInt64(exponent))
        buffer.write(ReceiverEstimatedMaximumBitrate.name, at: start + 12)
        buffer.write(UInt32(ssrcs.count) << 24 | UInt32(exponent) << 18 | mantissa, at: start + 16)
        for (index, ssrc) in ssrcs.enumerated() { buffer.write(ssrc, at: start + 20 + 4 * index) }
        return true
    }

    mutating func beginFeedback(
        _ type: UInt8, _ format: UInt8, _ senderSSRC: UInt32, _ mediaSSRC: UInt32, bodyLength: Int
    ) -> Bool {
        guard begin(type, count: format, bodyLength: bodyLength) else { return false }
        buffer.write(senderSSRC, at: start + 4)
        buffer.write(mediaSSRC, at: start + 8)
        return true
    }
}
