public import Rooms

// Offer, answer, ICE, bye.

extension RoomService {
    /// Answers a client's offer on `connection` (a name that the client chose; created on first use).
    public func offer(
        _ session: SessionID, connection: String, sdp: String
    ) async throws(RoomError) -> ConnectionAnswer {
        let answer = try await step(try hosted(of: session)) { (room, turn) throws(RoomError) -> ConnectionAnswer in
            room.touch(session, turn: &turn)
            return try room.offer(session, connection: connection, sdp: sdp, turn: &turn)
        }
        totals.offersAnswered += 1
        return answer
    }

    /// Takes a client's answer to the server's offer on `connection`.
    public func answer(_ session: SessionID, connection: String, sdp: String) async throws(RoomError) {
        try await step(try hosted(of: session)) { (room, turn) throws(RoomError) in
            room.touch(session, turn: &turn)
            try room.answer(session, connection: connection, sdp: sdp, turn: &turn)
        }
    }

    /// A trickled candidate; nil or empty: no more. ICE-lite learns addresses from checks, so it is only counted.
    public func candidate(
        _ session: SessionID, connection: String, candidate: String?, mid: String?
    ) throws(RoomError) {
        let hosted = try hosted(of: session)
        var turn = newTurn()
        hosted.room.touch(session, turn: &turn)
        try hosted.room.takeCandidate(candidate, session: session, connection: connection)
    }

    /// A trickle fragment (RFC 8840) as WHIP's PATCH carries it. nil: only candidates. A new ufrag restarts ICE: the
    /// server's fragment and the new tag come back.
    public func fragment(
        _ session: SessionID, connection: String, fragment: String
    ) async throws(RoomError) -> (fragment: String, iceTag: String)? {
        try await step(try hosted(of: session)) {
            (room, turn) throws(RoomError) -> (fragment: String, iceTag: String)? in
            try room.fragment(session, connection: connection, text: fragment, turn: &turn)
        }
    }

    /// Ends one connection, not the member.
    public func bye(_ session: SessionID, connection: String) async throws(RoomError) {
        try await step(try hosted(of: session)) { (room, turn) throws(RoomError) in
            room.touch(session, turn: &turn)
            try room.bye(session, connection: connection, turn: &turn)
        }
    }

    /// The current ICE tag of a connection (WHIP's ETag).
    public func iceTag(_ session: SessionID, connection: String) throws(RoomError) -> String {
        try hosted(of: session).room.iceTag(session, connection: connection)
    }
}
