internal import Primitives

/// Amount received in the last second or two, in sixteen buckets of an eighth of a second. Bursts once per second or less often, such as the frames of a
/// still screen, are measured by their spacing: the rate is neither zero between two frames nor a flood when one arrives.
struct RateMeter: Sendable {
    private static let buckets = 16
    private static let width = TimeSpan.milliseconds(125)

    private var counts = InlineArray<16, UInt32>(repeating: 0)
    private var current: Int64 = 0
    private var started: Int64?
    /// The amount of the two seconds before the last pause of at least that length.
    private var beforePause: UInt32 = 0
    /// Eighths of a second from one burst to the next, while bursts are short and far apart; otherwise 0.
    private var spacing: Int64 = 0
    /// The last burst and the one before.
    private var burst: UInt32 = 0
    private var formerBurst: UInt32 = 0
    private var burstStart: Int64 = 0

    /// A second without data ends a burst; after four seconds the stream has stopped (`TrackActivity.limit`).
    private static let slowest: Range<Int64> = 8..<32
    /// A longer burst is a continuous stream.
    private static let longestBurst: Int64 = 4

    /// Adds `amount` at `now`.
    @inline(__always) mutating func add(_ amount: Int, at now: MonotonicTime) {
        let bucket = now.nanoseconds / Self.width.nanoseconds
        if bucket != current || started == nil { move(to: bucket) }
        counts[Int(bucket & 15)] &+= UInt32(truncatingIfNeeded: amount)
        burst &+= UInt32(truncatingIfNeeded: amount)
    }

    private mutating func noteGap(to bucket: Int64) {
        let gap = bucket - current
        guard started == nil || gap >= Self.slowest.lowerBound else {
            if bucket - burstStart > Self.longestBurst { spacing = 0 }
            return
        }
        let isSlow = started != nil && gap < Self.slowest.upperBound && current - burstStart <= Self.longestBurst
        spacing = isSlow ? bucket - burstStart : 0
        formerBurst = burst
        burst = 0
        burstStart = bucket
    }

    private mutating func move(to bucket: Int64) {
        noteGap(to: bucket)
        if started == nil || bucket - current >= Int64(Self.buckets) {
            beforePause = 0
            if let started, current - started >= Int64(Self.buckets) {
                for index in 0..<Self.buckets { beforePause &+= counts[index] }
            }
            counts = InlineArray(repeating: 0)
            started = bucket
        } else if bucket > current {
            for passed in (current + 1)...bucket { counts[Int(passed & 15)] = 0 }
        }
        current = max(current, bucket)
    }

    /// The amount per second for decisions that should not flap: as `perSecond`, but a stream that resumes after a pause, with a keyframe that
    /// makes its first second look too high, counts at its former rate until a second has passed.
    func steadyPerSecond(at now: MonotonicTime, eighths span: Int) -> Double {
        let measured = perSecond(at: now, eighths: span)
        guard beforePause > 0, let started, now.nanoseconds / Self.width.nanoseconds - started < 8, measured > 0 else {
            return measured
        }
        return Double(beforePause) / (Self.width.seconds * Double(Self.buckets))
    }

    /// How long data has flowed since the last pause of two seconds; nil for a stream of rare bursts and before any data.
    func age(at now: MonotonicTime) -> TimeSpan? {
        guard let started, spacing == 0 else { return nil }
        return now - (MonotonicTime.zero + Self.width * started)
    }

    /// The amount per second, over at most the last `span` full eighths of a second and the current one; 0 at a moment before the data.
    func perSecond(at now: MonotonicTime, eighths span: Int = 8) -> Double {
        guard let started else { return 0 }
        let bucket = now.nanoseconds / Self.width.nanoseconds
        if spacing > 0 { return slowPerSecond(in: bucket) }
        let first = max(bucket - Int64(min(span, Self.buckets - 1)), started)
        let last = min(current, bucket)
        // A moment may lie before the first data: layers are compared at the last packet that was not a repair, and frames are counted from repairs too.
        guard first <= last else { return 0 }
        var sum: Int64 = 0
        for index in first...last where current - index < Int64(Self.buckets) {
            sum += Int64(counts[Int(index & 15)])
        }
        // A new meter covers less than its span; below a quarter second it would exaggerate.
        let length = max(now.nanoseconds - first * Self.width.nanoseconds, Self.width.nanoseconds * 2)
        return Double(sum) * 1e9 / Double(length)
    }

    private func slowPerSecond(in bucket: Int64) -> Double {
        guard bucket - current < Self.slowest.upperBound else { return 0 }
        // The last burst may still be arriving; the one before is complete.
        let amount = bucket - burstStart > 1 ? (Double(burst) + Double(formerBurst)) / 2 : Double(formerBurst)
        return amount / (Double(max(spacing, bucket - burstStart)) * Self.width.seconds)
    }
}

/// Counts the frames of one layer, each once regardless of its number of packets.
struct FrameCounter: Sendable {
    /// Frames begun.
    private(set) var count: UInt64 = 0
    /// The timestamp of the newest frame counted.
    private var newest: Int64 = .min
    private var meter = FrameMeter()

    /// Counts the frame of a packet with this extended timestamp; false if it is counted already.
    mutating func note(_ timestamp: Int64, at now: MonotonicTime) -> Bool {
        let distance = timestamp &- newest
        // Packets of an older frame are late; a step far back is a new timeline.
        guard newest == .min || distance > 0 || distance < -900_000 else { return false }
        newest = timestamp
        count &+= 1
        meter.frame(at: now)
        return true
    }

    /// Frames per second at `now`.
    func framesPerSecond(at now: MonotonicTime) -> Double { meter.framesPerSecond(at: now) }
}

/// Frames per second, steady from 0.1 to 240.
struct FrameMeter: Sendable {
    private var meter = RateMeter()
    private var last = MonotonicTime.zero
    /// Smoothed interval between frames, for rates too low to count.
    private var spacing = TimeSpan.zero

    /// A frame began at `now`.
    mutating func frame(at now: MonotonicTime) {
        if last != .zero {
            let distance = now - last
            // An interval that changes by more than half is a new frame rate; smaller changes are smoothed.
            let isNew = distance > spacing + spacing / 2 || distance < spacing / 2
            spacing = spacing == .zero || isNew ? distance : spacing + (distance - spacing) / 4
        }
        last = now
        meter.add(1, at: now)
    }

    /// The rate at `now`; falls to zero when frames stop.
    func framesPerSecond(at now: MonotonicTime) -> Double {
        guard last != .zero else { return 0 }
        let counted = meter.perSecond(at: now, eighths: 15)
        if counted >= 4 { return counted }
        let gap = max(spacing, now - last)
        guard gap > .zero, gap < .seconds(15) else { return 0 }
        return min(1 / gap.seconds, 240)
    }
}
