import Primitives

/// The peer's last checks, so that a captured and replayed one is not accepted as new.
///
/// The same transaction from the same address is a retransmission (RFC 8489 section 6.2.1): it is answered, and proves no more than the first did.
/// From another address it is a replay.
struct CheckHistory {
    enum Verdict { case new, repeated, replayed }

    /// A minute for a client that checks every second, or twenty seconds for one with three pairs. Replaying an older check only makes the server
    /// send one check of its own there.
    private static let limit = 64

    private struct Entry {
        /// 64 of the transaction's 96 random bits.
        let transaction: UInt64
        let source: UInt64
    }

    private var entries: [Entry] = []
    /// The oldest, once there are `limit` entries.
    private var oldest = 0

    func verdict(on id: TransactionID, from source: SocketAddress) -> Verdict {
        guard let known = entries.first(where: { $0.transaction == id.low }) else { return .new }
        return known.source == source.mixed ? .repeated : .replayed
    }

    mutating func append(_ id: TransactionID, from source: SocketAddress) {
        let entry = Entry(transaction: id.low, source: source.mixed)
        guard entries.count == Self.limit else { return entries.append(entry) }
        entries[oldest] = entry
        oldest = (oldest + 1) % Self.limit
    }
}
