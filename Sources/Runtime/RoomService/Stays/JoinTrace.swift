public import Rooms

/// How a join went, step by step, for a trace.
public struct JoinTrace: Sendable, Hashable {
    /// How it ended.
    public enum Outcome: Sendable, Hashable {
        case joined
        case refused(RoomError.Code)
    }

    public var room: String
    /// `PA_…`; nil where the join was refused.
    public var participant: String?
    /// How it takes part.
    public var profile: ParticipantProfile
    /// What its client calls itself.
    public var client: String?
    /// Milliseconds since 1970.
    public var joinedAt: Int64
    public var origin: JoinOrigin?
    /// Milliseconds from the join until each step, of those that were reached.
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
