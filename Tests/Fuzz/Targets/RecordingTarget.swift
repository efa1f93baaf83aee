import MP4
import MediaControl
import Movies
import Primitives
import Recording

/// Packets for a recorder, and files of an earlier life: decode times rise strictly, no write lies outside of what was written before it, and a scan
/// of anything finds no more than there is.
@Sendable func fuzzRecording(_ bytes: UnsafeRawBufferPointer) {
    var input = FuzzInput(bytes)
    var recorder = TrackRecorder()
    var now = MonotonicTime.zero
    var file: [UInt8] = []
    var steps: [RecordingStep] = []
    var sequence: UInt16 = 0
    while !input.isEmpty {
        let control = input.byte()
        now = now + .milliseconds(Int64(input.byte()))
        switch control & 0x0f {
        case 0...11:
            // Mostly in order, in a codec that changes seldom.
            sequence = control & 0x40 != 0 ? sequence &+ UInt16(input.byte()) : sequence &+ 1
            let codec = Codec.allCases[Int(control & 0x07) % Codec.allCases.count]
            let type = RecordedStreamFormat.payloadType(of: codec) | (control & 0x80)
            let stamp = now.milliseconds &* 90
            let header: [UInt8] = [
                0x80, type, UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence),
                UInt8(truncatingIfNeeded: stamp >> 24), UInt8(truncatingIfNeeded: stamp >> 16),
                UInt8(truncatingIfNeeded: stamp >> 8), UInt8(truncatingIfNeeded: stamp), 0, 0, 0, 1,
            ]
            let packet = header + input.record()
            recorder.receive(packet.span.bytes, arrival: now, into: &steps)
        case 12: recorder.receive(input.record().bytes, arrival: now, into: &steps)
        case 13:
            recorder.receive(
                ClockAnchor(timestamp: UInt32(input.byte()) << 24, ntp: UInt64(input.byte()) << 40, arrival: now),
                into: &steps)
        case 14: recorder.noteGap(.overload, at: now, into: &steps)
        default: recorder.advance(to: now, into: &steps)
        }
        carryOut(&steps, &file)
    }
    recorder.finish(at: now, into: &steps)
    carryOut(&steps, &file)
    scan(Array(bytes))
    if !file.isEmpty { scan(file) }
}

private func carryOut(_ steps: inout [RecordingStep], _ file: inout [UInt8]) {
    for step in steps {
        switch step {
        case .open: file = []
        case .write(let write):
            let end = Int(write.offset) + write.bytes.count
            precondition(write.offset <= file.count + (1 << 20), "a fragment's data follows its header")
            if file.count < end { file += [UInt8](repeating: 0, count: end - file.count) }
            file.replaceSubrange(Int(write.offset)..<end, with: write.bytes)
        case .close, .log, .requestKeyframe, .fail: break
        }
    }
    steps = []
}

private func scan(_ file: [UInt8]) {
    var scan = MovieScan(fileLength: Int64(file.count))
    var reads = 0
    while scan.outcome == nil {
        reads += 1
        precondition(reads <= file.count + 2, "a scan ends")
        let start = min(max(0, Int(scan.wanted.offset)), file.count)
        scan.receive(Array(file[start..<min(file.count, start + scan.wanted.length)]).span.bytes)
    }
    guard case .fragments(let table) = scan.outcome else { return }
    precondition(table.end <= file.count, "no fragment lies behind the file's end")
    _ = table.finish()
}

extension Seeds {
    @Sendable static func recordings() throws -> [[UInt8]] {
        var seeds: [[UInt8]] = []
        for payload in try payloads().prefix(40) {
            // A payload's codec and marker are its first byte, as those of packets are here.
            let control = payload[0] & 0x80 | UInt8(Self.codecs[Int(payload[0] & 7)])
            seeds.append([control, 33] + FuzzInput.record(payload.dropFirst()))
        }
        var writer = FragmentWriter()
        let head = writer.begin(TrackFormat(entry: .opus)).bytes
        let parts = writer.append(
            [Sample(duration: 960, size: 3, isSync: true)], data: [1, 2, 3], decodeTime: 0)
        seeds.append(head + parts[1].bytes + parts[0].bytes)
        return seeds
    }

    /// `payloads` counts vp8, vp9, h264, av1, opus and red; here it is the codec's own number.
    private static let codecs = [Codec.vp8, .vp9, .h264, .av1, .opus, .red, .opus, .opus].map { Int($0.rawValue) }
}
