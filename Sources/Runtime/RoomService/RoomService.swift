public import Rooms

/// Hosts the rooms: serialises what sessions ask, sends commands to workers, delivers events.
public actor RoomService {
    /// The configuration it was started with.
    public nonisolated let configuration: RoomServiceConfiguration
    let media: any MediaPlane
    let log: @Sendable (RoomLogEntry) -> Void

    /// A service without rooms. `log` must return at once.
    public init(
        configuration: RoomServiceConfiguration = RoomServiceConfiguration(), media: any MediaPlane,
        log: @escaping @Sendable (RoomLogEntry) -> Void = { _ in }
    ) {
        self.configuration = configuration
        self.media = media
        self.log = log
    }

    /// Serves until the task is cancelled: takes media events and watches deadlines. Call once.
    public func run() async {}

    /// Tells every member `server_shutdown`, ends every session, refuses new ones.
    public func shutDown() async {}

    /// Refuses new rooms and joins with `draining`; who is in stays.
    public func startDraining() {}
}

// MARK: Sessions

extension RoomService {
    /// Joins a room, creating it where that is allowed.
    public func join(_ request: JoinRequest) async throws(RoomError) -> JoinedSession { throw RoomError(.overloaded) }

    /// Joins and publishes in one step (WHIP). The only connection is called "main".
    public func joinPublisher(_ request: JoinRequest, offer: String) async throws(RoomError) -> ConnectedSession {
        throw RoomError(.overloaded)
    }

    /// Joins and plays in one step (WHEP). The only connection is called "main".
    public func joinViewer(
        _ request: JoinRequest, offer: String, follow: FollowTarget
    ) async throws(RoomError) -> ConnectedSession {
        throw RoomError(.overloaded)
    }

    /// The socket is gone: the session waits for `resume` as long as the configuration says; media goes on.
    public func detach(_ session: SessionID) {}

    /// Goes on with a session on a new socket, with every event after `sequence`. The older socket's events end.
    public func resume(_ session: SessionID, after sequence: UInt64) throws(RoomError) -> ResumedSession {
        throw RoomError(.sessionNotFound)
    }

    /// A complete snapshot of now, for a client that wants to start over on its session.
    public func snapshot(_ session: SessionID) throws(RoomError) -> SessionSnapshot {
        throw RoomError(.sessionNotFound)
    }

    /// A sign of life.
    public func keepAlive(_ session: SessionID) {}

    /// Says goodbye; ends all connections of the session.
    public func leave(_ session: SessionID) async {}

    /// Everything that needs no description exchange.
    public func perform(_ request: SessionRequest, in session: SessionID) async throws(RoomError) {
        throw RoomError(.sessionNotFound)
    }
}

// MARK: Connections

extension RoomService {
    /// Answers a client's offer on `connection` (a name that the client chose; created on first use).
    public func offer(
        _ session: SessionID, connection: String, sdp: String
    ) async throws(RoomError) -> ConnectionAnswer {
        throw RoomError(.sessionNotFound)
    }

    /// Takes a client's answer to the server's offer on `connection`.
    public func answer(_ session: SessionID, connection: String, sdp: String) async throws(RoomError) {
        throw RoomError(.sessionNotFound)
    }

    /// A trickled candidate; nil or empty: no more. ICE-lite learns addresses from checks, so it is only validated.
    public func candidate(
        _ session: SessionID, connection: String, candidate: String?, mid: String?
    ) throws(RoomError) {
        throw RoomError(.sessionNotFound)
    }

    /// A trickle fragment (RFC 8840) as WHIP's PATCH carries it. nil: only candidates. A new ufrag restarts ICE: the
    /// server's fragment and the new tag come back.
    public func fragment(
        _ session: SessionID, connection: String, fragment: String
    ) async throws(RoomError) -> (fragment: String, iceTag: String)? {
        throw RoomError(.sessionNotFound)
    }

    /// Ends one connection, not the member (D5).
    public func bye(_ session: SessionID, connection: String) async throws(RoomError) {
        throw RoomError(.sessionNotFound)
    }

    /// The current ICE tag of a connection (WHIP's ETag).
    public func iceTag(_ session: SessionID, connection: String) throws(RoomError) -> String {
        throw RoomError(.sessionNotFound)
    }
}

// MARK: Operators

extension RoomService {
    /// Every room by name.
    public func listRooms() -> [RoomInfo] { [] }

    /// One room with its participants.
    public func room(named name: String) throws(RoomError) -> RoomDetail { throw RoomError(.roomNotFound) }

    /// One participant by sid or identity.
    public func participant(_ participant: String, in room: String) throws(RoomError) -> ParticipantDetail {
        throw RoomError(.roomNotFound)
    }

    /// Makes a room; `room_exists` when there is one of that name. nil name: a generated one.
    public func createRoom(
        named name: String?, policy: RoomPolicy?, metadata: String
    ) async throws(RoomError) -> RoomInfo {
        throw RoomError(.overloaded)
    }

    /// Ends a room and everybody's stay in it.
    public func deleteRoom(named name: String) async throws(RoomError) { throw RoomError(.roomNotFound) }

    /// Ends a participant's stay, named by sid or identity.
    public func remove(_ participant: String, from room: String) async throws(RoomError) {
        throw RoomError(.roomNotFound)
    }

    /// Mutes a track by sid; unmuting is the publisher's to do and is refused.
    public func setMuted(_ muted: Bool, track: String, in room: String) async throws(RoomError) -> TrackInfo {
        throw RoomError(.roomNotFound)
    }

    /// One room's media statistics with names.
    public func report(onRoom name: String) async throws(RoomError) -> RoomReport { throw RoomError(.roomNotFound) }

    /// Totals and gauges.
    public func statistics() -> RoomServiceStatistics { RoomServiceStatistics() }
}
