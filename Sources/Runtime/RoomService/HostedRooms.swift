import AccessTokens
import MediaControl
import Primitives
import Rooms

/// The hosted rooms, by name, and in which of them each session, peer and track is.
struct HostedRooms {
    private var rooms: [String: HostedRoom] = [:]
    private var nameByID: [RoomID: String] = [:]
    private var nameBySession: [SessionID: String] = [:]
    /// Sessions that were moved, whose clients may not know it yet, with their participants' sids and identities.
    private var movedSessions: [SessionID: (participant: String, identity: String)] = [:]
    private var sessionByMovedParticipant: [String: SessionID] = [:]
    /// Peers and tracks that are in another room than the one that made them.
    private(set) var moved = MovedNumbers()
    private var lastRoom: UInt64 = 0

    var count: Int { rooms.count }
    var sessionCount: Int { nameBySession.count }
    /// In no order.
    var all: some Collection<HostedRoom> { rooms.values }
    var names: [String] { rooms.keys.sorted() }

    /// The names of rooms whose deadline has come.
    func due(at now: MonotonicTime) -> [String] {
        rooms.filter { $0.value.nextDeadline <= now }.keys.sorted()
    }

    subscript(name: String) -> HostedRoom? { rooms[name] }

    /// The room that a session is in; nil: it has ended.
    func name(of session: SessionID) -> String? { nameBySession[session] }

    /// The room that a media event belongs to.
    func room(of event: MediaEvent) -> HostedRoom? { nameByID[moved.room(of: event)].flatMap { rooms[$0] } }

    /// The number of a room that is about to be created.
    mutating func nextID() -> RoomID {
        lastRoom += 1
        return RoomID(lastRoom)
    }

    mutating func insert(_ hosted: HostedRoom) {
        rooms[hosted.room.name] = hosted
        nameByID[hosted.room.id] = hosted.room.name
    }

    mutating func remove(_ hosted: HostedRoom) {
        rooms[hosted.room.name] = nil
        nameByID[hosted.room.id] = nil
    }

    /// From now on the session is in the room with this name.
    mutating func place(_ session: SessionID, in room: String) { nameBySession[session] = room }

    /// The session has ended.
    mutating func forget(_ session: SessionID) {
        nameBySession[session] = nil
        if let moved = movedSessions.removeValue(forKey: session) { sessionByMovedParticipant[moved.participant] = nil }
    }

    /// From now on a member is in another room, with its peers and tracks.
    mutating func move(_ member: MovingMember, to hosted: HostedRoom) {
        nameBySession[member.session] = hosted.room.name
        movedSessions[member.session] = (member.info.sid, member.info.identity)
        sessionByMovedParticipant[member.info.sid] = member.session
        moved.add(member.numbers, to: hosted.room.id)
    }

    // A client whose socket was down during a move presents a token for the room that it knows. The session's room decides which tokens are valid for it.

    /// The session of a participant, and its room: the named room, or the one that it was moved to; nil: none.
    func place(of participant: String, in name: String) -> (hosted: HostedRoom, session: SessionID)? {
        if let hosted = rooms[name], let session = hosted.room.find(participant) { return (hosted, session) }
        guard let session = sessionByMovedParticipant[participant],
            let hosted = nameBySession[session].flatMap({ rooms[$0] })
        else { return nil }
        return (hosted, session)
    }

    /// The session that a join with `claims` continues, and its room: the named room, or the one that it was moved to; nil: there is none. If a member with
    /// that identity is in the named room, the join may be that client's return.
    func awaited(_ claims: AccessClaims, in name: String) -> (hosted: HostedRoom, session: SessionID)? {
        if let hosted = rooms[name] {
            if let session = hosted.room.awaited(claims) { return (hosted, session) }
            guard !hosted.room.hasMember(identity: claims.identity) else { return nil }
        }
        for (session, moved) in movedSessions where moved.identity == claims.identity {
            guard let hosted = nameBySession[session].flatMap({ rooms[$0] }), hosted.room.awaited(claims) == session
            else { continue }
            return (hosted, session)
        }
        return nil
    }

    /// Removes moved peers and tracks that have ended.
    mutating func forgetRemoved() {
        let (nameByID, rooms) = (nameByID, rooms)
        moved.keep { number, room in nameByID[room].flatMap { rooms[$0] }?.room.owns(number) == true }
    }
}
