/// The room that a join goes to.
public enum RoomNames {
    /// The token's room; a join that requests another one is refused. If the token names none, the requested room; if neither does, the default
    /// room. An empty requested name means none if the token names a room, otherwise a generated name.
    public static func resolve(
        granted: String?, asked: String?, defaultRoom: String, turn: inout RoomTurn
    ) throws(RoomError) -> String {
        try checkMatch(granted: granted, asked: asked)
        if let granted, !granted.isEmpty { return granted }
        guard let asked else { return defaultRoom }
        return asked.isEmpty ? generated(turn: &turn) : asked
    }

    /// Refuses a join that requests another room than its token's: nobody gets into a room that they did not name.
    public static func checkMatch(granted: String?, asked: String?) throws(RoomError) {
        guard let granted, !granted.isEmpty, let asked, !asked.isEmpty, asked != granted else { return }
        throw RoomError(.roomMismatch, "the token is for another room than the requested one")
    }

    /// Refuses a name that no room can have.
    public static func check(_ name: String) throws(RoomError) {
        try TextRule.identifier.check(name, "the room's name", tooLong: .invalidRequest)
    }

    /// A new unique name that begins with `prefix`.
    public static func generated(_ prefix: String = "room-", turn: inout RoomTurn) -> String { turn.sid(prefix) }
}
