extension PacketLoop {
    /// The bytes before the trace: a start code, and a NAL unit of a type that no decoder knows (ITU-T H.264 table 7-1: 0, unspecified).
    private static let traceHead: [UInt8] = [0, 0, 1, 0]

    /// Cuts H.264 frames into payloads as libwebrtc does: parameter sets together (STAP-A), small NAL units by themselves, large ones in
    /// fragments of nearly equal size (FU-A; RFC 6184 sections 5.6 to 5.8).
    ///
    /// The trace follows the last NAL unit after a start code, inside the same payload. RFC 6184 does not intend this, but a receiver that turns
    /// what it gets into a byte stream, as all of libwebrtc's decoders need it, finds one more NAL unit and skips it.
    convenience init(h264 loop: EncodedLoop) {
        var builder = Builder()
        for frame in loop.frames {
            let units = Self.units(of: frame.bytes)
            let sets = units.filter { Self.isParameterSet($0) }
            if !sets.isEmpty {
                let body = sets.flatMap { [UInt8($0.count >> 8), UInt8($0.count & 0xff)] + $0 }
                builder.add([0x60 | H264Payload.aggregate] + body, descriptor: 0, endsFrame: false)
            }
            let slices = units.filter { !Self.isParameterSet($0) }
            for (index, unit) in slices.enumerated() {
                Self.add(unit, isLast: index == slices.count - 1, to: &builder)
            }
        }
        self.init(.h264, builder, loop)
    }

    private static func isParameterSet(_ unit: [UInt8]) -> Bool { unit[0] & 0x1f == 7 || unit[0] & 0x1f == 8 }

    private static func add(_ unit: [UInt8], isLast: Bool, to builder: inout Builder) {
        let tail = isLast ? traceHead + [UInt8](repeating: 0, count: Trace.length) : []
        guard unit.count + tail.count > maximumPayload else {
            return builder.add(unit + tail, descriptor: 0, endsFrame: isLast)
        }
        let body = unit[1...] + tail
        let room = maximumPayload - 2
        let count = (body.count + room - 1) / room
        var cuts = (0...count).map { body.startIndex + body.count * $0 / count }
        // Cut so that the trace is never split.
        cuts[count - 1] = min(cuts[count - 1], body.endIndex - tail.count)
        for index in 0..<count {
            let edge: UInt8 = (index == 0 ? 0x80 : 0) | (index == count - 1 ? 0x40 : 0)
            let head = [unit[0] & 0xe0 | H264Payload.fragment, edge | unit[0] & 0x1f]
            builder.add(
                head + body[cuts[index]..<cuts[index + 1]], descriptor: 0, endsFrame: isLast && index == count - 1)
        }
    }

    /// The NAL units of a byte stream, without start codes.
    static func units(of stream: [UInt8]) -> [[UInt8]] {
        var starts: [(code: Int, unit: Int)] = []
        var place = 0
        while place + 2 < stream.count {
            if stream[place] == 0, stream[place + 1] == 0, stream[place + 2] == 1 {
                let isLong = place > 0 && stream[place - 1] == 0
                starts.append((isLong ? place - 1 : place, place + 3))
                place += 3
            } else {
                place += 1
            }
        }
        return starts.indices.map { index in
            Array(stream[starts[index].unit..<(index + 1 < starts.count ? starts[index + 1].code : stream.count)])
        }
    }
}
