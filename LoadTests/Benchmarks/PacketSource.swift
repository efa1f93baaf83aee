import MediaControl

/// Clear RTP packets as a browser's encoder and packetizer make them: frames in packets of about equal size, and Opus.
struct PacketSource {
    let ssrc: UInt32
    private var sequence: UInt16 = 100
    private var timestamp: UInt32 = 50_000
    private var transportSequence: UInt16 = 1
    private var heads: CodecHeads

    init(ssrc: UInt32, codec: Codec = .vp8) {
        self.ssrc = ssrc
        heads = CodecHeads(codec)
    }

    /// One frame of `sizes.count` packets with payloads of these sizes.
    mutating func frame(keyframe: Bool, sizes: [Int]) -> [[UInt8]] {
        timestamp &+= 3_000
        heads.advance()
        return sizes.indices.map { part in
            var payload = heads.head(part, of: sizes.count, isKey: keyframe, size: sizes[part])
            payload += [UInt8](repeating: UInt8(part + 1), count: max(0, sizes[part] - payload.count))
            let descriptor = heads.descriptor(part, of: sizes.count, isKey: keyframe)
            return packet(
                payloadType: 96, marker: part == sizes.count - 1, level: nil, descriptor: descriptor, payload)
        }
    }

    /// One packet of 20 ms of Opus; `level` is that of RFC 6464, 0 (loud) to 127 (silent).
    mutating func audioPacket(size: Int, level: UInt8 = 30) -> [UInt8] {
        timestamp &+= 960
        return packet(payloadType: 111, marker: false, level: level, [0x78] + [UInt8](repeating: 0x5a, count: size - 1))
    }

    private mutating func packet(
        payloadType: UInt8, marker: Bool, level: UInt8?, descriptor: [UInt8] = [], _ payload: [UInt8]
    ) -> [UInt8] {
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
        if !descriptor.isEmpty { elements += [5 << 4 | UInt8(descriptor.count - 1)] + descriptor }
        while elements.count % 4 != 0 { elements.append(0) }
        return [0x90, (marker ? 0x80 : 0) | payloadType, UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence)]
            + bytes(timestamp) + bytes(ssrc) + [0xbe, 0xde, 0, UInt8(elements.count / 4)] + elements + payload
    }
}
