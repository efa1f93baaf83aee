import Primitives

/// The receiver's own estimate (REMB, draft-alvestrand-rmcat-remb-03), for receivers without transport-wide feedback, and as a bound beside it where
/// both are sent.
///
/// Alone it is taken with care: libwebrtc and those that copy it never say more than one and a half times what arrived
/// (`AimdRateControl`), so a figure that only grows tells how much has come, not how much could. It limits once it falls, as it does when
/// queues grow, or when it stays below what is sent; and after a while more is tried, ever more rarely while that fails.
struct ReceiverLimit: Sendable {
    /// Receivers repeat it every second or when it falls; one that says nothing for so long has stopped.
    private static let lifetime = TimeInterval.seconds(10)
    /// Less than this share of the last figure is a fall; a cut is to 0.85 of what arrives.
    private static let fall = 0.97
    /// Growing by 8 % a second, a figure reaches the double in nine seconds: until then it may be below what is sent.
    private static let catchingUp = TimeInterval.seconds(10)
    private static let firstTrial = TimeInterval.seconds(15), rarestTrial = TimeInterval.seconds(120)

    private var value: Double?
    private var told = MonotonicTime.zero
    private var belowSince: MonotonicTime?
    /// The last reason to limit; nil while there is none.
    private var limitedSince: MonotonicTime?
    private var liftedAt: MonotonicTime?
    private var untilTrial = ReceiverLimit.firstTrial

    init() {}

    /// Takes a figure; `sent` is what has been sent since the last one, in bits a second.
    mutating func take(_ bitsPerSecond: Double, sent: Double?, at now: MonotonicTime) {
        let last = self.bitsPerSecond(at: now)
        value = bitsPerSecond
        told = now
        belowSince = sent.map { bitsPerSecond < $0 * 0.9 } ?? false ? belowSince ?? now : nil
        let hasFallen = last.map { bitsPerSecond < $0 * Self.fall } ?? false
        if hasFallen || belowSince.map({ now - $0 >= Self.catchingUp }) ?? false {
            limit(at: now)
        } else if let since = limitedSince, now - since >= untilTrial {
            limitedSince = nil
            liftedAt = now
        }
    }

    private mutating func limit(at now: MonotonicTime) {
        if limitedSince == nil {
            let hasFailed = liftedAt.map { now - $0 < Self.catchingUp * 2 } ?? false
            untilTrial = hasFailed ? min(untilTrial * 2, Self.rarestTrial) : Self.firstTrial
        }
        limitedSince = now
    }

    /// The figure; nil while none holds.
    func bitsPerSecond(at now: MonotonicTime) -> Double? { now - told <= Self.lifetime ? value : nil }

    /// What may be sent where nothing else is known; nil for no limit.
    func limitAlone(at now: MonotonicTime) -> Double? { limitedSince == nil ? nil : bitsPerSecond(at: now) }
}
