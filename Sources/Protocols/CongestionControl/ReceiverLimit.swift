import Primitives

/// The receiver's own estimate (REMB, draft-alvestrand-rmcat-remb-03), for receivers without transport-wide feedback, and as an upper limit if
/// both are sent.
///
/// Alone it is used with care: libwebrtc and implementations that copy it never report more than 1.5 times what arrived
/// (`AimdRateControl`), so a value well above the sent rate follows from that and reveals nothing about the path. It becomes a limit once it falls to the
/// arriving rate, as it does when queues grow, or when it stays below the sent rate. Then the limit grows by 8 % per second, as a sender's own estimate
/// does, up to the bitrate of a next layer, and more slowly each time that this failed.
struct ReceiverLimit: Sendable {
    /// Receivers repeat it every second or when it falls; without one for this long the receiver has stopped sending them.
    private static let lifetime = TimeInterval.seconds(10)
    /// A value below this share of the last one is a fall; a cut is to 0.85 of what arrives.
    private static let fall = 0.97
    /// A value above this multiple of the sent rate is not a cut.
    private static let following = 1.2
    /// At 8 % per second a value doubles in nine seconds: until then it may be below the sent rate.
    private static let catchingUp = TimeInterval.seconds(10)
    /// Growth per second.
    private static let growth = 0.08
    /// From one simulcast layer to the next: the higher sent rate then lets the receiver report more.
    private static let reach = 3.0
    /// Cuts within this time count as one.
    private static let episode = TimeInterval.seconds(5)
    /// A cut within this time after another shows that the growth in between was too fast.
    private static let memory = TimeInterval.seconds(120)
    private static let mostSlowness = 8.0
    /// Growth without a cut for so long was slow enough: it doubles.
    private static let patience = TimeInterval.seconds(20)

    private var value: Double?
    private var received = MonotonicTime.zero
    private var belowSince: MonotonicTime?
    /// Bits per second; nil while there is no reason to limit.
    private var limit: Double?
    private var lastCut = MonotonicTime.zero
    private var slowness = 1.0

    init() {}

    /// Applies a value; `sent` is the rate sent since the last one, in bits per second.
    mutating func apply(_ bitsPerSecond: Double, sent: Double?, at now: MonotonicTime) {
        let last = self.bitsPerSecond(at: now)
        let elapsed = min((now - received).seconds, 1)
        value = bitsPerSecond
        received = now
        belowSince = sent.map { bitsPerSecond < $0 * 0.9 } ?? false ? belowSince ?? now : nil
        let isFollowing = sent.map { bitsPerSecond > $0 * Self.following } ?? false
        let hasFallen = !isFollowing && last.map { bitsPerSecond < $0 * Self.fall } ?? false
        if hasFallen || belowSince.map({ now - $0 >= Self.catchingUp }) ?? false {
            cut(to: bitsPerSecond, at: now)
        } else if let limit {
            let grown = min(limit * (1 + Self.growth / slowness(at: now) * elapsed), Self.reach * bitsPerSecond)
            self.limit = max(grown, bitsPerSecond)
        }
    }

    private mutating func cut(to bitsPerSecond: Double, at now: MonotonicTime) {
        limit = bitsPerSecond
        if now - lastCut >= Self.episode, lastCut != .zero {
            slowness = now - lastCut < Self.memory ? min(slowness * 2, Self.mostSlowness) : 1
        }
        lastCut = now
    }

    private func slowness(at now: MonotonicTime) -> Double {
        let halvings = min((now - lastCut).nanoseconds / Self.patience.nanoseconds, 3)
        return max(slowness / Double(1 << halvings), 1)
    }

    /// The current value; nil if there is none.
    func bitsPerSecond(at now: MonotonicTime) -> Double? { now - received <= Self.lifetime ? value : nil }

    /// The limit if there is no other measurement; nil for none.
    func limitAlone(at now: MonotonicTime) -> Double? { now - received <= Self.lifetime ? limit : nil }
}
