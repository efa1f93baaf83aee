import Primitives

/// The limit for receivers that send neither transport-wide feedback nor an estimate of their own, by the losses in their receiver reports.
///
/// The loss part of Google's congestion control (draft-ietf-rmcat-gcc-02 section 6): more than a tenth lost lowers the rate, less than a fiftieth lets it
/// grow (`GrowingLimit`). It differs at the start: before the first such loss nothing is known, and nothing is limited.
struct ReportedLoss: Sendable {
    private static let tooMuch = 0.1
    private static let little = 0.02
    /// Bits per second. Audio and one video in its smallest size, which are sent whatever is lost: a tenth of their few packets is soon missing, which reveals
    /// nothing about the capacity of the path, and a limit at their rate would outlast a mute by a minute.
    private static let least = 300_000.0
    /// Reports come every second or few; without one for this long the receiver has stopped sending them.
    private static let lifetime = TimeSpan.seconds(15)
    /// Maximum time between two reports that counts as growth, seconds.
    private static let longest = 5.0

    private var limit = GrowingLimit()
    private var last = MonotonicTime.zero

    init() {}

    /// Applies reports: the share of packets lost, and the rate sent in bits per second, since the last ones.
    mutating func apply(lost: Double, sent: Double, at now: MonotonicTime) {
        // After a pause the path may be another one.
        if now - last > Self.lifetime { limit = GrowingLimit() }
        let elapsed = min((now - last).seconds, Self.longest)
        last = now
        if lost > Self.tooMuch {
            guard sent > Self.least else { return }
            // Not a share of the former limit: a video that is sent beyond it would lower it endlessly.
            limit.cut(to: min(limit.value ?? .infinity, sent * (1 - lost / 2)), at: now)
        } else if lost < Self.little {
            limit.grow(for: elapsed, at: now)
        }
    }

    /// The limit; nil for none.
    func bitsPerSecond(at now: MonotonicTime) -> Double? { now - last <= Self.lifetime ? limit.value : nil }
}
