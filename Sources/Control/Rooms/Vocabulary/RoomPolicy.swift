public import MediaControl
public import Primitives
public import SDP

/// The rules of one room.
public struct RoomPolicy: Sendable, Hashable {
    /// Who carries the media.
    public enum Topology: String, Sendable, Hashable, CaseIterable {
        /// The server forwards.
        case routed
        /// Members connect to each other; the server only relays their messages.
        case peerToPeer
    }

    /// What happens when a client joins with the identity of a member.
    public enum DuplicateIdentity: String, Sendable, Hashable, CaseIterable {
        /// The older session ends.
        case replace
        /// The newer one is refused with `identity_taken`.
        case refuse
        /// Both are in the room, as separate participants.
        case allow
    }

    /// Who may lock and unlock the room, besides operators, who always may.
    public enum LockRight: String, Sendable, Hashable, CaseIterable {
        case operators, moderators, members
    }

    /// When the recording of a room begins.
    public enum RecordingStart: String, Sendable, Hashable, CaseIterable {
        /// When an operator, a moderator or a recorder begins one.
        case manual
        /// With the first track that is to be recorded; it continues until the room ends.
        case fromStart
    }

    public var topology = Topology.routed
    /// nil: no limit other than the server's.
    public var maxParticipants: Int?
    /// Whether hidden and publish-only members count towards `maxParticipants`.
    public var countsHidden = false
    public var countsPublishOnly = true
    public var maxPublishers: Int?
    /// Limits that apply to each participant's bandwidth, up and down.
    public var bandwidth = BandwidthProfile()
    /// Codecs allowed, most preferred first; empty: all, in the publisher's order.
    public var audioCodecs: [Codec] = []
    public var videoCodecs: [Codec] = []
    /// Profiles of H.264 that may be published, most preferred first; empty: all.
    public var h264Profiles: [H264Profile] = []
    /// Profiles of VP9 (RFC 9628 section 7) and of AV1 that may be published; empty: all.
    public var vp9Profiles: [Int] = []
    public var av1Profiles: [Int] = []
    /// No video at all in this room.
    public var audioOnly = false
    /// Cap of each published video track.
    public var maxVideoBitrate: Bitrate?
    /// Sources that may be published, within what each participant's permissions allow; nil: any.
    public var publishSources: Set<TrackSource>?
    /// The sources among these that only moderators may publish.
    public var moderatorSources: Set<TrackSource> = []
    /// Whether a publisher may send a video as several streams of different sizes.
    public var allowsSimulcast = true
    /// Whether members may send messages; the API always may.
    public var allowsMessages = true
    /// The bounds within which receivers choose their playout delay for video; nil: as the publisher says.
    public var minPlayoutDelay: TimeSpan?
    public var maxPlayoutDelay: TimeSpan?
    /// Which microphones are forwarded, and how speakers are detected.
    public var audio = RoomAudio()
    /// Identities whose microphones are forwarded however quiet they are.
    public var alwaysHeard: Set<String> = []
    /// Who may receive what, unless an operator has set rules for a participant; nil: everything.
    public var subscribeRules: [SubscribeRule]?
    public var recording = RecordingStart.manual
    /// Sources that are recorded, whoever began the recording; nil: all.
    public var recordingSources: Set<TrackSource>?
    /// Participants that are recorded, by sid or identity, whoever began the recording; nil: everybody.
    public var recordingParticipants: Set<String>?
    /// File layout of new recordings, unless the request that starts one overrides it.
    public var recordingOptions = RecordingOptions()
    /// Only participants that encrypt end to end may take part.
    public var requiresEncryption = false
    /// Everybody but moderators waits until an operator or a moderator admits them.
    public var waitingRoom = false
    public var lockRight = LockRight.moderators
    public var duplicateIdentity = DuplicateIdentity.replace
    /// The room ends this long after it was created; nil: never.
    public var maxDuration: TimeSpan?
    /// A participant's stay ends this long after it joined; nil: never.
    public var maxStay: TimeSpan?
    /// Whether a stay ends when the participant's token expires; the client may present a new one before.
    public var endsStayWithToken = false
    /// A room that nobody has joined ends after this.
    public var emptyTimeout = TimeSpan.seconds(300)
    /// A room ends this long after its last participant left.
    public var departureTimeout = TimeSpan.seconds(20)

    /// A routed room without limits.
    public init() {}
}

extension RoomPolicy {
    /// The bounds of receivers' playout delay, if one is given; if the maximum is below the minimum, the minimum wins.
    var playoutDelay: PlayoutDelayBounds? {
        guard minPlayoutDelay != nil || maxPlayoutDelay != nil else { return nil }
        let unbounded = PlayoutDelayBounds.unbounded
        return PlayoutDelayBounds(
            minimum: minPlayoutDelay ?? unbounded.minimum, maximum: maxPlayoutDelay ?? unbounded.maximum)
    }

    /// The same for a receiver that was notified of `former` before: it keeps applying that until it is notified again.
    func playoutDelay(after former: PlayoutDelayBounds?) -> PlayoutDelayBounds? {
        playoutDelay ?? former.map { _ in .unbounded }
    }
}
