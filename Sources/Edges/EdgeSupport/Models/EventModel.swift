public import RoomService
import Rooms

/// An event of a room as JSON shows it, in event streams and webhooks. Absent members do not apply to its type.
public struct EventModel: Codable, Sendable, Hashable {
    /// Its position among all events: a reader that sends it gets the events after it.
    public var id: String
    /// Its gap-free number within the life of the room, or, for an event of the server, within the life of the server, from 1.
    public var sequence: UInt64
    /// Milliseconds since 1970.
    public var at: Int64
    /// What happened, for example `participantJoined`.
    public var type: String
    /// The room's name; empty if the event is about the server rather than a room.
    public var room: String
    /// `RM_…`, one per life of the room; empty if `room` is.
    public var roomSid: String
    /// `PA_…`, the participant that it is about.
    public var participant: String?
    /// The participant's identity.
    public var identity: String?
    /// The participant as it is now, or was when it left.
    public var info: ParticipantModel?
    /// The track as it is now.
    public var track: TrackModel?
    /// Why it happened.
    public var reason: String?
    /// For a participant who left: whether one of its peer connections was ever up.
    public var hasConnected: Bool?
    /// The name of the peer connection.
    public var connection: String?
    /// The state of the peer connection.
    public var state: String?
    /// The candidates that the server offered.
    public var serverCandidates: String?
    /// The candidates that the client offered.
    public var clientCandidates: String?
    /// Network quality, 0 to 5.
    public var quality: Int?
    /// Who may join: `open`, `password` or `closed`.
    public var lock: String?
    /// `PA_…` of the participant who did it; absent: an operator. For a change of the policy and for a revocation: the API key, and the identity in the token
    /// if it has one.
    public var by: String?
    /// The revision of the rules in force.
    public var revision: UInt64?
    /// The participant's permissions from now on.
    public var permissions: PermissionsModel?
    /// The name of the guest who waits.
    public var name: String?
    /// For a guest who waited: whether it was let in.
    public var letIn: Bool?
    /// Why somebody could not join, or could not publish.
    public var code: String?
    /// When a ban or a revocation ends: milliseconds since 1970.
    public var until: Int64?
    /// The `jti` of the token that was revoked; if all tokens of a participant were revoked, `identity` takes its place.
    public var tokenId: String?
    /// `RC_…`, the recording that it is about.
    public var recording: String?
    /// `TR_…`, the track of the recording that it is about.
    public var recordedTrack: String?
    /// `JB_…`, the job on a recording that it is about.
    public var job: String?
    /// `PB_…`, the playback that it is about.
    public var playback: String?
    /// The length of the gap in a recording.
    public var milliseconds: Int64?
    /// `CA_…`, the capture of a participant's decrypted packets; `by` is then the API key, and the identity in the token if it has one.
    public var capture: String?
    /// For a capture: whether it contains the media, or headers only.
    public var payload: Bool?

    /// Every word that `type` may be.
    public static let types = Set(RoomLogEventType.allCases.map(\.rawValue))

    /// The model of `entry`.
    public init(_ entry: RoomLogEntry) {
        id = entry.cursor.text
        sequence = entry.sequence
        at = entry.at
        type = entry.event.type.rawValue
        room = entry.room
        roomSid = entry.roomSID
        set(entry.event)
    }

    private mutating func set(_ event: RoomLogEvent) {
        switch event {
        case .roomStarted, .roomEnded: break
        case .participantJoined(let info), .participantUpdated(let info): set(info)
        case .participantLeft(let info, let reason, let hasConnected, _):
            set(info)
            self.reason = reason.rawValue
            self.hasConnected = hasConnected
        case .trackPublished(let info), .trackUnpublished(let info), .trackMuted(let info):
            participant = info.participant
            identity = info.identity
            track = TrackModel(info)
        case .connectionChanged(let participant, let connection, let state, let reason):
            (self.participant, self.connection) = (participant, connection)
            (self.state, self.reason) = (state.rawValue, reason)
        case .iceFailed(let participant, let connection, let server, let client):
            (self.participant, self.connection) = (participant, connection)
            (serverCandidates, clientCandidates) = (server.text, client.text)
        case .noCommonCodec(let participant, let track):
            self.participant = participant
            reason = track.map { "track \($0)" }
        case .dominantSpeakerChanged(let participant): self.participant = participant
        case .qualityChanged(let participant, let quality):
            (self.participant, self.quality) = (participant, quality)
        case .lockChanged(let lock, let by):
            (self.lock, self.by) = (lock.rawValue, by)
        case .policyChanged(let revision, let by):
            (self.revision, self.by) = (revision, by)
        case .permissionsChanged(let participant, let permissions):
            self.participant = participant
            self.permissions = PermissionsModel(permissions)
        case .captureChanged(let participant, let notice):
            self.participant = participant
            (capture, payload, by) = (notice.id, notice.keepsPayload, notice.by)
        case .guestWaiting(let guest):
            (identity, name) = (guest.identity, guest.name)
        case .guestDecided(let identity, let isLetIn, let by):
            (self.identity, letIn, self.by) = (identity, isLetIn, by)
        case .publicationRefused(let participant, let identity, let code):
            (self.participant, self.identity) = (participant, identity)
            self.code = code.rawValue
        case .banChanged(let identity, let until, let reason):
            self.identity = identity
            self.until = until
            self.reason = reason.isEmpty ? nil : reason
        case .revocationChanged(let subject, let until, let by):
            set(subject)
            (self.until, self.by) = (until, by)
        case .joinRefused(let identity, let code):
            self.identity = identity
            self.code = code.rawValue
        case .recording(let event): set(event)
        case .playback(let event):
            (playback, reason) = (event.playback, event.reason)
            (participant, identity) = (event.participant, event.identity)
        }
    }

    private mutating func set(_ subject: Revocations.Subject) {
        switch subject {
        case .token(let id): tokenId = id
        case .identity(let name): identity = name
        }
    }

    private mutating func set(_ event: RecordingEvent) {
        recording = event.recording
        recordedTrack = event.track
        job = event.job
        reason = event.reason
        milliseconds = event.milliseconds
    }

    private mutating func set(_ info: ParticipantInfo) {
        participant = info.sid
        identity = info.identity
        self.info = ParticipantModel(info)
    }
}
