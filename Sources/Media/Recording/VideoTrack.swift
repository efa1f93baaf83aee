import MP4
import MediaControl
import Movies
import PayloadFormats
import Primitives

/// The video of one track: from packets in order to segments.
struct VideoTrack {
    private var assembler: FrameAssembler
    private var timeline = StreamTimeline(clockRate: 90_000)
    private var builder: SegmentBuilder?
    /// The format of the open segment.
    private var format: TrackFormat?
    /// RTP time of the open segment's first frame.
    private var base: Int64 = 0
    private var last: Int64?
    /// When the last frame that was stored had arrived.
    private var lastArrival: MonotonicTime?
    private var gap: RecordingGap?
    private var pace = FramePace()
    private var rotation = Rotation.none
    private var lastRequest: MonotonicTime?
    private var reordering = ReorderingWatch()
    private var flagged: SampleEntry?
    private var files = FilePace()
    /// A frame needed another file while none may begin: nothing is stored before a keyframe for which a file may begin.
    private var isHeldBack = false
    private let limit: SegmentLimit

    /// Requests that are not answered are repeated after this.
    private static let requestInterval = TimeSpan.seconds(1)
    /// 30 frames per second: the duration of the last frame before anything is known.
    private static let usualDuration: UInt32 = 3_000
    /// As for audio, a longer pause is in no file. A file would show a still for as long, and after 13 hours its sample table could not express the duration.
    private static let longestPause = AudioAssembler.longestSilence / 48_000 * 90_000

    /// nil for a codec that is not video or has no file format.
    init?(_ codec: Codec, limit: SegmentLimit) {
        guard let assembler = FrameAssembler(codec) else { return nil }
        self.assembler = assembler
        self.limit = limit
    }

    /// The RTP time of a timestamp; nil before the first frame.
    func time(of timestamp: UInt32) -> Int64? { timeline.peek(timestamp) }

    /// Applies a report of the publisher's clock; returns by how much the following media is later because the media clock stood still, if it did.
    mutating func noteReport(_ anchor: ClockAnchor) -> Int64? {
        timeline.noteReport(anchor.timestamp, ntp: anchor.ntp)
    }

    var codec: Codec { assembler.codec }

    /// Another codec continues on the same timeline, in a new segment.
    mutating func change(to codec: Codec, _ totals: inout RecordingTotals, _ steps: inout [RecordingStep]) {
        guard let next = FrameAssembler(codec) else { return }
        assembler = next
        reordering = ReorderingWatch()
        close(&totals, &steps)
    }

    // MARK: - Packets

    mutating func append(
        _ payload: RawSpan, marker: Bool, timestamp: UInt32, rotation: Rotation?, arrival: MonotonicTime,
        segment: inout Int,
        _ totals: inout RecordingTotals, _ steps: inout [RecordingStep]
    ) throws(RecordingFault) {
        if let rotation { self.rotation = rotation }
        // One matrix per file: the next keyframe begins another. A request may have been too soon after the last one, so it is due until there is such a
        // keyframe.
        if let format, format.rotation != self.rotation, files.allows(at: arrival) { request(at: arrival, &steps) }
        for frame in assembler.append(payload, marker: marker, timestamp: timestamp, arrival: arrival) {
            try store(frame, segment: &segment, &totals, &steps)
        }
        let dropped = assembler.consumeDropped()
        guard dropped > 0 else { return }
        noteLost(frames: dropped, .format, &totals)
        request(at: arrival, &steps)
    }

    private mutating func store(
        _ frame: EncodedFrame, segment: inout Int, _ totals: inout RecordingTotals, _ steps: inout [RecordingStep]
    ) throws(RecordingFault) {
        let place = timeline.place(frame.timestamp, arrival: frame.arrival)
        if let step = place.step { steps.append(.log(.clockStep(units: step, timestamp: place.time))) }
        if place.step == nil, codec == .h264, reordering.isReordered(place.time, after: last) {
            throw .reorderingUnsupported
        }
        guard canStore(frame) else { return holdBack(at: frame.arrival, &totals, &steps) }
        isHeldBack = false
        if gap == nil, place.step == nil, let last { pace.note(place.time - last) }
        closeGap(at: place.time, &totals, &steps)
        if let entry = frame.entry {
            try open(entry, at: place.time, frame.arrival, &segment, &totals, &steps)
            totals.lastKeyframe = frame.arrival
        }
        builder?.append(frame.bytes, time: place.time - base, isSync: frame.isKeyframe, &steps)
        last = max(place.time, last ?? place.time)
        lastArrival = frame.arrival
        totals.framesWritten += 1
        // Another file begins with a keyframe, which a browser sends on request only.
        if builder?.isFull == true, files.allows(at: frame.arrival) { request(at: frame.arrival, &steps) }
    }

    /// Whether the open segment can hold a frame, or another may begin with it.
    private func canStore(_ frame: EncodedFrame) -> Bool {
        let hasRoom = builder?.isExhausted == false
        guard let entry = frame.entry else { return hasRoom && !isHeldBack }
        return hasRoom && format?.entry.continues(as: entry) == true || files.allows(at: frame.arrival)
    }

    /// A frame that no file can hold is missing, and so are the following frames up to a keyframe with which a file may begin.
    private mutating func holdBack(
        at arrival: MonotonicTime, _ totals: inout RecordingTotals, _ steps: inout [RecordingStep]
    ) {
        isHeldBack = true
        noteLost(frames: 1, .format, &totals)
        // A keyframe that comes earlier would be held back, too.
        if files.allows(at: arrival) { request(at: arrival, &steps) }
    }

    /// Opens a segment for a keyframe if the open one cannot hold it.
    private mutating func open(
        _ entry: SampleEntry, at time: Int64, _ arrival: MonotonicTime, _ segment: inout Int,
        _ totals: inout RecordingTotals, _ steps: inout [RecordingStep]
    ) throws(RecordingFault) {
        let former = format
        let isLate = last.map { time - $0 > Self.longestPause } ?? false
        // While no file may begin, the open one continues: with the former rotation rather than without the video.
        if let builder, let former, !builder.isExhausted, former.entry.continues(as: entry),
            (former.rotation == rotation && !builder.isFull && !isLate) || !files.allows(at: arrival)
        {
            if former.entry.size != entry.size, let size = entry.size {
                steps.append(.log(.size(size, timestamp: time)))
            }
            format?.entry = entry
            return
        }
        guard segment < FilePace.mostFiles else { throw .tooManyFiles }
        close(&totals, &steps)
        files.begin(at: arrival)
        let new = TrackFormat(entry: entry, rotation: rotation)
        format = new
        base = time
        steps.append(.open(segment: segment))
        steps.append(
            .log(.began(segment: segment, codec: codec, clockRate: 90_000, timestamp: time, arrival: arrival)))
        segment += 1
        if let size = entry.size, former?.entry.size != size { steps.append(.log(.size(size, timestamp: time))) }
        // After a file that was lost, or had another codec, every rotation is new; before the first file there is none.
        let isTurned = former.map { $0.rotation != rotation } ?? (rotation != .none || segment > 1)
        if isTurned { steps.append(.log(.rotation(rotation, timestamp: time))) }
        flagLevel(of: entry, &steps)
        builder = SegmentBuilder(new, usualDuration: Self.usualDuration, limit: limit, &steps)
    }

    private mutating func flagLevel(of entry: SampleEntry, _ steps: inout [RecordingStep]) {
        guard case .h264(let sets, _, let size) = entry, let level = sets.first?[3], flagged != entry,
            H264Level.exceeds(level, size)
        else { return }
        flagged = entry
        steps.append(.log(.levelExceeded(level: level, size: size)))
    }

    // MARK: - Gaps

    /// Packets are missing: nothing is stored before the next keyframe.
    mutating func lose(
        _ sequences: ClosedRange<Int64>?, _ reason: GapReason, at now: MonotonicTime, _ totals: inout RecordingTotals,
        _ steps: inout [RecordingStep]
    ) {
        assembler.lose()
        noteLost(frames: assembler.consumeDropped(), reason, &totals)
        gap?.add(sequences, reason)
        request(at: now, &steps)
    }

    private mutating func noteLost(frames: Int, _ reason: GapReason, _ totals: inout RecordingTotals) {
        totals.framesLost += frames
        // Nothing is missing before the first frame.
        guard let last else { return }
        if gap == nil {
            gap = RecordingGap(reason: reason, from: last, to: last, packets: 0, frames: 0, milliseconds: 0)
        }
        gap?.frames += frames
    }

    private mutating func closeGap(
        at time: Int64, isEnd: Bool = false, _ totals: inout RecordingTotals, _ steps: inout [RecordingStep]
    ) {
        guard var gap else { return }
        self.gap = nil
        gap.to = time
        gap.milliseconds = max(0, time - gap.from) / 90
        // No packet of some frames arrived. There cannot be more such frames than missing packets, nor more than fit into the time.
        let absent = min(gap.packets, pace.frames(in: time - gap.from) - (isEnd ? 0 : 1) - gap.frames)
        if absent > 0 {
            gap.frames += absent
            totals.framesLost += absent
        }
        totals.gaps += 1
        steps.append(.log(.gap(gap)))
    }

    private mutating func request(at now: MonotonicTime, _ steps: inout [RecordingStep]) {
        if let lastRequest, now - lastRequest < Self.requestInterval { return }
        lastRequest = now
        steps.append(.requestKeyframe)
    }

    // MARK: - Ending

    /// Nothing more will arrive. Frames missing at this point are missing until `moment`, because no later frame shows when the gap ended.
    mutating func endGap(
        at moment: MonotonicTime, _ totals: inout RecordingTotals, _ steps: inout [RecordingStep]
    ) {
        guard let gap, let lastArrival else { return }
        let missing = max(0, (moment - lastArrival).nanoseconds) * 90 / 1_000_000
        closeGap(at: gap.from + missing, isEnd: true, &totals, &steps)
    }

    /// Nothing arrived for a while: the pending samples go to the disk.
    mutating func flush(_ steps: inout [RecordingStep]) { builder?.flush(&steps) }

    /// Closes the open segment.
    mutating func close(_ totals: inout RecordingTotals, _ steps: inout [RecordingStep]) {
        builder?.close(&totals, &steps)
        builder = nil
        format = nil
    }

    /// Another file begins with the next keyframe.
    mutating func cut() { builder?.cut() }

    /// Bytes of the open segment.
    var openBytes: Int64 { builder?.bytes ?? 0 }

    /// The file was lost: the next keyframe begins another.
    mutating func abandonSegment(_ totals: inout RecordingTotals) {
        guard builder != nil else { return }
        builder = nil
        format = nil
        totals.segments += 1
        assembler.lose()
        noteLost(frames: assembler.consumeDropped(), .disk, &totals)
    }
}

extension SampleEntry {
    /// Whether samples of `next` may follow in one file. Decoders read H.264's sets only from the file's head.
    fileprivate func continues(as next: SampleEntry) -> Bool {
        switch (self, next) {
        case (.h264, .h264): self == next
        case (.vp8, .vp8), (.vp9, .vp9), (.av1, .av1), (.opus, .opus): true
        default: false
        }
    }
}

/// Finds out whether a video's frames are sent in another order than they are shown (B frames), which a single odd timestamp is not.
private struct ReorderingWatch {
    /// B frames occur every few frames; this many steps back in one second are no accident.
    private static let limit = 5
    private static let window = 30
    private var steps = 0
    private var frames = 0

    mutating func isReordered(_ time: Int64, after last: Int64?) -> Bool {
        frames += 1
        if let last, time < last { steps += 1 }
        if steps >= Self.limit { return true }
        if frames >= Self.window { (frames, steps) = (0, 0) }
        return false
    }
}

/// The usual time from one frame of a video to the next.
private struct FramePace {
    private var interval: Int64 = 0

    mutating func note(_ step: Int64) {
        guard step > 0 else { return }
        // A pause, for example of a still screen, does not count.
        interval = interval == 0 ? step : (7 * interval + min(step, 2 * interval)) / 8
    }

    /// How many fit into this time.
    func frames(in time: Int64) -> Int { interval > 0 ? Int((time + interval / 2) / interval) : 0 }
}

/// The limits of H.264's levels (ITU-T H.264 table A-1).
enum H264Level {
    /// Level times ten: most macroblocks of a frame.
    private static let frameSizes: [(level: UInt8, blocks: Int)] = [
        (10, 99), (20, 396), (21, 792), (30, 1_620), (31, 3_600), (32, 5_120), (41, 8_192), (42, 8_704), (50, 22_080),
        (52, 36_864),
    ]

    /// Whether frames of `size` are larger than `level` (ten times its number) permits.
    static func exceeds(_ level: UInt8, _ size: VideoSize) -> Bool {
        guard let limit = frameSizes.first(where: { level <= $0.level }) else { return false }
        return ((size.width + 15) / 16) * ((size.height + 15) / 16) > limit.blocks
    }
}
