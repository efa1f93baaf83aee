/// Which room a join goes to (B4).
public enum RoomNames {
    /// The token's room wins over the asked one. Neither: the standard room. An empty asked name: a generated one.
    public static func resolve(
        granted: String?, asked: String?, standard: String, turn: inout RoomTurn
    ) -> String {
        if let granted, !granted.isEmpty { return granted }
        guard let asked else { return standard }
        return asked.isEmpty ? generated(turn: &turn) : asked
    }

    /// Whether a name has no control characters, which would break lines where names are shown and logged.
    public static func isPrintable(_ name: String) -> Bool {
        name.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }

    /// A name that nobody has used.
    public static func generated(turn: inout RoomTurn) -> String { turn.sid("room-") }
}
