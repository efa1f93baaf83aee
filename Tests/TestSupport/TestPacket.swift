/// One RTP packet to be.
public struct TestPacket {
    public var ssrc: UInt32
    public var payloadType: UInt8
    public var sequence: UInt16
    public var timestamp: UInt32
    public var marker: Bool
    public var payload: [UInt8]
    /// id -> value; in the one-byte form where it can express them all.
    public var extensions: [(UInt8, [UInt8])]
    public var padding: Int

    public init(
        ssrc: UInt32 = 0x1111, payloadType: UInt8 = 96, sequence: UInt16, timestamp: UInt32 = 0, marker: Bool = false,
        payload: [UInt8] = TestPacket.vp8Delta, extensions: [(UInt8, [UInt8])] = [], padding: Int = 0
    ) {
        (self.ssrc, self.payloadType, self.sequence) = (ssrc, payloadType, sequence)
        (self.timestamp, self.marker, self.payload) = (timestamp, marker, payload)
        (self.extensions, self.padding) = (extensions, padding)
    }

    /// A VP8 packet that starts a delta frame: S set, P set in the frame header.
    public static let vp8Delta: [UInt8] = [0x10, 0x01, 0x00, 0x00, 0xaa]
    /// A VP8 packet that continues a frame.
    public static let vp8Middle: [UInt8] = [0x00, 0xaa, 0xbb]
    /// A VP8 packet that starts a keyframe of the given size.
    public static func vp8Keyframe(_ width: UInt16 = 640, _ height: UInt16 = 360) -> [UInt8] {
        [0x10] + VP8Frame.keyframeHeader(width: width, height: height) + [0, 0]
    }

    public var bytes: [UInt8] {
        var out: [UInt8] = [0x80 | (extensions.isEmpty ? 0 : 0x10) | (padding > 0 ? 0x20 : 0)]
        out.append((marker ? 0x80 : 0) | payloadType)
        out += [UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence)]
        for shift in [24, 16, 8, 0] { out.append(UInt8(truncatingIfNeeded: timestamp >> UInt32(shift))) }
        for shift in [24, 16, 8, 0] { out.append(UInt8(truncatingIfNeeded: ssrc >> UInt32(shift))) }
        if !extensions.isEmpty {
            let isOneByte = extensions.allSatisfy { $0 <= 14 && (1...16).contains($1.count) }
            var elements: [UInt8] = []
            for (id, value) in extensions {
                elements += isOneByte ? [id << 4 | UInt8(value.count - 1)] : [id, UInt8(value.count)]
                elements += value
            }
            while elements.count % 4 != 0 { elements.append(0) }
            out += isOneByte ? [0xbe, 0xde] : [0x10, 0x00]
            out += [UInt8((elements.count / 4) >> 8), UInt8(truncatingIfNeeded: elements.count / 4)] + elements
        }
        out += payload
        if padding > 0 { out += [UInt8](repeating: 0, count: padding - 1) + [UInt8(padding)] }
        return out
    }

    /// The same packet as a retransmission.
    public func retransmitted(ssrc: UInt32, payloadType: UInt8, sequence number: UInt16) -> TestPacket {
        var copy = self
        copy.payload = [UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence)] + payload
        copy.ssrc = ssrc
        copy.payloadType = payloadType
        copy.sequence = number
        return copy
    }
}
