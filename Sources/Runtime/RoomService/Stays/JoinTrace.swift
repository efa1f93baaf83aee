public import Rooms

/// The steps of a join, for a trace.
public struct JoinTrace: Sendable, Hashable {
    /// How it ended.
    public enum Outcome: Sendable, Hashable {
        case joined
        case refused(RoomError.Code)
    }

    public var room: String
    /// `PA_…`; nil if the join was refused.
    public var participant: String?
    /// Its role.
    public var profile: ParticipantProfile
    /// The client's name for itself.
    public var client: String?
    /// Milliseconds since 1970.
    public var joinedAt: Int64
    public var origin: JoinOrigin?
    /// Milliseconds from the join until each reached step.
    public var steps: [JoinStep: Int64]
    public var outcome: Outcome

    /// A join at `joinedAt`.
    public init(
        room: String, participant: String?, profile: ParticipantProfile, client: String? = nil, joinedAt: Int64,
        origin: JoinOrigin? = nil, steps: [JoinStep: Int64] = [:], outcome: Outcome
    ) {
        self.room = room
        self.participant = participant
        self.profile = profile
        self.client = client
        self.joinedAt = joinedAt
        self.origin = origin
        self.steps = steps
        self.outcome = outcome
    }
}
