/// How many requests handlers work on, and which wait for their turn.
///
/// A handler takes microseconds to milliseconds, so a request waits rather than that it is refused: a page that asks for a hundred things at once, or a
/// neighbour that does, keeps nobody out. Who waits because its own address has its share waits apart from the others.
///
/// Work has a number of its own: it may outlast the connection that it is for, and has its slot until it ends.
struct HandlerSlots {
    private var working: Stage
    /// Connections that wait because there is as much work as there may be, and because their address has its share.
    private var queued = Stage()
    private var queuedByAddress = Stage()

    /// Work of at most `limit` requests at once, and of `limitPerAddress` for one address.
    init(limit: Int, limitPerAddress: Int) {
        working = Stage(limit: limit, limitPerAddress: limitPerAddress)
    }

    /// Which bound a request of `address` would go beyond; nil where it may begin.
    func bound(for address: UInt64) -> HTTPLimit? {
        if working.isFull(for: address) { return .addressRequests }
        return working.isFull ? .requests : nil
    }

    /// How many requests may wait for each slot: with bodies of 16 KiB and 1,024 slots they hold 256 MiB.
    private static let waitingPerSlot = 16

    /// Whether one more request may wait.
    var mayWait: Bool { queued.count + queuedByAddress.count < Self.waitingPerSlot * working.limit }

    /// Takes a slot.
    mutating func begin(_ work: UInt64, of address: UInt64) { working.enter(work, address) }

    /// Has a connection wait for the bound that was found.
    mutating func wait(_ connection: UInt64, of address: UInt64, for bound: HTTPLimit) {
        if bound == .addressRequests {
            queuedByAddress.enter(connection, address)
        } else {
            queued.enter(connection, address)
        }
    }

    /// The connection waits no more.
    mutating func giveUp(_ connection: UInt64) {
        queued.leave(connection)
        queuedByAddress.leave(connection)
    }

    /// Gives the slot of `work` back, if it has one.
    mutating func end(_ work: UInt64) {
        guard let address = working.leave(work), let next = queuedByAddress.oldest(of: address) else { return }
        queuedByAddress.leave(next)
        queued.enter(next, address)
    }

    /// The connection whose turn has come, which waits no more; nil where none may begin.
    mutating func next() -> UInt64? {
        while !working.isFull, let next = queued.oldest(), let address = queued.leave(next) {
            guard working.isFull(for: address) else { return next }
            queuedByAddress.enter(next, address)
        }
        return nil
    }
}
