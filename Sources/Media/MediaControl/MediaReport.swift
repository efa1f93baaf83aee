public import Primitives

/// What the control plane requests a worker to report.
public enum ReportScope: Sendable, Hashable {
    /// Counters and gauges of everything in a room.
    case room(RoomID)
    /// How the bandwidth of these peers is divided now and, with the history, how that came about. Unknown and publish-only peers are left out.
    case downlinks([PeerID], withHistory: Bool)
    /// The packets captured of these peers since the last such report, including peers that no longer exist.
    case captures([PeerID])
}

/// A worker's report at one moment, from the engine to the control plane. The parts that the scope does not cover are empty.
public struct MediaReport: Sendable {
    public var peers: [PeerStatistics] = []
    public var tracks: [TrackStatistics] = []
    public var subscriptions: [SubscriptionStatistics] = []
    /// In the order of the peers in the scope.
    public var downlinks: [DownlinkReport] = []
    /// Of the peers in the scope that are captured.
    public var captures: [CapturedPackets] = []

    /// A report on nothing.
    public init() {}

    /// Adds another part of the same report.
    public mutating func add(_ part: MediaReport) {
        peers += part.peers
        tracks += part.tracks
        subscriptions += part.subscriptions
        downlinks += part.downlinks
        captures += part.captures
    }

    /// Sorts tracks and subscriptions by id.
    public mutating func sort() {
        tracks.sort { $0.track < $1.track }
        subscriptions.sort { $0.subscription < $1.subscription }
    }
}
