import Primitives
import RTP

/// What a client has to report about what it receives, and when.
struct FeedbackState {
    /// SSRC of its reports.
    let ssrc: UInt32
    var nextReport = MonotonicTime.distantFuture
    var nextTransportFeedback = MonotonicTime.distantFuture
    /// When a view next requests a repair or a keyframe.
    var nextRepair = MonotonicTime.distantFuture
    var arrivals: [PacketArrival] = []
    /// The first number that the next feedback covers.
    var nextNumber: Int64?
    var feedbackCount: UInt8 = 0
    private var unwrapper = SequenceUnwrapper()

    init(ssrc: UInt32) { self.ssrc = ssrc }

    var nextDeadline: MonotonicTime { min(nextReport, nextTransportFeedback, nextRepair) }

    mutating func begin(at now: MonotonicTime, interval: TimeSpan) { nextReport = now + interval }

    /// How long a late packet can still be reported.
    private static let memory = TimeSpan.milliseconds(500)

    /// `reportsLate`: late packets are reported, together with everything that has arrived since, once more.
    mutating func arrived(_ sequence: UInt16, at now: MonotonicTime, interval: TimeSpan, reportsLate: Bool) {
        let number = unwrapper.unwrap(sequence)
        if reportsLate, let next = nextNumber {
            arrivals.removeAll { $0.sequence < next && now - $0.time > Self.memory }
            guard !arrivals.contains(where: { $0.sequence == number }) else { return }
            nextNumber = min(next, number)
        }
        arrivals.append(PacketArrival(sequence: number, time: now))
        if nextTransportFeedback == .distantFuture { nextTransportFeedback = now + interval }
    }

    mutating func scheduleRepair(of view: View, at now: MonotonicTime) {
        if view.brokenSince == .zero { nextRepair = min(nextRepair, now) }
        if !view.repairs.isEmpty { nextRepair = min(nextRepair, view.repairs.nextDeadline) }
    }
}
