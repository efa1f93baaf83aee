/// The connections at one stage (waiting for a request, sending a body, being handled), oldest first, and how many
/// each address has there.
struct Stage {
    /// The limit.
    let limit: Int
    /// The limit per address.
    let limitPerAddress: Int
    private var entries: [UInt64: Member] = [:]
    private var all = Order()
    private var byAddress: [UInt64: (count: Int, order: Order)] = [:]
    private var lastTicket: UInt64 = 0

    private struct Member {
        var address: UInt64
        var ticket: UInt64
    }

    init(limit: Int = .max, limitPerAddress: Int = .max) {
        self.limit = limit
        self.limitPerAddress = limitPerAddress
    }

    /// The connections, in no order.
    var members: some Sequence<UInt64> { entries.keys }
    /// The number of connections.
    var count: Int { entries.count }
    /// Whether the limit is reached.
    var isFull: Bool { count >= limit }

    /// Whether an address has reached its limit.
    func isFull(for address: UInt64) -> Bool { byAddress[address]?.count ?? 0 >= limitPerAddress }

    func contains(_ id: UInt64) -> Bool { entries[id] != nil }

    /// Adds the connection `id` of `address` as the youngest; one that is already here becomes the youngest.
    mutating func enter(_ id: UInt64, _ address: UInt64) {
        leave(id)
        lastTicket += 1
        entries[id] = Member(address: address, ticket: lastTicket)
        let isCurrent = { [entries] (id: UInt64, ticket: UInt64) in entries[id]?.ticket == ticket }
        all.append(id, lastTicket, live: entries.count, isCurrent)
        var own = byAddress.removeValue(forKey: address) ?? (0, Order())
        own.count += 1
        own.order.append(id, lastTicket, live: own.count, isCurrent)
        byAddress[address] = own
    }

    /// Removes the connection `id`; returns its address, or nil if it is not here.
    @discardableResult
    mutating func leave(_ id: UInt64) -> UInt64? {
        guard let member = entries.removeValue(forKey: id), let count = byAddress[member.address]?.count else {
            return nil
        }
        if count == 1 {
            byAddress[member.address] = nil
        } else {
            byAddress[member.address]?.count = count - 1
        }
        return member.address
    }

    /// The connection that has been here the longest.
    mutating func oldest() -> UInt64? {
        all.first { [entries] in entries[$0]?.ticket == $1 }
    }

    /// The connection of an address that has been here the longest.
    mutating func oldest(of address: UInt64) -> UInt64? {
        byAddress[address]?.order.first { [entries] in entries[$0]?.ticket == $1 }
    }

    /// Numbers in order of arrival. Those that have left since are skipped when they come up, so leaving costs nothing.
    private struct Order {
        private var entries: [(id: UInt64, ticket: UInt64)] = []
        private var head = 0

        mutating func append(_ id: UInt64, _ ticket: UInt64, live: Int, _ isCurrent: (UInt64, UInt64) -> Bool) {
            entries.append((id, ticket))
            // Never more than twice the present ones plus a few: the oldest may stay for a minute while others come and go.
            guard entries.count > 2 * live + 64 else { return }
            entries = entries[head...].filter { isCurrent($0.id, $0.ticket) }
            head = 0
        }

        mutating func first(where isCurrent: (UInt64, UInt64) -> Bool) -> UInt64? {
            while head < entries.count {
                if isCurrent(entries[head].id, entries[head].ticket) { return entries[head].id }
                head += 1
            }
            entries = []
            head = 0
            return nil
        }
    }
}
