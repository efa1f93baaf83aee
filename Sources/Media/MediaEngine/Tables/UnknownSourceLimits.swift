import Primitives

/// Limits the checks from unknown addresses. A user name fragment can be observed on the network, and the digest that distinguishes a forged
/// check from a valid one costs 1.3 us.
///
/// Each peer has its own allowance, which a flood that names other peers cannot use up; further checks use an allowance that all share. A source
/// that has failed too often for one peer is ignored for it, so that a flood from one place does not lock the peer itself out.
struct UnknownSourceLimits: ~Copyable {
    /// Firefox sends fifty checks per second while it connects, and one is enough: its address is known from then on.
    static let ownInterval = TimeSpan.milliseconds(50)
    static let ownAtOnce = 40

    private var shared = RateLimit()
    private var failures: FailureTable

    init(seed: UInt64) { failures = FailureTable(seed: seed) }

    /// Whether to process a check for `peer`, whose own allowance is `own`. `limit` is the shared allowance per second.
    mutating func admit(
        _ source: SocketAddress, for peer: Int, own: inout RateLimit, limit: Int, at now: MonotonicTime
    ) -> Bool {
        guard !failures.isBlocked(source, for: peer, at: now) else { return false }
        if own.accept(every: Self.ownInterval, atOnce: Self.ownAtOnce, at: now) { return true }
        // A tenth of a second's amount at once: a flood does not block all others for a whole second.
        return shared.accept(every: .seconds(1) / Int64(max(1, limit)), atOnce: max(1, limit / 10), at: now)
    }

    /// A check for `peer` from `source` had a wrong password.
    mutating func failed(_ source: SocketAddress, for peer: Int, at now: MonotonicTime) {
        failures.note(source, for: peer, at: now)
    }
}

/// How often checks from one place for one peer have failed in this second. A fixed table: places that share an entry reduce each other's
/// count, so the busiest one keeps it, and a flood from forged addresses blocks nobody.
struct FailureTable: ~Copyable {
    /// Failures per second before a source is blocked. A client never fails, except with credentials from before a restart.
    private static let limit: UInt8 = 20
    /// 16 kB: an entry for each of a thousand attackers.
    private static let capacity = 1_024

    private struct Entry {
        var key: UInt64
        var second: UInt32
        var count: UInt8
    }

    private let entries: UnsafeMutablePointer<Entry>
    /// Mixed into the hash: an attacker who picks addresses must not be able to pick entries.
    private let seed: UInt64

    init(seed: UInt64) {
        self.seed = seed
        entries = .allocate(capacity: Self.capacity)
        entries.initialize(repeating: Entry(key: 0, second: 0, count: 0), count: Self.capacity)
    }

    deinit { entries.deallocate() }

    func isBlocked(_ source: SocketAddress, for peer: Int, at now: MonotonicTime) -> Bool {
        let key = key(source, peer), entry = entry(key)
        return entry.pointee.key == key && entry.pointee.second == Self.second(now) && entry.pointee.count >= Self.limit
    }

    func note(_ source: SocketAddress, for peer: Int, at now: MonotonicTime) {
        let key = key(source, peer), entry = entry(key), second = Self.second(now)
        if entry.pointee.second != second || (entry.pointee.key != key && entry.pointee.count <= 1) {
            entry.pointee = Entry(key: key, second: second, count: 1)
        } else if entry.pointee.key != key {
            entry.pointee.count -= 1
        } else if entry.pointee.count < Self.limit {
            entry.pointee.count += 1
        }
    }

    private static func second(_ now: MonotonicTime) -> UInt32 {
        UInt32(truncatingIfNeeded: now.nanoseconds / 1_000_000_000)
    }

    private func entry(_ key: UInt64) -> UnsafeMutablePointer<Entry> {
        entries + Int(truncatingIfNeeded: key % UInt64(Self.capacity))
    }

    /// One IPv4 address, or one IPv6 network: its owner has all the addresses in it.
    private func key(_ source: SocketAddress, _ peer: Int) -> UInt64 {
        let place = SocketAddress(high: source.high, low: source.isIPv4 ? source.low : 0, port: 0)
        return SocketAddress(high: place.mixed ^ seed, low: UInt64(peer), port: 0).mixed
    }
}
