public import Primitives
public import Rooms

extension RoomService {
    /// Every room by name; those of pre-call checks only where `includesChecks`.
    public func listRooms(includesChecks: Bool = false) -> [RoomInfo] {
        rooms.values.filter { includesChecks || !$0.isCheck }.map(\.room.info).sorted { $0.name < $1.name }
    }

    /// One room with its participants.
    public func room(named name: String) throws(RoomError) -> RoomDetail {
        let room = try hosted(named: name).room
        return RoomDetail(
            info: room.info, policy: room.policy, participants: room.sessions.compactMap { detail(of: $0, in: room) })
    }

    /// One participant by sid or identity.
    public func participant(_ participant: String, in name: String) throws(RoomError) -> ParticipantDetail {
        let room = try hosted(named: name).room
        guard let session = room.find(participant), let detail = detail(of: session, in: room) else {
            throw counted(RoomError(.participantNotFound, "there is no such participant"))
        }
        return detail
    }

    private func detail(of session: SessionID, in room: Room) -> ParticipantDetail? {
        guard let info = room.participant(session), let bandwidth = room.bandwidth(of: session) else { return nil }
        return ParticipantDetail(
            info: info,
            connections: room.connections(of: session).map { ConnectionInfo(id: $0.id, state: $0.state) },
            subscriptions: room.subscriptions(of: session), bandwidth: bandwidth,
            subscribeRules: room.subscribeRules(of: session))
    }

    /// Makes a room; `room_exists` when there is one of that name, `preset_not_found` when there is no such preset, `room_not_found` when there is no room
    /// `beside` whose worker it shall share. nil name: a generated one.
    public func createRoom(
        named name: String?, preset: String? = nil, policy document: PolicyDocument = PolicyDocument(),
        metadata: String = "", beside neighbour: String? = nil
    ) async throws(RoomError) -> RoomInfo {
        var turn = newTurn()
        let name = name ?? RoomNames.generated(turn: &turn)
        let hosted: HostedRoom
        do throws(RoomError) {
            guard rooms[name] == nil else { throw RoomError(.roomExists, "a room with this name exists already") }
            try TextRule.metadata.check(metadata, "the metadata")
            hosted = try makeRoom(
                named: name, preset: preset, document: document, metadata: metadata,
                beside: try neighbour.map { name throws(RoomError) in try self.hosted(named: name) }, turn: &turn)
            if cutoffs.reopen(room: name) { unkept.append(.closure(room: name, identity: nil, nil)) }
        } catch {
            throw counted(error)
        }
        return try await step(hosted, turn) { room, _ in room.info }
    }

    /// Ends a room and everybody's stay in it. Older tokens do not bring it back.
    @discardableResult
    public func deleteRoom(named name: String) async throws(RoomError) -> TokenClosure {
        let hosted = try hosted(named: name)
        let closure = closure
        refuseOlderTokens(room: name, identity: nil)
        await step(hosted) { $0.close(reason: .roomDeleted, turn: &$1) }
        return closure
    }

    /// Ends a participant's stay, named by sid or identity. Its older tokens do not bring it back, and where it is banned for `ban` no token does.
    /// `message` is told to it.
    @discardableResult
    public func remove(
        _ participant: String, from name: String, message: String? = nil, ban: TimeInterval? = nil
    ) async throws(RoomError) -> TokenClosure {
        let closure = closure
        let hosted = try hosted(named: name)
        var made: StandingRule?
        if let ban {
            // Before the step: the removed client may join again at once.
            let identity = try self.participant(participant, in: name).info.identity
            do throws(RoomError) {
                let ban = try bans.add(identity, room: name, for: ban, reason: message ?? "", turn: newTurn())
                made = .ban(
                    identity: identity, room: name, StandingRule.Ban(until: ban.until, reason: ban.reason))
            } catch {
                throw counted(error)
            }
        }
        try await step(hosted) { (room, turn) throws(RoomError) in
            try room.removeParticipant(participant, message: message, turn: &turn)
        }
        if let made { await keep(made) }
        return closure
    }

    /// Mutes a track by sid; unmuting is the publisher's to do and is refused.
    public func setMuted(_ muted: Bool, track: String, in name: String) async throws(RoomError) -> TrackInfo {
        guard muted else { throw counted(RoomError(.permissionDenied, "only the publisher can unmute")) }
        return try await step(try hosted(named: name)) { (room, turn) throws(RoomError) -> TrackInfo in
            try room.muteByOther(track, by: nil, turn: &turn)
        }
    }

    /// Asks the publisher of a muted track to unmute it.
    public func requestUnmute(track: String, in name: String) async throws(RoomError) -> TrackInfo {
        try await step(try hosted(named: name)) { (room, turn) throws(RoomError) -> TrackInfo in
            try room.requestUnmute(track, by: nil, turn: &turn)
        }
    }

    /// Those who wait to be let into a room, the first to come first.
    public func guests(ofRoom name: String) throws(RoomError) -> [WaitingGuest] {
        try hosted(named: name).room.guests
    }

    /// Lets somebody in who waits, or turns it away.
    public func decide(onGuest identity: String, in name: String, letsIn: Bool) async throws(RoomError) {
        try await step(try hosted(named: name)) { (room, turn) throws(RoomError) in
            try room.decide(onGuest: identity, letsIn: letsIn, by: nil, turn: &turn)
        }
    }
}
