import Primitives

/// The receiver's own estimate (REMB, draft-alvestrand-rmcat-remb-03), for receivers without transport-wide feedback, and as a bound beside it where
/// both are sent.
///
/// Alone it is taken with care: libwebrtc and those that copy it never say more than one and a half times what arrived
/// (`AimdRateControl`), so a figure well above what is sent follows from that and tells nothing of the path. It limits once it falls to what comes, as it
/// does when queues grow, or when it stays below what is sent. Then the limit grows by 8 % a second, as a sender's own estimate does, up to what a next
/// layer takes, and slower each time that this failed.
struct ReceiverLimit: Sendable {
    /// Receivers repeat it every second or when it falls; one that says nothing for so long has stopped.
    private static let lifetime = TimeInterval.seconds(10)
    /// Less than this share of the last figure is a fall; a cut is to 0.85 of what arrives.
    private static let fall = 0.97
    /// A figure above so many times what was sent is no cut.
    private static let following = 1.2
    /// Growing by 8 % a second, a figure reaches the double in nine seconds: until then it may be below what is sent.
    private static let catchingUp = TimeInterval.seconds(10)
    /// A second's growth.
    private static let growth = 0.08
    /// From one layer of a simulcast to the next: what is sent then lets the receiver say more.
    private static let reach = 3.0
    /// Cuts within this are one.
    private static let episode = TimeInterval.seconds(5)
    /// A cut within this after another says that the growth in between was too much.
    private static let memory = TimeInterval.seconds(120)
    private static let mostSlowness = 8.0

    private var value: Double?
    private var told = MonotonicTime.zero
    private var belowSince: MonotonicTime?
    /// Bits a second; nil while there is no reason to limit.
    private var limit: Double?
    private var lastCut = MonotonicTime.zero
    private var slowness = 1.0

    init() {}

    /// Takes a figure; `sent` is what has been sent since the last one, in bits a second.
    mutating func take(_ bitsPerSecond: Double, sent: Double?, at now: MonotonicTime) {
        let last = self.bitsPerSecond(at: now)
        let elapsed = min((now - told).seconds, 1)
        value = bitsPerSecond
        told = now
        belowSince = sent.map { bitsPerSecond < $0 * 0.9 } ?? false ? belowSince ?? now : nil
        let isFollowing = sent.map { bitsPerSecond > $0 * Self.following } ?? false
        let hasFallen = !isFollowing && last.map { bitsPerSecond < $0 * Self.fall } ?? false
        if hasFallen || belowSince.map({ now - $0 >= Self.catchingUp }) ?? false {
            cut(to: bitsPerSecond, at: now)
        } else if let limit {
            let grown = min(limit * (1 + Self.growth / slowness * elapsed), Self.reach * bitsPerSecond)
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

    /// The figure; nil while none holds.
    func bitsPerSecond(at now: MonotonicTime) -> Double? { now - told <= Self.lifetime ? value : nil }

    /// What may be sent where nothing else is known; nil for no limit.
    func limitAlone(at now: MonotonicTime) -> Double? { now - told <= Self.lifetime ? limit : nil }
}
