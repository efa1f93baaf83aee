public import Primitives

/// What the control plane asks a worker to report.
public enum ReportScope: Sendable, Hashable {
    /// Counters and gauges of everything in a room.
    case room(RoomID)
    /// How the bandwidth of these peers is divided now, and with the history how it came to that. Unknown and publish-only peers are left out.
    case downlinks([PeerID], withHistory: Bool)
    /// What was captured of these peers since the last such report, also of those that are no longer there.
    case captures([PeerID])
}

/// What a worker reports at one moment, from the engine up to the control plane. What the scope does not cover is empty.
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
