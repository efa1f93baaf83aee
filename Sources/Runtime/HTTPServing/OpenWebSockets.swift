/// The WebSockets of a listener by the numbers of their connections, and which of them are pinged next.
struct OpenWebSockets {
    /// The number of groups in which they are pinged, so that not all answer at once.
    static let turns: UInt64 = 10

    private var sockets: Stage
    private var turn: UInt64 = 0

    init(limit: Int, limitPerAddress: Int) { sockets = Stage(limit: limit, limitPerAddress: limitPerAddress) }

    var isEmpty: Bool { sockets.count == 0 }

    /// Whether the limit is reached.
    var isFull: Bool { sockets.isFull }

    /// Whether an address has reached its limit.
    func isFull(for address: UInt64) -> Bool { sockets.isFull(for: address) }

    mutating func enter(_ id: UInt64, _ address: UInt64) { sockets.enter(id, address) }

    mutating func leave(_ id: UInt64) { sockets.leave(id) }

    /// The tenth of them that comes next.
    mutating func nextTurn() -> [UInt64] {
        turn = (turn + 1) % Self.turns
        return sockets.members.filter { $0 % Self.turns == turn }
    }
}
