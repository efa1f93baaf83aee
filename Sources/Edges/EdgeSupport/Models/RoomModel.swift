import MediaControl
public import Rooms

/// A room as JSON shows it.
public struct RoomModel: Codable, Sendable, Hashable {
    /// `RM_…`.
    public var sid: String
    /// The name by which people join.
    public var name: String
    /// Opaque text.
    public var metadata: String
    /// `routed` or `peerToPeer`.
    public var topology: String
    /// nil: no limit of its own.
    public var maxParticipants: Int?
    /// Who may join: `open`, `password` or `closed`.
    public var lock: String
    /// `false`: the policy lets nobody send messages; nil: everybody with the permission may.
    public var allowMessages: Bool?
    /// The number of members, without hidden ones.
    public var participants: Int
    /// Members that publish.
    public var publishers: Int
    /// Milliseconds since 1970.
    public var createdAt: Int64
    /// What is being recorded; nil: nothing.
    public var recordings: [RecordingInProgressModel]?

    /// The model of `info`.
    public init(_ info: RoomInfo) {
        sid = info.sid
        name = info.name
        metadata = info.metadata
        topology = info.topology.rawValue
        maxParticipants = info.maxParticipants
        lock = info.lock.rawValue
        allowMessages = info.allowsMessages ? nil : false
        participants = info.participants
        publishers = info.publishers
        createdAt = info.createdAt
        recordings = info.recordings.isEmpty ? nil : info.recordings.map(RecordingInProgressModel.init)
    }
}

/// A recording in progress, as it is announced to members.
public struct RecordingInProgressModel: Codable, Sendable, Hashable {
    /// `RC_…`.
    public var sid: String
    /// The sid of the only participant that is recorded.
    public var participant: String?
    /// The sid of the only track that is recorded.
    public var track: String?
    /// The sources that are recorded; nil: all.
    public var sources: [String]?
    /// The only participants that are recorded, by sid or identity, if the room's policy names some.
    public var participants: [String]?
    /// Whether the room's policy started it; nil: it did not.
    public var byPolicy: Bool?
    /// Milliseconds since 1970.
    public var startedAt: Int64

    /// The model of `info`.
    public init(_ info: RecordingInfo) {
        sid = info.sid
        participant = info.scope.participant
        track = info.scope.track
        sources = info.scope.sources.map { $0.map(\.rawValue).sorted() }
        participants = info.scope.participants.map { $0.sorted() }
        byPolicy = info.isByPolicy ? true : nil
        startedAt = info.startedAt
    }
}
