/// Which room a join goes to.
public enum RoomNames {
    /// The token's room; a join that asks for another one is refused. Without one in the token, the asked room; neither: the standard
    /// room. An empty asked name asks for none where the token has one, else for a generated name.
    public static func resolve(
        granted: String?, asked: String?, standard: String, turn: inout RoomTurn
    ) throws(RoomError) -> String {
        try checkMatch(granted: granted, asked: asked)
        if let granted, !granted.isEmpty { return granted }
        guard let asked else { return standard }
        return asked.isEmpty ? generated(turn: &turn) : asked
    }

    /// Refuses a room that is asked for with a token for another one: nobody lands in a room that they did not name.
    public static func checkMatch(granted: String?, asked: String?) throws(RoomError) {
        guard let granted, !granted.isEmpty, let asked, !asked.isEmpty, asked != granted else { return }
        throw RoomError(.roomMismatch, "the token is for another room than the requested one")
    }

    /// Refuses a name that no room can have.
    public static func check(_ name: String) throws(RoomError) {
        try TextRule.identifier.check(name, "the room's name", tooLong: .invalidRequest)
    }

    /// A name that nobody has used, which begins with `prefix`.
    public static func generated(_ prefix: String = "room-", turn: inout RoomTurn) -> String { turn.sid(prefix) }
}
