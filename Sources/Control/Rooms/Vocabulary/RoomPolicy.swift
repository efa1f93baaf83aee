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

    /// What happens when somebody joins with the identity of a member.
    public enum DuplicateIdentity: String, Sendable, Hashable, CaseIterable {
        /// The older session ends.
        case replace
        /// The newer one is refused with `identity_taken`.
        case refuse
    }

    /// Who may lock and unlock the room beside operators, who always may.
    public enum LockRight: String, Sendable, Hashable, CaseIterable {
        case operators, moderators, members
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
    /// Sources that may be published, within what each participant's permissions allow; nil: any.
    public var publishSources: Set<TrackSource>?
    /// Whether a publisher may send a video as several streams of different sizes.
    public var allowsSimulcast = true
    public var lockRight = LockRight.moderators
    public var duplicateIdentity = DuplicateIdentity.replace
    /// The room ends this long after it was created; nil: never.
    public var maxDuration: TimeInterval?
    /// A participant's stay ends this long after it joined; nil: never.
    public var maxStay: TimeInterval?
    /// Whether a stay ends when the participant's token expires; it may bring a new one before.
    public var endsStayWithToken = false
    /// A room in which nobody has been for this long ends.
    public var emptyTimeout = TimeInterval.seconds(300)
    /// A room in which somebody was ends this long after the last one left.
    public var departureTimeout = TimeInterval.seconds(20)

    /// A routed room without limits.
    public init() {}
}
