/// Clear RTP packets as a browser's encoder and packetizer make them: VP8 pictures in packets of about equal size, and Opus.
struct PacketSource {
    let ssrc: UInt32
    private var sequence: UInt16 = 100
    private var timestamp: UInt32 = 50_000
    private var picture: UInt16 = 300
    private var temporalZero: UInt8 = 10
    private var transportSequence: UInt16 = 1

    init(ssrc: UInt32) { self.ssrc = ssrc }

    /// One picture of `sizes.count` packets with payloads of these sizes (RFC 7741).
    mutating func frame(keyframe: Bool, sizes: [Int]) -> [[UInt8]] {
        timestamp &+= 3_000
        picture = (picture + 1) & 0x7fff
        temporalZero &+= 1
        return sizes.indices.map { part in
            var payload: [UInt8] = [0x80 | (part == 0 ? 0x10 : 0), 0xf0]
            payload += [0x80 | UInt8(picture >> 8), UInt8(truncatingIfNeeded: picture), temporalZero, 1]
            if part == 0 {
                // A frame header of 640x360, of which a key frame has all.
                payload += keyframe ? [0, 0, 0, 0x9d, 0x01, 0x2a, 0x80, 0x02, 0x68, 0x01] : [1, 0, 0]
            }
            payload += [UInt8](repeating: UInt8(part + 1), count: max(0, sizes[part] - payload.count))
            return packet(payloadType: 96, marker: part == sizes.count - 1, level: nil, payload)
        }
    }

    /// One packet of 20 ms of Opus.
    mutating func sound(size: Int) -> [UInt8] {
        timestamp &+= 960
        return packet(payloadType: 111, marker: false, level: 30, [0x78] + [UInt8](repeating: 0x5a, count: size - 1))
    }

    private mutating func packet(payloadType: UInt8, marker: Bool, level: UInt8?, _ payload: [UInt8]) -> [UInt8] {
        defer {
            sequence &+= 1
            transportSequence &+= 1
        }
        func bytes(_ value: UInt32) -> [UInt8] {
            (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * UInt32($0))) }
        }
        var elements: [UInt8] = [
            3 << 4 | 1, UInt8(transportSequence >> 8), UInt8(truncatingIfNeeded: transportSequence),
        ]
        if let level { elements += [1 << 4, 0x80 | level] }
        while elements.count % 4 != 0 { elements.append(0) }
        return [0x90, (marker ? 0x80 : 0) | payloadType, UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence)]
            + bytes(timestamp) + bytes(ssrc) + [0xbe, 0xde, 0, UInt8(elements.count / 4)] + elements + payload
    }
}
