import Primitives

/// How fast messages may be sent beside media on one path: as fast as leaves the path's queue short.
///
/// SCTP raises its rate until a queue overflows, and media, which yields to the delay of that queue, would lose everything to it (measured: 600 pictures in 20 s
/// became 45 on a link of 800 kbit/s). So messages yield first: their rate rises while the queue is short, and falls with the first sign of a growing one, for which
/// media is not slowed as long as messages can be. Like LEDBAT (RFC 6817), but by the delay that media's feedback measures, which is one-way.
struct DataPace: Sendable {
    /// Bits per second, and share of the estimate, that messages have in any case; what still fills the queue then, media has to leave.
    static let least = 40_000.0, leastShare = 0.1
    /// More than any client reads.
    private static let most = 100_000_000.0
    /// Share of the estimate with which the first messages leave.
    private static let start = 0.5
    /// Growth per second while the rate is used: fifty times as fast after 3 s.
    private static let growth = 1.6
    /// After the rate fell, what is reported was sent before it, for so long.
    private static let response = TimeInterval.milliseconds(200)
    /// Sent within this time, messages are what fills the queue.
    private static let influence = TimeInterval.milliseconds(600)
    /// At most so many seconds of the rate at once, and at least two packets.
    private static let burst = 0.010, leastBurst = 2_400.0

    /// 0: nothing was sent yet.
    private(set) var bitsPerSecond = 0.0
    /// Bytes that may leave.
    private var credit = Self.leastBurst
    private var last = MonotonicTime.zero
    private var lastFall = MonotonicTime.zero
    private var lastSent = MonotonicTime.zero
    /// When the rate kept messages waiting, and when it was last raised.
    private var lastLimited = MonotonicTime.zero
    private var lastUpdate = MonotonicTime.zero

    /// Bytes that may leave now over a path of `estimate` bits per second.
    mutating func allowance(estimate: Double, at now: MonotonicTime) -> Int {
        if bitsPerSecond == 0 { bitsPerSecond = max(estimate * Self.start, Self.least) }
        if now > last {
            let elapsed = min((now - last).seconds, 1)
            credit = min(credit + elapsed * bitsPerSecond / 8, max(bitsPerSecond / 8 * Self.burst, Self.leastBurst))
            last = now
        }
        return Int(credit)
    }

    mutating func sent(_ bytes: Int, at now: MonotonicTime) {
        guard bytes > 0 else { return }
        credit -= Double(bytes)
        lastSent = now
    }

    /// More could have been sent. Returns when some of it may be.
    mutating func limited(at now: MonotonicTime) -> MonotonicTime {
        lastLimited = now
        let seconds = min(max(1 - credit, 1) * 8 / max(bitsPerSecond, Self.least), 0.1)
        return now + max(Pacer.tick, .microseconds(Int64(seconds * 1e6)))
    }

    /// Processes one feedback about media. `isGrowing`: the queue grows. `wait`: how long it stands, in microseconds, without what single frames of video cause.
    /// Returns whether messages are to blame, and yield.
    mutating func update(estimate: Double, isGrowing: Bool, wait: Int64, at now: MonotonicTime) -> Bool {
        let elapsed = min((now - lastUpdate).seconds, 0.2)
        lastUpdate = now
        let isSending = lastSent != .zero && now - lastSent < Self.influence
        guard isGrowing || wait > Self.short else {
            if lastLimited != .zero, now - lastLimited < .milliseconds(200), wait < Self.empty {
                bitsPerSecond = min(bitsPerSecond * (1 + Self.growth * elapsed), Self.most)
            }
            return false
        }
        guard isSending else { return false }
        if now - lastFall < Self.response { return true }
        let least = max(estimate * Self.leastShare, Self.least)
        guard bitsPerSecond > least else { return false }
        lastFall = now
        // A queue that outlasts a fall is deeper than a burst.
        bitsPerSecond = max(bitsPerSecond * (wait > Self.long ? 0.3 : 0.6), least)
        return true
    }

    /// Microseconds of a standing queue up to which it counts as empty, as short, and beyond which it is long: CoDel's 5 ms (RFC 8289) with what clocks stray,
    /// a frame of video on a narrow link, and half of what is heard in a conversation.
    private static let empty: Int64 = 8_000, short: Int64 = 20_000, long: Int64 = 50_000
}
