import Primitives

/// The peer's last checks, so that one that was recorded on its way is not taken for a new one.
///
/// The same transaction from the same address is a retransmission (RFC 8489 section 6.2.1): it is answered, and proves no more than the
/// first did. From another address it is a replay.
struct CheckHistory {
    enum Verdict { case new, repeated, replayed }

    /// A minute of a client that checks each second, or twenty seconds of one with three pairs. An older check that is replayed makes the
    /// server send one of its own there, and nothing else.
    private static let limit = 64

    private struct Entry {
        /// 64 of the transaction's 96 random bits.
        let transaction: UInt64
        let source: UInt64
    }

    private var entries: [Entry] = []
    /// The oldest, once there are `limit`.
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
