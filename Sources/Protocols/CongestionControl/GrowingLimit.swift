import Primitives

/// A limit based on the reports of a receiver without transport-wide feedback. It falls at once; then it grows by 8 % per second, as a sender's own estimate
/// does, and more slowly after each failure, because each failure means a second or more of losses or of a full queue.
struct GrowingLimit: Sendable {
    /// Growth per second.
    private static let growth = 0.08
    /// Cuts within this time count as one.
    private static let episode = TimeSpan.seconds(5)
    /// A cut within this time after another shows that the growth in between was too fast.
    private static let memory = TimeSpan.seconds(120)
    private static let mostSlowness = 8.0
    /// Growth without a cut for this long was slow enough: it doubles.
    private static let patience = TimeSpan.seconds(20)

    /// Bits per second; nil while there is no reason to limit.
    private(set) var value: Double?
    private var lastCut = MonotonicTime.zero
    private var slowness = 1.0

    init() {}

    mutating func cut(to bitsPerSecond: Double, at now: MonotonicTime) {
        value = bitsPerSecond
        if now - lastCut >= Self.episode, lastCut != .zero {
            slowness = now - lastCut < Self.memory ? min(slowness * 2, Self.mostSlowness) : 1
        }
        lastCut = now
    }

    /// Grows for this many seconds; nil stays nil.
    mutating func grow(for seconds: Double, at now: MonotonicTime) {
        value = value.map { $0 * (1 + Self.growth / slowness(at: now) * seconds) }
    }

    /// Keeps it within `range`, if there is one.
    mutating func clamp(to range: ClosedRange<Double>) {
        value = value.map { min(max($0, range.lowerBound), range.upperBound) }
    }

    private func slowness(at now: MonotonicTime) -> Double {
        let halvings = min((now - lastCut).nanoseconds / Self.patience.nanoseconds, 3)
        return max(slowness / Double(1 << halvings), 1)
    }
}
