public import AccessTokens
import Primitives
public import Rooms

// Why a join is refused.

extension RoomHost {
    /// Refusals that do not depend on whether the room exists.
    func checkServer(_ claims: AccessClaims, room name: String) throws(RoomError) {
        try rules.check(claims, room: name, now: media.now())
        // A client that connects anew replaces itself.
        guard rooms[name]?.room.replaces(identity: claims.identity) != true else { return }
        try capacity.check(present: rooms.sessionCount, configuration)
    }

    /// Refuses one more room; a room for a join only if joins may create rooms.
    func checkNewRoom(named name: String, forJoin: Bool) throws(RoomError) {
        guard configuration.autoCreateRooms || !forJoin else { throw RoomError(.roomNotFound, "there is no such room") }
        guard drain == nil, !isEnding else { throw RoomError(.draining, "the server is about to end") }
        guard rooms.count < configuration.maxRooms else {
            throw RoomError(.limitExceeded, "room limit of the server reached")
        }
        try RoomNames.check(name)
    }

    /// Throws the error with which a join would be refused now; nobody joins or is counted, and no room is created. A browser cannot read the status with
    /// which a socket was refused, so its client requests the reason separately. A password is not checked.
    public func checkJoin(_ request: JoinRequest) throws(RoomError) {
        let name = roomName(of: request)
        // A participant that was moved without connections returns to a reserved place.
        if let found = rooms.awaited(request.claims, in: name) {
            return try checkReturn(request.claims, from: name, to: found.hosted)
        }
        guard !isEnding else { throw Self.isShuttingDown }
        try checkServer(request.claims, room: name)
        let worker: WorkerIndex
        if let hosted = rooms[name] {
            if lockedRoom(request) != nil { _ = try Self.password(of: request, for: hosted) }
            try hosted.room.checkJoin(request, at: media.now())
            guard addsLoad(request, to: hosted) else { return }
            worker = hosted.worker
        } else {
            try checkNewRoom(named: name, forJoin: true)
            worker = try capacity.worker(in: media, forJoin: false)
        }
        try capacity.foreseeLoad(of: worker)
    }

    /// Whether a join adds a participant to the server: a client that connects anew replaces itself, and one that has just left was counted.
    func addsLoad(_ request: JoinRequest, to hosted: HostedRoom) -> Bool {
        let identity = request.claims.identity
        return !hosted.room.replaces(identity: identity) && !hasJustLeft(identity, hosted)
    }

    /// Whether a room's lock does not apply to a client: it keeps newcomers out, not members that connect anew. If an identity may be in the room more than
    /// once, a newcomer replaces nobody and may be anybody.
    func isKnown(_ identity: String?, in hosted: HostedRoom) -> Bool {
        guard hosted.room.policy.duplicateIdentity != .allow else { return false }
        return hosted.room.hasMember(identity: identity) || hasJustLeft(identity, hosted)
    }

    /// Whether `session` has ended and another session with its identity is in the room, if only one may be: a client that would resume it, such as a device
    /// that slept, has been replaced. `room`: used if the token names none.
    public func isReplaced(_ session: SessionID, _ claims: AccessClaims, room: String?) -> Bool {
        rooms.name(of: session) == nil && isIn(claims, room: room)
    }

    /// The same for the session of the participant `sid`.
    public func isReplaced(participant sid: String, _ claims: AccessClaims) -> Bool {
        guard let name = claims.video.room, rooms.place(of: sid, in: name) == nil else { return false }
        return isIn(claims, room: nil)
    }

    private func isIn(_ claims: AccessClaims, room: String?) -> Bool {
        guard let name = claims.video.room ?? room, let hosted = rooms[name] else { return false }
        return hosted.room.policy.duplicateIdentity != .allow && hosted.room.hasMember(identity: claims.identity)
    }

    private func hasJustLeft(_ identity: String?, _ hosted: HostedRoom) -> Bool {
        identity.map { hosted.recentMembers.contains($0, at: media.now()) } ?? false
    }

    /// Records the effects of an event on future joins.
    func note(_ event: RoomLogEvent, in hosted: HostedRoom) {
        switch event {
        case .connectionChanged(_, _, .closed, let reason):
            totals.connectionsEnded[reason ?? "unknown", default: 0] += 1
        case .participantJoined(let info): hosted.recentMembers.remove(info.identity)
        case .participantLeft(let info, let reason, _, _):
            if reason.permitsReturn {
                hosted.recentMembers.add(
                    info.identity, at: media.now(), limit: configuration.maxParticipantsPerRoom)
            } else {
                hosted.recentMembers.remove(info.identity)
            }
            // By an operator or by a moderator in the room.
            if reason == .removed { refuseOlderTokens(room: hosted.room.name, identity: info.identity) }
        default: break
        }
    }

    /// How long a token is valid after it expires, because of clock skew; the same as in its verification.
    private static let tokenLeewaySeconds: Int64 = 60

    /// Whether a token that was valid when it was verified still is: it has not expired, and it was not revoked.
    public nonisolated func isGood(_ claims: AccessClaims) -> Bool {
        !hasExpired(claims) && !revocations.revokes(claims, now: media.now())
    }

    /// Whether a token that was valid when it was verified has expired since.
    public nonisolated func hasExpired(_ claims: AccessClaims) -> Bool {
        wallClockMilliseconds / 1_000 - Self.tokenLeewaySeconds >= claims.expiresAt
    }

    /// Ends the streams of events whose readers' tokens are no longer valid.
    func endOutdatedFeeds() { endFeeds { !isGood($0) } }

    /// Ends the streams of events that were opened with tokens of these API keys, which were removed or have another secret now. A reader with a newer token
    /// follows again after its last event.
    public func endFeeds(ofKeys names: Set<String>) {
        if !names.isEmpty { endFeeds { names.contains($0.apiKey) } }
    }

    /// The room that a join names, or the default one.
    func roomName(of request: JoinRequest) -> String {
        request.claims.video.room.flatMap { $0.isEmpty ? nil : $0 } ?? request.room ?? configuration.defaultRoom
    }

    static let isShuttingDown = RoomError(.draining, "the server is shutting down")
}
