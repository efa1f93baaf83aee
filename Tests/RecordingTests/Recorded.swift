import MP4
import MediaControl
import Primitives
import RTP
import TestSupport

@testable import Recording

/// Carries a recorder's steps out in memory.
struct Recorded {
    var recorder = TrackRecorder()
    /// Segments as they would be on the disk without being finished.
    var segments: [[UInt8]] = []
    var notes: [RecordingNote] = []
    var requests = 0
    var faults: [RecordingFault] = []
    var closed = 0

    mutating func packet(
        _ codec: Codec, sequence: Int, timestamp: UInt32, marker: Bool, _ payload: [UInt8], at arrival: MonotonicTime,
        rotation: UInt8? = nil
    ) {
        var bytes: [UInt8] = [
            rotation == nil ? 0x80 : 0x90, RecordedStreamFormat.payloadType(of: codec) | (marker ? 0x80 : 0),
        ]
        bytes += [UInt8(truncatingIfNeeded: sequence >> 8), UInt8(truncatingIfNeeded: sequence)]
        for value in [timestamp, 0x1234_5678] {
            for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
        }
        if let rotation { bytes += [0xbe, 0xde, 0, 1, 0x10, rotation, 0, 0] }
        receive(bytes + payload, at: arrival)
    }

    mutating func receive(_ bytes: [UInt8], at arrival: MonotonicTime) {
        var steps: [RecordingStep] = []
        recorder.receive(bytes.span.bytes, arrival: arrival, into: &steps)
        apply(steps)
    }

    mutating func with(_ body: (inout TrackRecorder, inout [RecordingStep]) -> Void) {
        var steps: [RecordingStep] = []
        body(&recorder, &steps)
        apply(steps)
    }

    mutating func finish(at now: MonotonicTime = MonotonicTime(milliseconds: 1 << 40)) {
        with { $0.finish(at: now, into: &$1) }
    }

    mutating func apply(_ steps: [RecordingStep]) {
        for step in steps {
            switch step {
            case .open(let segment):
                precondition(segment == segments.count)
                segments.append([])
            case .write(let write):
                let end = Int(write.offset) + write.bytes.count
                var bytes = segments.removeLast()
                if bytes.count < end { bytes += Array(repeating: 0, count: end - bytes.count) }
                bytes.replaceSubrange(Int(write.offset)..<end, with: write.bytes)
                segments.append(bytes)
            case .close: closed += 1
            case .log(let note): notes.append(note)
            case .requestKeyframe: requests += 1
            case .fail(let fault): faults.append(fault)
            }
        }
    }

    var gaps: [RecordingGap] {
        notes.compactMap { if case .gap(let gap) = $0 { gap } else { nil } }
    }

    /// The samples of a segment as its fragments list them.
    func samples(_ segment: Int = 0) -> [RecordedSample] { RecordedSample.all(in: segments[segment]) }

    /// Where the last sample of the last segment ends, as it is stored there.
    var storedEnd: Int64 {
        var base: Int64 = 0
        for case .began(_, _, _, let timestamp, _) in notes { base = timestamp }
        return base + (samples(segments.count - 1).last.map { Int64($0.time + $0.duration) } ?? 0)
    }

    /// Whether a segment of H.264 has one parameter set of each kind in its description: `set` and `MadeFrame.pps`.
    func isDescribed(by set: [UInt8], segment: Int) -> Bool {
        var box = Array("avcC".utf8)
        // Version; profile, constraints and level as in the set; lengths of four bytes; each set behind its own.
        box.append(1)
        box += set[1...3]
        box += [0xff, 0xe1, 0, UInt8(set.count)]
        box += set
        box += [1, 0, UInt8(MadeFrame.pps.count)]
        box += MadeFrame.pps
        let file = segments[segment]
        return file.indices.contains { file[$0...].starts(with: box) }
    }
}

/// A sample as it lies in a fragmented file.
struct RecordedSample: Equatable {
    var time: Int
    var duration: Int
    var isSync: Bool
    /// First of its fragment.
    var isFirst: Bool
    var bytes: [UInt8]

    static func all(in file: [UInt8]) -> [RecordedSample] {
        var samples: [RecordedSample] = []
        var offset = 0
        while offset + 8 <= file.count {
            let size = number(file, offset)
            if file[(offset + 4)..<(offset + 8)].elementsEqual("moof".utf8) {
                samples += fragment(file, offset)
            }
            offset += size
        }
        return samples
    }

    private static func fragment(_ file: [UInt8], _ start: Int) -> [RecordedSample] {
        // moof 8, mfhd 16, traf 8, tfhd 16, tfdt 20, trun 8 + 12 + samples.
        let tfdt = start + 8 + 16 + 8 + 16
        var time = number(file, tfdt + 12) << 32 | number(file, tfdt + 16)
        let trun = tfdt + 20
        let count = number(file, trun + 12)
        var data = start + number(file, trun + 16)
        return (0..<count).map { index in
            let entry = trun + 20 + 12 * index
            let (duration, size) = (number(file, entry), number(file, entry + 4))
            defer {
                time += duration
                data += size
            }
            return RecordedSample(
                time: time, duration: duration, isSync: number(file, entry + 8) == 0x0200_0000, isFirst: index == 0,
                bytes: Array(file[data..<(data + size)]))
        }
    }

    private static func number(_ file: [UInt8], _ offset: Int) -> Int {
        file[offset..<(offset + 4)].reduce(0) { $0 << 8 | Int($1) }
    }
}

/// Made frames.
enum MadeFrame {
    static let descriptor: UInt8 = 0x10

    /// A VP8 payload in one packet.
    static func vp8(key: Bool, width: Int = 640, height: Int = 360, tag: UInt8 = 7) -> [UInt8] {
        guard key else { return [descriptor, 0x01, tag, tag] }
        return [descriptor] + VP8Frame.keyframeHeader(width: UInt16(width), height: UInt16(height)) + [tag]
    }

    /// Constrained baseline of 1280 x 720 (Chromium's) and of 640 x 360.
    static let sps720: [UInt8] = [0x67, 0x42, 0xc0, 0x1f, 0x8c, 0x68, 0x05, 0x00, 0x5b, 0xa1, 0x00, 0x00, 0x03, 0x00]
    static let pps: [UInt8] = [0x68, 0xce, 0x3c, 0x80]
}

extension MonotonicTime {
    static func seconds(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: Int64(seconds * 1e9)) }
}
