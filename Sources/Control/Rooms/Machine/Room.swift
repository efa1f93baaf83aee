import MediaControl
public import Primitives
public import SDP

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
    public internal(set) var policy: RoomPolicy
    /// Grows with each change of the rules; the first are 1.
    public internal(set) var policyRevision: UInt64 = 1
    /// Who may come in. The host of the room keeps the password, and checks it before a join.
    public internal(set) var lock = RoomLock.open
    var metadata: String
    /// The server is about to end.
    var drain: DrainNotice?
    let createdAt: Int64
    /// The same, for the room's longest duration.
    let createdMoment: MonotonicTime
    private(set) var context: RoomContext

    var roster = Roster()
    var routing = Routing()
    var waitingTracks = WaitingTracks()
    var waitingRoom = WaitingRoom()
    var outdated = OutdatedDescriptions()
    var dominant = DominantSpeaker()
    var announcement = RoomAnnouncement()
    var recordings = Recordings()
    var playbacks = Playbacks()
    var occupancy: Occupancy
    private var counter: UInt64 = 0

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
        createdMoment = turn.now
        occupancy = Occupancy(emptySince: turn.now)
        turn.media(.addRoom(id))
        if policy.audio != RoomAudio() { turn.media(.setRoomAudio(id, policy.audio)) }
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
        guard let member = roster[session] else { throw RoomError(.sessionNotFound, "there is no such session") }
        return member
    }

    func connection(_ id: String, of session: SessionID) throws(RoomError) -> Connection {
        let member = try member(session)
        guard let index = member.connectionIndex(id) else {
            throw RoomError(.connectionNotFound, "there is no such connection")
        }
        return member.connections[index]
    }

    /// The member whose sid or identity is `name`, as far as others may know of it.
    func session(named name: String) throws(RoomError) -> SessionID {
        guard let session = find(name) else {
            throw RoomError(.participantNotFound, "there is no such participant")
        }
        return session
    }

    func track(_ sid: String) throws(RoomError) -> RoomTrack {
        guard let track = routing.track(sid: sid) else {
            throw RoomError(.trackNotFound, "there is no such track")
        }
        return track
    }

    /// The member's own subscription to the track `sid`.
    func subscription(of member: Member, to sid: String) throws(RoomError) -> RoomSubscription {
        guard let subscription = routing.subscription(of: member.session, to: try track(sid).id) else {
            throw RoomError(.subscriptionNotFound, "not subscribed to this track")
        }
        return subscription
    }

    /// Where clients reach the room's worker from now on; descriptions that were made keep what they say.
    public mutating func set(candidates: [Candidate]) { context.candidates = candidates }

    /// How many may be in the room from the next join on, if its policy permits more.
    public mutating func set(participants: Int) { context.limits.participants = participants }

    /// Whether nobody is there.
    public var isEmpty: Bool { roster.isEmpty }
    /// Sessions in the order in which they joined.
    public var sessions: [SessionID] { roster.sessions }
    /// Whether `session` is in this room.
    public func has(_ session: SessionID) -> Bool { roster[session] != nil }
    /// Whether somebody with this identity is in the room.
    public func hasMember(identity: String?) -> Bool { identity.flatMap(roster.session(identity:)) != nil }
    /// Whether the room has a peer or a track of this number.
    public func owns(_ number: UInt64) -> Bool {
        roster.owner(of: PeerID(number)) != nil || routing[TrackID(number)] != nil
    }
    /// Peer connections of the server's that are kept for this room's members: of each as many as its join was promised, or as it has, where these
    /// are more.
    public var reservedConnections: Int { roster.reservedConnections }
}

// MARK: Changes that are announced

extension Room {
    /// The participant changed: a new version, for everybody.
    mutating func participantChanged(_ session: SessionID, _ turn: inout RoomTurn) {
        roster.nextVersion(of: session)
        guard let info = participant(session) else { return }
        roster.notify(about: session, .participantUpdated(info), includingSubject: true, &turn)
    }

    /// A track changed, for everybody.
    mutating func trackChanged(_ id: TrackID, _ turn: inout RoomTurn) {
        guard let track = routing[id] else { return }
        roster.nextVersion(of: track.publisher)
        roster.notify(about: track.publisher, .trackUpdated(track.info), includingSubject: true, &turn)
    }

    /// A subscription changed, for its member.
    mutating func subscriptionChanged(_ id: SubscriptionID, _ turn: inout RoomTurn) {
        guard let subscription = routing[id] else { return }
        roster.notify(subscription.member, .subscriptionUpdated(info(of: subscription)), &turn)
    }
}
