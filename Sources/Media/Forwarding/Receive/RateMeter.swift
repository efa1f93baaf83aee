internal import Primitives

/// How much came in the last second or two: sixteen buckets of an eighth of a second.
struct RateMeter: Sendable {
    private static let buckets = 16
    private static let width = TimeInterval.milliseconds(125)

    private var counts = InlineArray<16, UInt32>(repeating: 0)
    private var current: Int64 = 0
    private var started: Int64?
    /// Two seconds' amount before the last pause of as long.
    private var beforePause: UInt32 = 0

    /// Adds `amount` at `now`.
    @inline(__always) mutating func add(_ amount: Int, at now: MonotonicTime) {
        let bucket = now.nanoseconds / Self.width.nanoseconds
        if bucket != current || started == nil { move(to: bucket) }
        counts[Int(bucket & 15)] &+= UInt32(truncatingIfNeeded: amount)
    }

    private mutating func move(to bucket: Int64) {
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

    /// The amount a second for decisions that should not flap: as `perSecond`, but what begins again after a pause, with a keyframe that
    /// makes its first second look too high, counts as what it was before until a second is there.
    func steadyPerSecond(at now: MonotonicTime, eighths span: Int) -> Double {
        let measured = perSecond(at: now, eighths: span)
        guard beforePause > 0, let started, now.nanoseconds / Self.width.nanoseconds - started < 8, measured > 0 else {
            return measured
        }
        return Double(beforePause) / (Self.width.seconds * Double(Self.buckets))
    }

    /// The amount a second, over at most the last `span` full eighths of a second and the current one.
    func perSecond(at now: MonotonicTime, eighths span: Int = 8) -> Double {
        guard let started else { return 0 }
        let bucket = now.nanoseconds / Self.width.nanoseconds
        let first = max(bucket - Int64(min(span, Self.buckets - 1)), started)
        guard first <= current else { return 0 }
        var sum: Int64 = 0
        for index in first...min(current, bucket) where current - index < Int64(Self.buckets) {
            sum += Int64(counts[Int(index & 15)])
        }
        // A meter that just started knows less than its span; below a quarter second it would exaggerate.
        let length = max(now.nanoseconds - first * Self.width.nanoseconds, Self.width.nanoseconds * 2)
        return Double(sum) * 1e9 / Double(length)
    }
}

/// Frames a second, steady from 0.1 to 240.
struct FrameMeter: Sendable {
    private var meter = RateMeter()
    private var last = MonotonicTime.zero
    /// Smoothed distance of frames, for rates so low that counting them is coarse.
    private var spacing = TimeInterval.zero

    /// A frame began at `now`.
    mutating func frame(at now: MonotonicTime) {
        if last != .zero {
            let distance = now - last
            // A change of cadence by more than half is a new cadence (B8), a small one is smoothed.
            let isNew = distance > spacing + spacing / 2 || distance < spacing / 2
            spacing = spacing == .zero || isNew ? distance : spacing + (distance - spacing) / 4
        }
        last = now
        meter.add(1, at: now)
    }

    /// The rate at `now`; falls to zero when nothing comes any more.
    func framesPerSecond(at now: MonotonicTime) -> Double {
        guard last != .zero else { return 0 }
        let counted = meter.perSecond(at: now, eighths: 15)
        if counted >= 4 { return counted }
        let gap = max(spacing, now - last)
        guard gap > .zero, gap < .seconds(15) else { return 0 }
        return min(1 / gap.seconds, 240)
    }
}
