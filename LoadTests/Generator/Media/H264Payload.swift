/// One RTP payload of H.264 (RFC 6184 section 5.2), as the generator makes them.
struct H264Payload {
    /// NAL unit types of payloads that hold several units, or part of one.
    static let aggregate: UInt8 = 24
    static let fragment: UInt8 = 28
    private static let startCode: [UInt8] = [0, 0, 0, 1]

    /// Parameter sets: a keyframe follows.
    var isKey = false
    /// Whether it is the first of its frame. The slices of a keyframe follow its parameter sets.
    var startsFrame = false
    /// Its part of the byte stream, start codes included.
    var stream: [UInt8] = []

    /// Reads a payload; nil if it is none that the generator sends.
    init?(_ payload: UnsafeRawBufferPointer) {
        guard payload.count > 2 else { return nil }
        switch payload[0] & 0x1f {
        case Self.aggregate:
            var place = 1
            while place + 2 < payload.count {
                let length = Int(payload[place]) << 8 | Int(payload[place + 1])
                guard length > 0, place + 2 + length <= payload.count else { return nil }
                stream += Self.startCode + payload[(place + 2)..<(place + 2 + length)]
                place += 2 + length
            }
            isKey = true
            startsFrame = true
        case Self.fragment:
            let isFirst = payload[1] & 0x80 != 0
            if isFirst { stream = Self.startCode + [payload[0] & 0xe0 | payload[1] & 0x1f] }
            stream += payload[2...]
            startsFrame = isFirst && payload[1] & 0x1f == 1
        case let type:
            stream = Self.startCode + payload
            startsFrame = type == 1
        }
    }
}
