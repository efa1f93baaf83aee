import Primitives

/// How fast messages may be sent next to media on one path: as fast as possible while the path's queue stays short.
///
/// SCTP raises its rate until a queue overflows, and media, which yields to the delay of that queue, would lose everything to it (measured: 600 frames in 20 s
/// became 45 on a link of 800 kbit/s). So messages yield first: their rate rises while the queue is short, and falls at the first sign of a growing one, for
/// which media is not slowed down as long as messages can be. This resembles LEDBAT (RFC 6817), but uses the one-way delay that media's feedback measures.
/// Messages always keep a share of the path, so that a delay that they do not cause, such as that of a busy receiver, does not stop them.
struct DataPace: Sendable {
    /// What one feedback about media reveals about the path.
    struct Report {
        /// Bits per second: the path's estimate, and media's part of it.
        var estimate: Double, media: Double
        /// Media would use more than it was given.
        var isMediaShort: Bool
        /// The queue grows.
        var isGrowing: Bool
        /// The standing queue without the effect of single video frames, and how far delays vary without any queue; microseconds.
        var wait: Int64, jitter: Int64
        /// Another flow keeps the queue full.
        var isContested: Bool
    }

    /// Bits per second that messages always have, but no more than media leaves or, if that is more, a share of the estimate. A receiver must take 52 kbit/s to
    /// keep its channel (`DataLimits.slowestProgress`), which is less on every path that carries 260 kbit/s.
    static let least = 131_072.0, leastShare = 0.2
    /// Share of what media leaves of the estimate that messages get while media needs more: with all of it, a page showed a sixth of its frames less
    /// (measured).
    private static let spareShare = 0.6
    /// Share of the estimate next to a flow that keeps the queue full whatever is sent: yielding to it would only starve the messages.
    private static let contestedShare = 0.5
    /// More than any client reads.
    private static let most = 100_000_000.0
    /// Share of the estimate with which the first messages leave.
    private static let start = 0.2
    /// Growth per second while the rate is used: fifty times as fast after 3 s; and near the rate that last filled the queue, as CUBIC has it (RFC 9438).
    private static let growth = 1.6, growthNear = 0.3
    /// Multiples of that rate between which a rate is near it.
    private static let near = 0.8...1.2
    /// For this long after the rate fell, reports are about packets sent before; and for as long, a rate that kept messages waiting counts as used.
    private static let response = TimeSpan.milliseconds(200)
    /// After this time, the messages that were queued before their rate fell to the least have drained; media has to yield to a queue that remains then.
    private static let drain = TimeSpan.milliseconds(1_200)
    /// Messages sent within this time count as the cause of a queue if they were this share of the estimate: a single message or an acknowledgement fills none.
    private static let influence = TimeSpan.milliseconds(600), noticeable = 0.05
    /// After this long without messages, the rate that was found is outdated.
    private static let pause = TimeSpan.seconds(2)
    /// At most this many seconds of the rate at once, and at least one packet.
    private static let burst = 0.010, leastBurst = 1_200.0
    /// Microseconds of a standing queue up to which it counts as empty, as short, and beyond which it is long: CoDel's 5 ms (RFC 8289) plus the drift of
    /// clocks, a frame of video on a narrow link, and half of the delay that is heard in a conversation; to each, the time that a packet of messages takes on
    /// the path is added.
    private static let empty: Int64 = 8_000, short: Int64 = 20_000, long: Int64 = 50_000
    /// Bits of a packet of messages, and the maximum number of microseconds that one counts for.
    private static let packet = 9_600.0, longestPacket = 20_000.0

    /// 0: nothing was sent yet.
    private(set) var bitsPerSecond = 0.0
    /// The rate with which the queue last grew.
    private var full = Double.infinity
    /// Bytes that may leave.
    private var credit = Self.leastBurst
    private var last = MonotonicTime.zero
    private var lastFall = MonotonicTime.zero
    private var lastSent = MonotonicTime.zero
    /// Bytes sent in this half of the time of influence, and in the one before.
    private var sentNow = 0.0, sentBefore = 0.0
    private var turned = MonotonicTime.zero
    /// When the rate kept messages waiting, and when media's feedback last came.
    private var lastLimited = MonotonicTime.zero
    private var lastUpdate = MonotonicTime.zero

    /// Bytes that may leave now over a path of `estimate` bits per second.
    mutating func allowance(estimate: Double, at now: MonotonicTime) -> Int {
        if bitsPerSecond == 0 { bitsPerSecond = max(estimate * Self.start, 1) }
        if now - lastSent > Self.pause { bitsPerSecond = min(bitsPerSecond, max(estimate, 1)) }
        if now > last {
            let elapsed = min((now - last).seconds, 1)
            credit = min(credit + elapsed * bitsPerSecond / 8, max(bitsPerSecond / 8 * Self.burst, Self.leastBurst))
            last = now
        }
        return Int(credit)
    }

    /// Counts bytes that left while messages were permitted. Bytes beyond the credit are no debt for long, because acknowledgements never wait.
    mutating func sent(_ bytes: Int, at now: MonotonicTime) {
        guard bytes > 0 else { return }
        credit = max(credit - Double(bytes), -2 * Self.leastBurst)
        lastSent = now
        if now - turned >= Self.influence / 2 {
            sentBefore = now - turned < Self.influence ? sentNow : 0
            (sentNow, turned) = (0, now)
        }
        sentNow += Double(bytes)
    }

    /// More could have been sent. Returns when some of it may be sent.
    mutating func limited(at now: MonotonicTime) -> MonotonicTime {
        if credit < 1, now - lastSent < Self.response { lastLimited = now }
        let seconds = min(max(1 - credit, 1) * 8 / max(bitsPerSecond, 1), 0.1)
        return now + max(Pacer.tick, .microseconds(Int64(seconds * 1e6)))
    }

    /// Processes one feedback about media. Returns whether messages are to blame for the queue, and yield.
    mutating func update(_ report: Report, at now: MonotonicTime) -> Bool {
        let elapsed = min((now - lastUpdate).seconds, 0.2)
        lastUpdate = now
        guard bitsPerSecond > 0 else { return false }
        let least = self.least(report)
        // A queue may be short because media gets less than the path would carry: messages must not take what media still needs.
        let most = report.isMediaShort ? max(least, (report.estimate - report.media) * Self.spareShare) : Self.most
        bitsPerSecond = min(max(bitsPerSecond, least), most)
        let onePacket = Int64(min(Self.packet / report.estimate * 1e6, Self.longestPacket))
        guard report.isGrowing || report.wait > max(Self.short + onePacket, 3 * report.jitter / 2) else {
            let isUsed = lastLimited != .zero && now - lastLimited < Self.response
            if isUsed, report.wait < Self.empty + onePacket + report.jitter {
                let growth = Self.near.contains(bitsPerSecond / full) ? Self.growthNear : Self.growth
                bitsPerSecond = min(bitsPerSecond * (1 + growth * elapsed), most)
            }
            return false
        }
        guard isNoticeable(beside: report.estimate, at: now) else { return false }
        if now - lastFall < Self.response { return true }
        // At the least rate of messages, growth without a standing queue is only the noise of their packets between those of frames.
        guard bitsPerSecond > least else { return now - lastFall < Self.drain || report.wait < Self.short + onePacket }
        lastFall = now
        full = bitsPerSecond
        // A queue that outlasts a fall is deeper than a burst.
        bitsPerSecond = max(bitsPerSecond * (report.wait > Self.long + onePacket ? 0.3 : 0.6), least)
        return true
    }

    /// Whether messages were sent lately that may fill a path of this estimate.
    private func isNoticeable(beside estimate: Double, at now: MonotonicTime) -> Bool {
        let since = now - turned
        guard since < Self.influence else { return false }
        let bytes = since < Self.influence / 2 ? sentNow + sentBefore : sentNow
        return bytes * 8 >= estimate * Self.influence.seconds * Self.noticeable
    }

    private func least(_ report: Report) -> Double {
        if report.isContested { return report.estimate * Self.contestedShare }
        return min(Self.least, max(report.estimate - report.media, report.estimate * Self.leastShare))
    }
}
