/// The last that is known of a peer.
public struct EndedPeer: Sendable, Hashable {
    public var statistics: PeerStatistics
    /// The history of its downlink; nil for a peer that only publishes.
    public var downlink: DownlinkReport?

    public init(statistics: PeerStatistics, downlink: DownlinkReport? = nil) {
        self.statistics = statistics
        self.downlink = downlink
    }
}
