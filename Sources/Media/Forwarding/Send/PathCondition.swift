public import Primitives

/// What is known of the path to a subscriber at one moment. As it is made, nothing is.
public struct PathCondition: Sendable {
    /// How far the estimate can be trusted.
    public enum Certainty: Sendable {
        /// Nothing was sent under transport-wide numbers, and no REMB came: there is no estimate.
        case unknown
        /// The first probes have not had their time, or there is REMB alone: a lack of bandwidth is no more than a guess.
        case guessed
        case settled
    }

    public internal(set) var certainty = Certainty.unknown
    /// What may be sent, headers included; nil while there is no reason for any limit.
    public internal(set) var estimate: Bitrate?
    /// The estimate comes from measurements, not from the start value.
    public internal(set) var isMeasured = false
    /// Queues, losses, silence or the receiver itself say that the path carries no more than the estimate.
    public internal(set) var isCongested = false
    /// Losses, not queues, hold the estimate down.
    public internal(set) var isBoundByLoss = false
    /// Packets are out and nothing is heard.
    public internal(set) var isSilent = false
    /// When the estimate fell for a stall that was over at once, the last time; nil before one.
    public internal(set) var wrongFall: MonotonicTime?
    /// Packets that were reported as received.
    public internal(set) var received: UInt64 = 0
    /// Share of packets lost in the last seconds, 0 to 1.
    public internal(set) var lossRate = 0.0
    /// How long packets wait in queues on the way.
    public internal(set) var queueDelay = TimeInterval.zero
    /// Bytes of probes that have left.
    public internal(set) var probeBytes: UInt64 = 0
}
