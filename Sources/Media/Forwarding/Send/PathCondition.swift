public import Primitives

/// What is known of the path to a subscriber at one moment; initially nothing.
public struct PathCondition: Sendable {
    /// How far the estimate can be trusted.
    public enum Certainty: Sendable {
        /// No packet was sent with a transport-wide number, and no REMB and no report of losses arrived: there is no estimate.
        case unknown
        /// The first probes are not finished, or there is only REMB, or only receiver reports: a lack of bandwidth is no more than a guess.
        case guessed
        case settled
    }

    public internal(set) var certainty = Certainty.unknown
    /// The bitrate that may be sent, headers included; nil while there is no reason for a limit.
    public internal(set) var estimate: Bitrate?
    /// The estimate comes from measurements, not from the start value.
    public internal(set) var isMeasured = false
    /// Queues, losses, silence or the receiver itself show that the path carries no more than the estimate.
    public internal(set) var isCongested = false
    /// Losses, not queues, hold the estimate down.
    public internal(set) var isBoundByLoss = false
    /// Packets were sent and no feedback arrives.
    public internal(set) var isSilent = false
    /// When the estimate last fell for a stall that ended at once; nil before the first.
    public internal(set) var wrongFall: MonotonicTime?
    /// Packets that were reported as received.
    public internal(set) var received: UInt64 = 0
    /// Share of packets lost in the last seconds, 0 to 1.
    public internal(set) var lossRate = 0.0
    /// How long packets wait in queues on the path.
    public internal(set) var queueDelay = TimeSpan.zero
    /// Probe bytes sent.
    public internal(set) var probeBytes: UInt64 = 0
}
