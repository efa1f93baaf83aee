import MediaControl
import Primitives
public import RoomService
import Rooms

/// The summary of a past stay as JSON shows it.
public struct SessionModel: Codable, Sendable, Hashable {
    /// A track that was published.
    public struct Track: Codable, Sendable, Hashable {
        /// `audio` or `video`.
        public var kind: String
        /// For example `camera`.
        public var source: String
        /// Absent where nothing was sent.
        public var codec: String?
        /// Milliseconds since 1970.
        public var publishedAt: Int64
        /// Milliseconds since 1970.
        public var unpublishedAt: Int64
    }

    /// `PA_…`, the participant; one that was moved has a stay in each room, all with the same sid.
    public var session: String
    /// The room's name.
    public var room: String
    /// `RM_…`, the life of the room.
    public var roomSid: String
    /// Who it was.
    public var identity: String
    /// What others were shown.
    public var name: String
    /// `full`, `publishOnly` or `viewer`.
    public var profile: String
    /// Milliseconds since 1970.
    public var joinedAt: Int64
    /// Milliseconds since 1970.
    public var leftAt: Int64
    /// How long it lasted.
    public var durationSeconds: Double
    /// Why it ended.
    public var reason: String
    /// The time until the first peer connection was up; absent if none ever was.
    public var connectedAfterMilliseconds: Int64?
    /// How long the verification of the token took before the join, in microseconds.
    public var tokenVerifiedInMicroseconds: Int64?
    /// Milliseconds from the join until each step that was reached: `offer`, `ice`, `dtls`, `received`, `receivedKeyframe`, `sent`, `sentVideo`.
    public var reachedAfterMilliseconds: [String: Int64]
    /// In the order in which they were published.
    public var tracks: [Track]
    /// From the participant.
    public var bytesReceived: UInt64
    /// To the participant.
    public var bytesSent: UInt64
    /// Network quality, 0 to 5; absent if it was not measured.
    public var averageQuality: Double?
    /// The worst of it.
    public var worstQuality: Int?
    /// The name that the client gave, or its HTTP user agent.
    public var client: String?
    /// Freezes of the videos that it played, as its client reported; absent if it reported nothing.
    public var freezeCount: UInt64?
    /// How long they took together.
    public var freezeSeconds: Double?

    /// The model of `summary`.
    public init(_ summary: StaySummary) {
        session = summary.info.sid
        room = summary.room
        roomSid = summary.roomSID
        identity = summary.info.identity
        name = summary.info.name
        profile = summary.info.profile.rawValue
        joinedAt = summary.info.joinedAt
        leftAt = summary.leftAt
        durationSeconds = Double(summary.leftAt - summary.info.joinedAt) / 1_000
        reason = summary.reason.rawValue
        connectedAfterMilliseconds = summary.connectedAfterMilliseconds
        tokenVerifiedInMicroseconds = summary.tokenVerification.map { $0.nanoseconds / 1_000 }
        reachedAfterMilliseconds = Dictionary(
            uniqueKeysWithValues: summary.steps.map { ($0.key.rawValue, $0.value) })
        tracks = summary.tracks.map { track in
            Track(
                kind: track.kind.rawValue, source: track.source.rawValue, codec: track.codec?.word,
                publishedAt: track.publishedAt, unpublishedAt: track.unpublishedAt)
        }
        bytesReceived = summary.bytesReceived
        bytesSent = summary.bytesSent
        averageQuality = summary.averageQuality
        worstQuality = summary.worstQuality
        client = summary.info.client
        freezeCount = summary.freezes?.count
        freezeSeconds = summary.freezes?.duration.seconds
    }
}
