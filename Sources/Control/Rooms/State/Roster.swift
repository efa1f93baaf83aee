import MediaControl
import Primitives

/// The members of a room in the order in which they joined, their peers, and the numbers of the events sent to each.
struct Roster: Sendable {
    private var members: [SessionID: Member] = [:]
    /// In the order of joining, which is the order of effects.
    private(set) var sessions: [SessionID] = []
    /// The newest session of each identity.
    private var sessionByIdentity: [String: SessionID] = [:]
    /// Older sessions of an identity that is here several times, if the policy allows that; oldest first.
    private var olderSessions: [String: [SessionID]] = [:]
    private var sessionBySID: [String: SessionID] = [:]
    private var owners: [PeerID: PeerOwner] = [:]
    /// The number of connections that the server reserves for all these members.
    private(set) var reservedConnections = 0

    /// The session that a peer belongs to.
    struct PeerOwner: Sendable {
        let session: SessionID
        let connection: String
    }

    var isEmpty: Bool { members.isEmpty }
    var count: Int { members.count }
    var connectionCount: Int { owners.count }
    /// In no order.
    var all: some Collection<Member> { members.values }

    subscript(session: SessionID) -> Member? { members[session] }

    func session(identity: String) -> SessionID? { sessionByIdentity[identity] }
    /// All sessions of an identity, the newest last.
    func sessions(identity: String) -> [SessionID] {
        (olderSessions[identity] ?? []) + (sessionByIdentity[identity].map { [$0] } ?? [])
    }
    func session(sid: String) -> SessionID? { sessionBySID[sid] }
    func owner(of peer: PeerID) -> PeerOwner? { owners[peer] }
}

// MARK: Members

extension Roster {
    /// The caller has removed an older session of the same identity, unless several may be here.
    mutating func insert(_ member: Member) {
        members[member.session] = member
        sessions.append(member.session)
        let identity = member.info.identity
        if let older = sessionByIdentity.updateValue(member.session, forKey: identity) {
            olderSessions[identity, default: []].append(older)
        }
        sessionBySID[member.info.sid] = member.session
        // A member from another room has some already.
        for connection in member.connections {
            owners[connection.peer] = PeerOwner(session: member.session, connection: connection.id)
        }
        reservedConnections += member.reservedConnections
    }

    mutating func remove(_ session: SessionID) {
        guard let member = members.removeValue(forKey: session) else { return }
        sessions.removeAll { $0 == session }
        sessionBySID[member.info.sid] = nil
        forget(session, identity: member.info.identity)
        for connection in member.connections { owners[connection.peer] = nil }
        reservedConnections -= member.reservedConnections
    }

    private mutating func forget(_ session: SessionID, identity: String) {
        var left = sessions(identity: identity)
        left.removeAll { $0 == session }
        sessionByIdentity[identity] = left.popLast()
        olderSessions[identity] = left.isEmpty ? nil : left
    }

    /// Changes anything of a member except its connections and its identity; does nothing if there is no such session.
    mutating func update(_ session: SessionID, _ change: (inout Member) -> Void) {
        guard let index = members.index(forKey: session) else { return }
        change(&members.values[index])
    }

    /// What others see of the member or its tracks has changed.
    mutating func nextVersion(of session: SessionID) { members[session]?.info.version += 1 }
}

// MARK: Connections

extension Roster {
    /// Writes a changed connection back, or adds a new one.
    mutating func store(_ connection: Connection, of session: SessionID) {
        guard let member = members[session] else { return }
        if let index = member.connectionIndex(connection.id) {
            members[session]?.connections[index] = connection
            return
        }
        members[session]?.connections.append(connection)
        owners[connection.peer] = PeerOwner(session: session, connection: connection.id)
        if member.connections.count >= member.promisedConnections { reservedConnections += 1 }
    }

    mutating func updateConnection(_ id: String, of session: SessionID, _ change: (inout Connection) -> Void) {
        guard let member = members.index(forKey: session),
            let index = members.values[member].connectionIndex(id)
        else { return }
        change(&members.values[member].connections[index])
    }

    mutating func removeConnection(_ id: String, of session: SessionID) {
        guard let member = members[session], let index = member.connectionIndex(id) else { return }
        members[session]?.connections.remove(at: index)
        owners[member.connections[index].peer] = nil
        if member.connections.count > member.promisedConnections { reservedConnections -= 1 }
    }
}

// MARK: Events

extension Roster {
    /// Sends an event to one session; WHIP and WHEP sessions have no socket to send it on.
    mutating func notify(_ session: SessionID, _ event: RoomEvent, _ turn: inout RoomTurn) {
        guard let member = members[session], member.options.isSignalled else { return }
        let sequence = member.sequence + 1
        members[session]?.sequence = sequence
        turn.effects.append(.notify(session, SequencedEvent(sequence: sequence, event: event)))
    }

    /// Sends an event about `subject` to everybody with a roster, and to the subject itself if `includingSubject`, filtered by `isWanted`. An event about a
    /// hidden subject goes only to the subject.
    mutating func notify(
        about subject: SessionID, _ event: RoomEvent, includingSubject: Bool,
        where isWanted: (MemberOptions) -> Bool = { _ in true }, _ turn: inout RoomTurn
    ) {
        let isHidden = members[subject]?.isHidden ?? false
        for session in sessions {
            guard let options = members[session]?.options, isWanted(options) else { continue }
            if session == subject {
                if includingSubject { notify(session, event, &turn) }
            } else if !isHidden, members[session]?.options.hasRoster == true {
                notify(session, event, &turn)
            }
        }
    }

    /// Sends an event to everybody with a roster.
    mutating func notifyAll(_ event: RoomEvent, _ turn: inout RoomTurn) {
        for session in sessions where members[session]?.options.hasRoster == true { notify(session, event, &turn) }
    }
}

extension Roster {
    /// The last event of a session is not sent after all: what it announced has not happened.
    mutating func withdrawEvent(of session: SessionID) { members[session]?.sequence -= 1 }
}

// MARK: Messages

extension Roster {
    /// The sessions that get it. Unknown names are skipped, so that a member that leaves does not stop a message to the others; if all are
    /// unknown, the message is refused.
    func receivers(of message: RoomMessage, except sender: SessionID?) throws(RoomError) -> [SessionID] {
        guard let names = message.to else { return sessions.filter { $0 != sender } }
        var receivers: [SessionID] = []
        for name in names {
            let found = session(sid: name).map { [$0] } ?? sessions(identity: name)
            for session in found where session != sender && !receivers.contains(session) {
                if self[session]?.isHidden == false || sender == nil { receivers.append(session) }
            }
        }
        guard !receivers.isEmpty || names.isEmpty else {
            throw RoomError(.participantNotFound, "none of the receivers is in the room")
        }
        return receivers
    }

    /// Over a data channel if the member has one; otherwise over its socket.
    mutating func deliver(
        _ message: RoomMessage, to receivers: [SessionID], source: PeerID?, _ limits: RoomLimits, _ turn: inout RoomTurn
    ) {
        var channels: [MessageReceiver] = []
        for session in receivers {
            guard let member = self[session], member.options.wantsMessages else { continue }
            if case .foreign(let name, _) = message.content, member.options.dataProtocol.name != name { continue }
            if let channel = member.channel(for: message.channel) {
                channels.append(channel)
            } else if member.options.dataProtocol.signallingCarriesMessages,
                message.byteCount <= limits.relayBytes
            {
                notify(session, .messageReceived(message), &turn)
            }
        }
        if !channels.isEmpty { turn.effects.append(.send(message, to: channels, source: source)) }
    }
}
