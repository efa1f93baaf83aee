import CSyntheticMedia

/// Puts frames together in order, and decodes them if the scenario requests it. Like a player, it waits for retransmissions and
/// starts again at a keyframe if they do not arrive.
final class FramePlayer {
    /// The most packets that wait for an earlier one: a third of a second at 1,000 packets/s.
    private static let patience = 300
    private struct Part {
        var bytes: [UInt8]
        var starts: Bool
        var ends: Bool
    }
    private var waiting: [Int64: Part] = [:]
    private var next: Int64?
    private var frame: [UInt8] = []
    private let codec: VideoCodec
    private let decoder: UnsafeMutableRawPointer?
    /// A keyframe must arrive before anything can be shown.
    private(set) var needsKeyframe = true
    private(set) var frames: UInt64 = 0
    private(set) var decoded: UInt64 = 0
    private(set) var broken: UInt64 = 0

    init(_ codec: VideoCodec, decodes: Bool) {
        self.codec = codec
        decoder = decodes ? (codec == .vp8 ? synthetic_decoder_new() : synthetic_h264_decoder_new()) : nil
    }

    deinit {
        guard let decoder else { return }
        codec == .vp8 ? synthetic_decoder_free(decoder) : synthetic_h264_decoder_free(decoder)
    }

    /// Adds one packet's part of a frame, without descriptor; `isKey`: the first one of a keyframe.
    func add(_ bytes: UnsafeRawBufferPointer, sequence: Int64, starts: Bool, isKey: Bool, ends: Bool) {
        if needsKeyframe, isKey, sequence >= next ?? 0 {
            needsKeyframe = false
            next = sequence
            frame.removeAll(keepingCapacity: true)
            waiting = waiting.filter { $0.key > sequence }
        }
        if let next, sequence < next { return }
        waiting[sequence] = Part(bytes: Array(bytes), starts: starts, ends: ends)
        if !needsKeyframe { drain() }
        if waiting.count > Self.patience {
            waiting.removeAll(keepingCapacity: true)
            needsKeyframe = true
        }
    }

    private func drain() {
        while let sequence = next, let part = waiting.removeValue(forKey: sequence) {
            next = sequence + 1
            if part.starts { frame.removeAll(keepingCapacity: true) }
            frame += part.bytes
            if part.ends { finish() }
        }
    }

    /// A packet without media: the next one follows it.
    func skip(_ sequence: Int64) {
        if next == sequence {
            next = sequence + 1
        } else {
            waiting[sequence] = Part(bytes: [], starts: false, ends: false)
        }
        if !needsKeyframe { drain() }
    }

    private func finish() {
        frames += 1
        guard let decoder else { return }
        var width: Int32 = 0
        var height: Int32 = 0
        let result =
            codec == .vp8
            ? synthetic_decode(decoder, frame, frame.count, &width, &height)
            : synthetic_h264_decode(decoder, frame, frame.count, &width, &height)
        switch result {
        case 1: decoded += 1
        case 0: break
        default:
            broken += 1
            needsKeyframe = true
        }
    }
}
