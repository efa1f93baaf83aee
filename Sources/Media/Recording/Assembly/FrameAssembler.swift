import MP4
import MediaControl
import PayloadFormats
import Primitives

/// Assembles whole frames from a video's packets, which arrive in order. An incomplete frame is never stored, and neither are the following ones up to the next
/// keyframe.
struct FrameAssembler {
    private enum Payload {
        case h264(H264Frame)
        case vp(VPFrame)
        case av1(AV1TemporalUnit)
    }

    private struct OpenFrame {
        let timestamp: UInt32
        let arrival: MonotonicTime
        /// Whether a packet of it is missing or malformed.
        var isBroken = false
        /// Whether decoding can begin or continue with it: false while a keyframe is awaited and none has started in it. An access unit delimiter may
        /// precede the start in a packet of its own.
        var isDecodable: Bool
        var byteCount = 0
    }

    /// Maximum bytes of one frame: several times the largest keyframe of a 4K video. A publisher that never ends a frame must not fill the memory.
    private static let longestFrame = 16 << 20

    /// The codec of the packets that it accepts.
    let codec: Codec
    private let format: PayloadCodec
    private var payload: Payload
    /// The frame that is being assembled.
    private var current: OpenFrame?
    /// Nothing can be stored before a keyframe.
    private(set) var awaitsKeyframe = true
    /// Frames that were not stored since `consumeDropped`.
    private var dropped = 0

    /// nil for a codec that is not video or has no file format.
    init?(_ codec: Codec) {
        self.codec = codec
        switch codec {
        case .h264: (format, payload) = (.h264, .h264(H264Frame()))
        case .vp8: (format, payload) = (.vp8, .vp(VPFrame(isVP9: false)))
        case .vp9: (format, payload) = (.vp9, .vp(VPFrame(isVP9: true)))
        case .av1: (format, payload) = (.av1, .av1(AV1TemporalUnit()))
        case .opus, .red, .otherAudio: return nil
        }
    }

    /// Processes a packet; returns the frames that it completes.
    mutating func append(
        _ bytes: RawSpan, marker: Bool, timestamp: UInt32, arrival: MonotonicTime
    ) -> [EncodedFrame] {
        var frames: [EncodedFrame] = []
        guard bytes.byteCount > 0 else { return frames }
        // Without a marker the next frame's first packet ends it.
        if let open = current, open.timestamp != timestamp, let frame = finish() { frames.append(frame) }
        guard let summary = format.summary(of: bytes, marker: marker) else {
            breakFrame(timestamp, arrival)
            return frames
        }
        if current == nil { current = OpenFrame(timestamp: timestamp, arrival: arrival, isDecodable: !awaitsKeyframe) }
        if summary.startsKeyframe { current?.isDecodable = true }
        current?.byteCount += bytes.byteCount
        if current?.isBroken == false, current?.byteCount ?? 0 > Self.longestFrame || !append(bytes, summary) {
            current?.isBroken = true
        }
        if marker, let frame = finish() { frames.append(frame) }
        return frames
    }

    private mutating func breakFrame(_ timestamp: UInt32, _ arrival: MonotonicTime) {
        current = OpenFrame(
            timestamp: timestamp, arrival: current?.arrival ?? arrival, isBroken: true, isDecodable: false)
    }

    private mutating func append(_ bytes: RawSpan, _ summary: PayloadSummary) -> Bool {
        switch payload {
        case .h264(var frame):
            payload = .vp(VPFrame(isVP9: false))  // The only owner of the bytes changes them.
            defer { payload = .h264(frame) }
            return frame.append(bytes)
        case .vp(var frame):
            payload = .av1(AV1TemporalUnit())
            defer { payload = .vp(frame) }
            return frame.append(bytes, summary)
        case .av1(var unit):
            payload = .vp(VPFrame(isVP9: false))
            defer { payload = .av1(unit) }
            return unit.append(bytes)
        }
    }

    /// Ends the current frame, which is whole.
    private mutating func finish() -> EncodedFrame? {
        guard let open = current else { return nil }
        current = nil
        let whole = finishPayload()
        let isLost = open.isBroken || !open.isDecodable
        guard !isLost, let whole, whole.entry != nil || !awaitsKeyframe else {
            // Parameter sets by themselves are no frame.
            if isLost || !isSetsOnly { noteDropped() }
            return nil
        }
        awaitsKeyframe = false
        return EncodedFrame(bytes: whole.bytes, timestamp: open.timestamp, arrival: open.arrival, entry: whole.entry)
    }

    private var isSetsOnly = false

    private mutating func finishPayload() -> (bytes: [UInt8], entry: SampleEntry?)? {
        switch payload {
        case .h264(var frame):
            isSetsOnly = frame.bytes.isEmpty
            let whole = frame.finish()
            payload = .h264(frame)
            return whole
        case .vp(var frame):
            let whole = frame.finish()
            payload = .vp(frame)
            return whole
        case .av1(var unit):
            let whole = unit.finish()
            payload = .av1(unit)
            return whole
        }
    }

    private mutating func noteDropped() {
        dropped += 1
        awaitsKeyframe = true
    }

    /// Packets are missing: the current frame and all before the next keyframe are lost.
    mutating func lose() {
        if current != nil {
            current = nil
            dropped += 1
            _ = finishPayload()
        }
        awaitsKeyframe = true
    }

    /// How many frames were not stored since the last call.
    mutating func consumeDropped() -> Int {
        defer { dropped = 0 }
        return dropped
    }
}
