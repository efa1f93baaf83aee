/// The last state of a peer: what it carried, and the decisions about what it was sent.
public struct EndedPeer: Sendable, Hashable {
    /// Bytes that it sent to the server.
    public var bytesReceived: UInt64
    /// Bytes that the server sent to it.
    public var bytesSent: UInt64
    /// The last decisions about its videos, oldest first, with ages as of its end; empty for a peer that only publishes.
    public var decisions: [DecisionRecord]
    /// The estimates of its path over the last hour, oldest first; empty for a peer that only publishes.
    public var estimates: [EstimateRecord]

    public init(
        bytesReceived: UInt64 = 0, bytesSent: UInt64 = 0, decisions: [DecisionRecord] = [],
        estimates: [EstimateRecord] = []
    ) {
        self.bytesReceived = bytesReceived
        self.bytesSent = bytesSent
        self.decisions = decisions
        self.estimates = estimates
    }
}
