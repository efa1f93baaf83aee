import Primitives

/// The receiver's own estimate (REMB, draft-alvestrand-rmcat-remb-03), for receivers without transport-wide feedback, and as an upper limit if
/// both are sent.
///
/// As the only source it is used with care: libwebrtc and implementations that copy it never report more than 1.5 times what arrived
/// (`AimdRateControl`), so a value well above the sent rate follows from that and reveals nothing about the path. It becomes a limit once it falls to the
/// arriving rate, as it does when queues grow, or when it stays below the sent rate. Then the limit grows up to the bitrate of a next layer (`GrowingLimit`).
struct ReceiverLimit: Sendable {
    /// Receivers repeat it every second or when it falls; without one for this long the receiver has stopped sending them.
    private static let lifetime = TimeSpan.seconds(10)
    /// A value below this share of the last one is a fall; a cut is to 0.85 of what arrives.
    private static let fall = 0.97
    /// A value above this multiple of the sent rate is not a cut.
    private static let following = 1.2
    /// At 8 % per second a value doubles in nine seconds: until then it may be below the sent rate.
    private static let catchingUp = TimeSpan.seconds(10)
    /// From one simulcast layer to the next: the higher sent rate then lets the receiver report more.
    private static let reach = 3.0

    private var value: Double?
    private var received = MonotonicTime.zero
    private var belowSince: MonotonicTime?
    private var limit = GrowingLimit()

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
            limit.cut(to: bitsPerSecond, at: now)
        } else {
            limit.grow(for: elapsed, at: now)
            limit.clamp(to: bitsPerSecond...Self.reach * bitsPerSecond)
        }
    }

    /// The current value; nil if there is none.
    func bitsPerSecond(at now: MonotonicTime) -> Double? { now - received <= Self.lifetime ? value : nil }

    /// The limit if there is no other measurement; nil for none.
    func limitAlone(at now: MonotonicTime) -> Double? { now - received <= Self.lifetime ? limit.value : nil }
}
