import MediaControl
import Primitives

/// How long one video keeps its size with too few frames to look smooth, and the step that it came from.
struct Thinning {
    /// The step that it came from, and when.
    struct Origin {
        var step: LayerPoint
        var bitrate: Bitrate
        var estimate: Bitrate?
        fileprivate(set) var since: MonotonicTime
    }

    /// Nil: it is not thinned.
    private(set) var origin: Origin?
    /// When it must have more frames again or become smaller.
    private var end = MonotonicTime.zero
    /// When it last ended, and how much time was left then.
    private var ended = MonotonicTime.zero
    private var left = Self.most
    private var isForgiven = false

    /// It has too few frames for at most this long. After a fall to 500 kbit/s the estimate was for 0.3 to 1.9 s below the 350 kbit/s that smooth video of
    /// 360 lines needed, and occasionally for up to 3.5 s at 355 to 400 kbit/s (Chromium, five runs).
    private static let most = TimeSpan.seconds(5)
    /// It may have more again after this at the earliest.
    private static let least = TimeSpan.milliseconds(1_500)
    /// Times of too few frames this close together count as one: a video that wavers for longer becomes smaller.
    private static let apart = TimeSpan.seconds(5)

    func isAllowed(at now: MonotonicTime) -> Bool {
        if origin != nil { return now < end }
        return allowance(at: now) >= Self.least
    }

    /// Whether it may try all frames that look smooth again.
    func mayEnd(at now: MonotonicTime) -> Bool { origin.map { isForgiven || now - $0.since >= Self.least } ?? false }

    private func allowance(at now: MonotonicTime) -> TimeSpan {
        ended != .zero && now - ended < Self.apart ? left : Self.most
    }

    mutating func begin(from step: LayerPoint, _ bitrate: Bitrate, estimate: Bitrate?, at now: MonotonicTime) {
        guard origin == nil else { return }
        end = now + allowance(at: now)
        origin = Origin(step: step, bitrate: bitrate, estimate: estimate, since: now)
        isForgiven = false
    }

    /// Ends it, whatever follows; returns the step that it came from.
    mutating func finish(at now: MonotonicTime) -> Origin? {
        guard let origin else { return nil }
        left = max(end - now, .zero)
        ended = now
        self.origin = nil
        return origin
    }

    /// It began because of a stall that ended at once: it need not last.
    mutating func forgive(_ moment: MonotonicTime, within span: TimeSpan) {
        guard let origin, origin.since - moment < span, moment - origin.since < span else { return }
        isForgiven = true
    }
}
