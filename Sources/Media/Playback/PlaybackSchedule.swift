internal import MediaControl
internal import Movies
public import Primitives

/// Which sample of a file is sent when, with pause, seek, loop and end; the caller supplies the time.
///
/// Every moment follows from one anchor, so that no error adds up: a sample is due at `anchor` + its time. Pausing, seeking and stalling move the anchor;
/// RTP timestamps follow it, because receivers compare them with the wall clock.
public struct PlaybackSchedule: Sendable {
    /// A sample that is to be sent.
    public struct Step: Sendable, Hashable {
        /// Index of its track.
        public var track: Int
        /// Index of it in the track.
        public var sample: Int
        /// When its first packet leaves.
        public var due: MonotonicTime
        /// Its RTP timestamp, from 0 at the playback's beginning.
        public var timestamp: UInt32
        /// Its packets leave within this time.
        public var spread: TimeSpan
    }

    /// The state of playing.
    public enum State: Sendable, Hashable {
        case playing
        case paused
        /// The last sample was handed out, and its time is over at this moment.
        case ended(MonotonicTime)
    }

    private struct Cursor {
        var next = 0
        /// How often the track was repeated.
        var cycle: Int64 = 0
        /// The anchor in units of the track's RTP clock.
        var clockOffset: Int64 = 0
    }

    /// The state of playing.
    public private(set) var state = State.playing
    /// Begins again at the end.
    public private(set) var loops: Bool
    private let tracks: [PlayableTrack]
    private var cursors: [Cursor]
    /// When the file's zero is due in the first cycle.
    private var anchor: MonotonicTime
    /// Where RTP time is 0.
    private let origin: MonotonicTime
    private var lastDue: MonotonicTime
    /// When it was paused; after a seek, the moment of the position that was sought.
    private var pausedAt: MonotonicTime
    /// Time of the first sample, and of one cycle.
    private let start: TimeSpan
    /// How long one cycle lasts.
    public let duration: TimeSpan

    /// From a command to the first packet: longer than it takes for the command to reach the worker's thread.
    public static let lead = TimeSpan.milliseconds(40)
    /// A file whose data comes later than this has stalled: the following samples are sent at their own pace, not all at once.
    private static let stall = TimeSpan.milliseconds(500)
    /// A cycle lasts at least this long: a file of one frame must not be repeated endlessly in no time.
    private static let shortestCycle = TimeSpan.milliseconds(100)
    /// The packets of a frame leave within half of its duration, and at most within this time: viewers wait for the last one.
    private static let longestSpread = TimeSpan.milliseconds(20)

    /// A schedule of `tracks` (at least one) that begins soon after `now`, or is paused at the beginning.
    public init(_ tracks: [PlayableTrack], loops: Bool, isPaused: Bool = false, at now: MonotonicTime) {
        precondition(!tracks.isEmpty, "a playback has a track")
        self.tracks = tracks
        self.loops = loops
        cursors = tracks.map { _ in Cursor() }
        let start = tracks.map { $0.time(of: 0) }.min() ?? .zero
        let end = tracks.map(\.end).max() ?? .zero
        self.start = start
        duration = max(end - start, Self.shortestCycle)
        origin = now
        lastDue = now
        pausedAt = now
        anchor = now + Self.lead - start
        if isPaused { state = .paused }
        setClockOffsets()
    }

    // MARK: - Sending

    /// The next sample that is due up to `horizon`; nil if there is none, or nothing is played. The caller sends it or keeps it.
    public mutating func next(upTo horizon: MonotonicTime, at now: MonotonicTime) -> Step? {
        guard state == .playing else { return nil }
        wrap()
        guard let track = earliest else {
            // The last frame of a slideshow is shown for seconds, in which the playback can still be changed.
            if end <= horizon { state = .ended(end) }
            return nil
        }
        let late = now - due(of: track)
        if late > Self.stall { move(by: late) }
        let due = due(of: track)
        guard due <= horizon else { return nil }
        let index = cursors[track].next
        cursors[track].next += 1
        lastDue = max(lastDue, due)
        let sample = tracks[track].samples[index]
        let units = tracks[track].clockUnits(of: index) + cursors[track].clockOffset + cycleUnits(of: track)
        let length = TimeSpan.units(Int64(sample.duration), per: tracks[track].timescale)
        return Step(
            track: track, sample: index, due: due, timestamp: UInt32(truncatingIfNeeded: units),
            spread: min(length / 2, Self.longestSpread))
    }

    /// Starts the next cycle of tracks that are at their end: of all together, or of those that are a cycle behind another track.
    private mutating func wrap() {
        let cycle = cursors.reduce(0) { max($0, $1.cycle) }, beginsAgain = loops && isAtEnd
        for index in cursors.indices where cursors[index].next == tracks[index].samples.count {
            guard cursors[index].cycle < cycle || beginsAgain else { continue }
            cursors[index].next = 0
            cursors[index].cycle += 1
        }
    }

    /// Whether every track of the newest cycle is at its end.
    private var isAtEnd: Bool { cursors.indices.allSatisfy { cursors[$0].next == tracks[$0].samples.count } }

    /// The track with the sample that is due first.
    private var earliest: Int? {
        cursors.indices.filter { cursors[$0].next < tracks[$0].samples.count }.min { due(of: $0) < due(of: $1) }
    }

    private func due(of track: Int) -> MonotonicTime {
        anchor + tracks[track].time(of: cursors[track].next) + duration * cursors[track].cycle
    }

    /// When the newest cycle is over.
    private var end: MonotonicTime { anchor + start + duration * (cursors.reduce(0) { max($0, $1.cycle) } + 1) }

    private func cycleUnits(of track: Int) -> Int64 {
        duration.units(per: tracks[track].clockRate) * cursors[track].cycle
    }

    private mutating func move(by interval: TimeSpan) {
        anchor = anchor + interval
        setClockOffsets()
    }

    private mutating func setClockOffsets() {
        for index in cursors.indices {
            cursors[index].clockOffset = (anchor - origin).units(per: tracks[index].clockRate)
        }
    }

    // MARK: - Orders

    /// Nothing more is handed out until `resume`; samples handed out before are sent.
    public mutating func pause(at now: MonotonicTime) {
        if state == .playing { (state, pausedAt) = (.paused, now) }
    }

    /// Continues where it was paused.
    public mutating func resume(at now: MonotonicTime) {
        guard state == .paused else { return }
        state = .playing
        // Within the last frame: it is shown for the rest of its duration, which also counts before the next cycle.
        if earliest == nil { move(by: max(now - pausedAt, .zero)) }
        wrap()
        guard let track = earliest else { return }
        let earliestAllowed = max(now + Self.lead, lastDue)
        if due(of: track) < earliestAllowed { move(by: earliestAllowed - due(of: track)) }
    }

    /// Enables or disables looping from now on.
    public mutating func setLoops(_ loops: Bool) { self.loops = loops }

    /// Seeks to the sync sample at or before `position` from the beginning; a position beyond the end means the end.
    public mutating func seek(to position: TimeSpan, at now: MonotonicTime) {
        if case .ended = state { return }
        let target = start + min(max(position, .zero), duration)
        let video = tracks.indices.first { tracks[$0].kind == .video }
        var from = target
        if let video { from = tracks[video].time(of: tracks[video].syncIndex(atOrBefore: target)) }
        for index in cursors.indices {
            let next =
                tracks[index].kind == .video
                ? tracks[index].syncIndex(atOrBefore: from) : tracks[index].index(atOrAfter: from)
            cursors[index] = Cursor(next: next)
        }
        // After everything that was handed out already: RTP time never goes back.
        pausedAt = max(now + Self.lead, lastDue + Self.lead)
        anchor = pausedAt - from
        setClockOffsets()
    }

    /// The current position, from the beginning.
    public func position(at now: MonotonicTime) -> TimeSpan {
        guard let track = earliest else {
            let left = end - (state == .paused ? pausedAt : now)
            return max(duration - max(left, .zero), .zero)
        }
        let next = tracks[track].time(of: cursors[track].next) - start
        let ahead = state == .playing ? max(due(of: track) - now, .zero) : .zero
        let position = next - ahead
        // The samples sent now may still be the end of the last cycle.
        return position < .zero && cursors[track].cycle > 0 ? max(position + duration, .zero) : max(position, .zero)
    }
}
