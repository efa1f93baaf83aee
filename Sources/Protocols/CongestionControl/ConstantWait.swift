import Primitives

/// Whether packets have waited equally long for seconds, which queues of other traffic do not allow: it is a longer path and no queue.
///
/// Loss-based senders fill a queue until it drops packets and then drain a part of it: CUBIC's window changes by three packets within two seconds of its
/// plateau and by ten within three (RFC 9438, section 4.2). BBR sends a quarter faster and then a quarter slower within eight round trips. A route that became longer adds
/// the same delay to each packet.
///
/// This is asked only where `CrossTrafficQueue` found that the queue is not our own: one that holds just what is sent is as constant.
///
/// A wrong answer costs little: the rate then follows the slope of the delay, as in libwebrtc, which never looks at how long packets wait.
struct ConstantWait: Sendable {
    /// How long the wait must not change: longer than the plateau of CUBIC at the rates of a video call, from one side to the other.
    private static let time = TimeInterval.seconds(5)
    /// Microseconds within which it is the same wait: a frame's packets at 2 Mbit/s.
    private static let band: Int64 = 5_000

    /// Share of lost packets that a radio loses anyway (draft-ietf-rmcat-gcc-02, section 6); a queue that is always full loses more.
    private static let mostLost = 0.02

    private var since: MonotonicTime?
    private var shortest: Int64 = 0
    private var longest: Int64 = 0
    /// How much longer than the standing wait packets wait for, smoothed: delays that vary move the shortest of some packets, too.
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
