/// Which requests are in handlers, and which wait for a slot.
///
/// A handler takes microseconds to milliseconds, so a request waits instead of being refused: a client that sends a hundred requests at once
/// locks nobody else out. Addresses take turns, so an address with one request waits for at most one of each other address.
///
/// Work has its own number: it may outlast its connection, and has its slot until it ends.
struct HandlerSlots {
    /// The limit of memory for what waits: 256 bodies of the largest size.
    static let waitingBytes = 256 << 20

    private var working: Stage
    /// Waiting connections, and the sizes of their bodies.
    private var waiting = Stage()
    private var bytes: [UInt64: Int] = [:]
    private var allBytes = 0
    /// Addresses with waiting connections, or that had some recently: each once, in the order of their turns.
    private var turns: [UInt64] = []
    private var firstTurn = 0
    private var hasTurn: Set<UInt64> = []

    /// Work on at most `limit` requests at a time, and `limitPerAddress` for one address.
    init(limit: Int, limitPerAddress: Int) {
        working = Stage(limit: limit, limitPerAddress: limitPerAddress)
    }

    /// The limit that a request of `address` would exceed; nil if it may begin.
    func bound(for address: UInt64) -> HTTPLimit? {
        if working.isFull(for: address) { return .addressRequests }
        return working.isFull ? .requests : nil
    }

    /// Occupies a slot.
    mutating func begin(_ work: UInt64, of address: UInt64) { working.enter(work, address) }

    /// Frees the slot of `work`, if it has one.
    mutating func end(_ work: UInt64) { working.leave(work) }

    /// Makes a connection wait whose request has a body of `size`; false if the waiting bodies would need too much memory.
    mutating func wait(_ connection: UInt64, of address: UInt64, size: Int) -> Bool {
        guard allBytes + size <= Self.waitingBytes else { return false }
        waiting.enter(connection, address)
        bytes[connection] = size
        allBytes += size
        if hasTurn.insert(address).inserted { turns.append(address) }
        return true
    }

    /// The connection no longer waits.
    mutating func giveUp(_ connection: UInt64) {
        guard waiting.leave(connection) != nil, let size = bytes.removeValue(forKey: connection) else { return }
        allBytes -= size
    }

    /// Removes and returns the waiting connection whose turn it is; nil if none may begin.
    ///
    /// Addresses that have their share are skipped; there are no more of them than slots.
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
