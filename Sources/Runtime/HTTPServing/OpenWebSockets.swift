/// The WebSockets of a listener by the numbers of their connections, and whose turn it is to be pinged.
struct OpenWebSockets {
    /// In how many turns all are pinged, so that they do not answer all at once.
    static let turns: UInt64 = 10

    private var sockets: Stage
    private var turn: UInt64 = 0

    init(limit: Int, limitPerAddress: Int) { sockets = Stage(limit: limit, limitPerAddress: limitPerAddress) }

    var isEmpty: Bool { sockets.count == 0 }

    /// Whether there are as many as there may be.
    var isFull: Bool { sockets.isFull }

    /// Whether an address has as many as it may.
    func isFull(for address: UInt64) -> Bool { sockets.isFull(for: address) }

    mutating func enter(_ id: UInt64, _ address: UInt64) { sockets.enter(id, address) }

    mutating func leave(_ id: UInt64) { sockets.leave(id) }

    /// The tenth of them that comes next.
    mutating func nextTurn() -> [UInt64] {
        turn = (turn + 1) % Self.turns
        return sockets.members.filter { $0 % Self.turns == turn }
    }
}
