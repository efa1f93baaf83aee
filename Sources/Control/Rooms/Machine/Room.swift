import MediaControl
public import Primitives
import SDP

/// One room as a pure state machine: intents go in with a ``RoomTurn``, effects come out in it.
///
/// Nothing here waits, reads a clock or draws a random number of its own. An intent either throws and changes nothing that
/// anybody could see, or is carried out with all its effects.
public struct Room: Sendable {
    /// The room's number, which also makes the numbers of everything in it unique in the process.
    public let id: RoomID
    /// `RM_…`, one a life of the room.
    public let sid: String
    /// What people call it.
    public let name: String
    /// Its rules.
    public let policy: RoomPolicy
    let metadata: String
    let createdAt: Int64
    let context: RoomContext

    var members: [SessionID: Member] = [:]
    /// The members in the order in which they joined; decides the order of effects.
    var order: [SessionID] = []
    var sessionByIdentity: [String: SessionID] = [:]
    var sessionBySID: [String: SessionID] = [:]
    var tracks: [TrackID: PublishedTrack] = [:]
    var trackBySID: [String: TrackID] = [:]
    var subscriptions: [SubscriptionID: Subscription] = [:]
    var peers: [PeerID: PeerOwner] = [:]
    /// Members whose descriptions no longer tell what they are sent.
    var awaitingOffers: [SessionID] = []
    /// The same, for asking whether one is among them.
    var awaitingOfferSet: Set<SessionID> = []
    /// Members of whose waiting tracks some are gone or may be subscribed to now, or who are to be told of more.
    var changedWaiting: Set<SessionID> = []
    /// Who dominates, and who did before.
    var dominant: SessionID?
    var lastDominant: SessionID?
    var speakers: [SpeakerInfo] = []
    /// Connections of the server's that are kept for this room: of each member as many as were promised with its join, or as it has, where these are
    /// more.
    public internal(set) var reservedConnections = 0
    var emptySince: MonotonicTime?
    /// The room as members were told of it last, and whether it may have changed since.
    var toldInfo: RoomInfo?
    var mayHaveChanged = false
    var wasOccupied = false
    var isEnded = false
    private var counter: UInt64 = 0

    /// Whose peer it is.
    struct PeerOwner: Sendable {
        var session: SessionID
        var connection: String
    }

    /// An empty room.
    public init(
        id: RoomID, name: String, policy: RoomPolicy, metadata: String, context: RoomContext, turn: inout RoomTurn
    ) {
        self.id = id
        self.name = name
        self.policy = policy
        self.metadata = metadata
        self.context = context
        sid = turn.sid("RM_")
        createdAt = turn.wallClock
        emptySince = turn.now
        turn.media(.addRoom(id))
        turn.log(.roomStarted)
    }

    /// A number that nothing else in the process has: the room's in the high half, a count in the low.
    mutating func nextNumber() -> UInt64 {
        counter += 1
        return id.rawValue << 32 | counter
    }
}

// MARK: Finding things

extension Room {
    func member(_ session: SessionID) throws(RoomError) -> Member {
        guard let member = members[session] else { throw RoomError(.sessionNotFound, "there is no such session") }
        return member
    }

    /// The member whose sid or identity is `name`, as far as others may know of it.
    func session(named name: String) throws(RoomError) -> SessionID {
        guard let session = sessionBySID[name] ?? sessionByIdentity[name] else {
            throw RoomError(.participantNotFound, "there is no such participant")
        }
        return session
    }

    func track(_ sid: String) throws(RoomError) -> PublishedTrack {
        guard let id = trackBySID[sid], let track = tracks[id] else {
            throw RoomError(.trackNotFound, "there is no such track")
        }
        return track
    }

    /// The member's own subscription to the track `sid`.
    func subscription(of member: Member, to sid: String) throws(RoomError) -> Subscription {
        let track = try track(sid)
        for id in member.subscriptions {
            if let subscription = subscriptions[id], subscription.track == track.id { return subscription }
        }
        throw RoomError(.subscriptionNotFound, "not subscribed to this track")
    }

    /// Whether nobody is there.
    public var isEmpty: Bool { members.isEmpty }
    /// Sessions in the order in which they joined.
    public var sessions: [SessionID] { order }
    /// Whether `session` is in this room.
    public func has(_ session: SessionID) -> Bool { members[session] != nil }
}
