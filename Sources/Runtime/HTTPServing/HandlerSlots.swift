/// Which requests are in handlers, and which wait for a slot.
///
/// A handler takes microseconds to milliseconds, so a request waits instead of being refused: a page that sends a hundred requests at once, or a
/// neighbour that does, locks nobody out. Addresses take turns, so an address with one request waits for one of each other.
///
/// Work has a number of its own: it may outlast the connection that it is for, and has its slot until it ends.
struct HandlerSlots {
    /// What may wait in memory: 256 bodies of the largest size.
    static let waitingBytes = 256 << 20

    private var working: Stage
    /// Connections that wait, and what their bodies hold.
    private var waiting = Stage()
    private var bytes: [UInt64: Int] = [:]
    private var allBytes = 0
    /// Addresses that have somebody waiting, or had until lately: each once, in the order of their turns.
    private var turns: [UInt64] = []
    private var firstTurn = 0
    private var hasTurn: Set<UInt64> = []

    /// Work of at most `limit` requests at once, and of `limitPerAddress` for one address.
    init(limit: Int, limitPerAddress: Int) {
        working = Stage(limit: limit, limitPerAddress: limitPerAddress)
    }

    /// Which bound a request of `address` would go beyond; nil where it may begin.
    func bound(for address: UInt64) -> HTTPLimit? {
        if working.isFull(for: address) { return .addressRequests }
        return working.isFull ? .requests : nil
    }

    /// Takes a slot.
    mutating func begin(_ work: UInt64, of address: UInt64) { working.enter(work, address) }

    /// Gives the slot of `work` back, if it has one.
    mutating func end(_ work: UInt64) { working.leave(work) }

    /// Has a connection wait whose request has a body of `size`; false when what waits would hold too much.
    mutating func wait(_ connection: UInt64, of address: UInt64, size: Int) -> Bool {
        guard allBytes + size <= Self.waitingBytes else { return false }
        waiting.enter(connection, address)
        bytes[connection] = size
        allBytes += size
        if hasTurn.insert(address).inserted { turns.append(address) }
        return true
    }

    /// The connection waits no more.
    mutating func giveUp(_ connection: UInt64) {
        guard waiting.leave(connection) != nil, let size = bytes.removeValue(forKey: connection) else { return }
        allBytes -= size
    }

    /// The connection whose turn has come, which waits no more; nil where none may begin.
    ///
    /// Addresses that have their share are passed over; there are no more of them than fit into the slots.
    mutating func next() -> UInt64? {
        guard !working.isFull else { return nil }
        for _ in firstTurn..<turns.count {
            let address = nextTurn()
            guard let connection = waiting.oldest(of: address) else {
                hasTurn.remove(address)
                continue
            }
            turns.append(address)
            if working.isFull(for: address) { continue }
            giveUp(connection)
            return connection
        }
        return nil
    }

    private mutating func nextTurn() -> UInt64 {
        let address = turns[firstTurn]
        firstTurn += 1
        if firstTurn >= 64, 2 * firstTurn > turns.count {
            turns.removeFirst(firstTurn)
            firstTurn = 0
        }
        return address
    }
}
