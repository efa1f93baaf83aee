import Primitives

/// Whether packets have waited equally long for seconds, which queues of other traffic do not allow: then the path has become longer, and there is no queue.
///
/// Loss-based senders fill a queue until it drops packets and then drain a part of it: CUBIC's window changes by three packets within two seconds of its
/// plateau and by ten within three (RFC 9438, section 4.2). BBR sends a quarter faster and then a quarter slower within eight round trips. A route that became
/// longer adds the same delay to each packet.
///
/// This is used only if `CrossTrafficQueue` found that the queue is not our own: the queue of a link that carries exactly what is sent is just as constant.
///
/// A wrong answer costs little: the rate then follows the slope of the delay, as in libwebrtc, which never looks at how long packets wait.
struct ConstantWait: Sendable {
    /// How long the wait must not change: longer than CUBIC takes to cross its plateau at the rates of a video call.
    private static let time = TimeSpan.seconds(5)
    /// Microseconds within which it is the same wait: a frame's packets at 2 Mbit/s.
    private static let band: Int64 = 5_000

    /// Share of lost packets that a radio loses anyway (draft-ietf-rmcat-gcc-02, section 6); a queue that is always full loses more.
    private static let mostLost = 0.02

    private var since: MonotonicTime?
    private var shortest: Int64 = 0
    private var longest: Int64 = 0
    /// How much longer than the standing wait packets usually wait, smoothed: if delays vary, the shortest delay of a few packets varies, too.
    private var spread: Int64 = 0

    init() {}

    mutating func forget() { since = nil }

    /// Processes one feedback: the standing and the usual wait in microseconds, and the share of lost packets. True when the wait has proved constant.
    mutating func update(standing: Int64, usual: Int64, lossRate: Double, at now: MonotonicTime) -> Bool {
        let wait = max(usual - standing, 0)
        let shortest = min(shortest, standing), longest = max(longest, standing)
        guard let since, lossRate <= Self.mostLost, longest - shortest <= max(Self.band, spread) else {
            spread = self.since == nil ? wait : spread
            since = now
            self.shortest = standing
            self.longest = standing
            return false
        }
        spread += (wait - spread) / 16
        self.shortest = shortest
        self.longest = longest
        return now - since >= Self.time
    }
}
