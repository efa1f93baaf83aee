public import MediaControl
public import Primitives

/// The rules of one room.
public struct RoomPolicy: Sendable, Hashable {
    /// Who carries the media.
    public enum Topology: String, Sendable, Hashable, CaseIterable {
        /// The server forwards.
        case routed
        /// Members connect to each other; the server only relays their messages.
        case peerToPeer
    }

    public var topology = Topology.routed
    /// nil: no limit other than the server's.
    public var maxParticipants: Int?
    /// Whether hidden and publish-only members count towards `maxParticipants`.
    public var countsHidden = false
    public var countsPublishOnly = true
    public var maxPublishers: Int?
    /// What holds for each participant's bandwidth, up and down.
    public var bandwidth = BandwidthProfile()
    /// Codecs allowed, most wanted first; empty: all, in the publisher's order.
    public var audioCodecs: [Codec] = []
    public var videoCodecs: [Codec] = []
    /// No video at all in this room.
    public var audioOnly = false
    /// Cap of each published video track.
    public var maxVideoBitrate: Bitrate?
    /// A room in which nobody has been for this long ends.
    public var emptyTimeout = TimeInterval.seconds(300)
    /// A room in which somebody was ends this long after the last one left.
    public var departureTimeout = TimeInterval.seconds(20)

    /// A routed room without limits.
    public init() {}
}
