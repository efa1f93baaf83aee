import Primitives

/// When the subscribers of one track may change to another size of it because bandwidth falls or rises.
///
/// A change of size begins with a keyframe, and the publisher's keyframe goes to all subscribers. Those behind one bottleneck also change for the same cause,
/// one shortly after the other. So the changes of a track come at common moments: after one, the next must wait. Few subscribers in one network, who probably
/// share a bottleneck, become larger at one moment, because each of them counts on the same bandwidth; and a total that the network did not carry is not tried
/// again soon by any of them, because an estimate sees only its own share.
struct SizeChanges {
    private var last = MonotonicTime.zero
    /// Networks in which subscriptions became larger in the last minutes.
    private var raises: [SubscriberNetwork: Raise] = [:]

    /// The last moment at which subscriptions in one network became larger.
    private struct Raise {
        var at: MonotonicTime
        /// How many.
        var count = 0
        /// The bitrate of the track's subscriptions in the network, including these.
        var total = Bitrate.zero
        /// Subscriptions that became smaller soon after it.
        var falls = 0
        /// The total that the network did not carry when it was tried last, and how often in a row that happened; nil: none.
        var failed: (total: Bitrate, at: MonotonicTime, attempts: Int)?
    }

    /// Subscriptions of the track in one network.
    struct Group {
        var network: SubscriberNetwork
        var count: Int
        /// The bitrate allocated to all of them.
        var allocated: Bitrate
    }

    /// The aim is at most one keyframe request per track in this time (Tests/Requirements.md, five viewers behind one bottleneck).
    private static let period = TimeSpan.seconds(2)
    /// Raises in one network use every second moment: the queue shows whether one was too much only after its keyframe and a report (measured over 30 runs of
    /// five viewers behind one bottleneck: with raises at each moment 23 changes in 50 s instead of 19, worst 8 requests in 2 s instead of 5).
    private static let raisePeriod = TimeSpan.seconds(4)
    /// One of this many subscriptions in a network may become larger at a moment: one of five (measured: if all may, the queue overflows for everybody, with
    /// freezes of up to 3 s), and in an office with a hundred as many as needed for each to get its turn within 16 s.
    private static let subscriptionsPerRaise = 4
    /// Falls in the same network this soon after a raise show that the raise was too much, whichever subscriptions fall …
    private static let trial = TimeSpan.seconds(5)
    /// … if at least one of this many does: in an office with a hundred, one may fall for a reason of its own.
    private static let subscriptionsPerFall = 8
    /// A total of at least this share of the failed one must wait this long, twice as long after each further failure. Measured over 40 runs of five viewers
    /// behind 3 Mbit/s: 8 requests in 50 s instead of 16, 82 % of the link used at least; with 90 % one run uses less than 80 %.
    private static let failedShare = 0.95
    private static let settling = TimeSpan.seconds(20)
    private static let mostDoublings = 2
    /// After this time a network is forgotten.
    private static let memory = TimeSpan.seconds(120)

    /// The next common moment.
    var next: MonotonicTime { last == .zero ? .zero : last + Self.period }

    /// Whether `now` is a moment for changes.
    func isOpen(at now: MonotonicTime) -> Bool { now == last || now >= next }

    /// Admits a smaller size at `now` for one of `group`, nil if its network is unknown; false: it must wait.
    mutating func admitFall(in group: Group?, at now: MonotonicTime) -> Bool {
        guard isOpen(at: now) else { return false }
        last = now
        if let group { noteFall(in: group, at: now) }
        return true
    }

    private mutating func noteFall(in group: Group, at now: MonotonicTime) {
        guard var raise = raises[group.network], now > raise.at, now - raise.at <= Self.trial else { return }
        raise.falls += 1
        if raise.failed?.at != raise.at, raise.falls * Self.subscriptionsPerFall >= group.count {
            let attempts = raise.failed.map { min($0.attempts + 1, Self.mostDoublings) } ?? 0
            raise.failed = (raise.total, raise.at, attempts)
        }
        raises[group.network] = raise
    }

    /// Admits a size at `now` that is larger by `step` for one of `group`, nil if its network is unknown; false: it must wait.
    mutating func admitRaise(by step: Bitrate, in group: Group?, at now: MonotonicTime) -> Bool {
        guard isOpen(at: now) else { return false }
        if let group, group.count > 1 {
            raises = raises.filter { now - $0.value.at < Self.memory }
            let total = Bitrate.bitsPerSecond(group.allocated.bitsPerSecond + step.bitsPerSecond)
            guard var raise = nextRaise(in: group.network, at: now),
                raise.count < max(1, group.count / Self.subscriptionsPerRaise), !isBarred(total, after: raise, at: now)
            else { return false }
            raise.count += 1
            raise.total = max(raise.total, total)
            raises[group.network] = raise
        }
        last = now
        return true
    }

    /// The raise that may begin or continue in a network at `now`; nil: it is too soon after the last one.
    private func nextRaise(in network: SubscriberNetwork, at now: MonotonicTime) -> Raise? {
        guard let former = raises[network] else { return Raise(at: now) }
        guard former.at != now else { return former }
        guard now - former.at >= Self.raisePeriod else { return nil }
        var raise = Raise(at: now, failed: former.failed)
        // The former raise held, although it was as large.
        if let failed = former.failed, failed.at != former.at, former.total >= failed.total { raise.failed = nil }
        return raise
    }

    private func isBarred(_ total: Bitrate, after raise: Raise, at now: MonotonicTime) -> Bool {
        guard let failed = raise.failed, now - failed.at < Self.settling * Int64(1 << failed.attempts) else {
            return false
        }
        return Double(total.bitsPerSecond) >= Self.failedShare * Double(failed.total.bitsPerSecond)
    }

    /// A keyframe is necessary at once: all waiting subscriptions change with it.
    mutating func open() { last = .zero }
}

/// The network that a subscriber's packets come from, as far as its address shows it: the address of the NAT with IPv4, the prefix of 64 bits with
/// IPv6 (RFC 4291 section 2.5.1).
struct SubscriberNetwork: Hashable {
    private let high: UInt64
    private let low: UInt64

    init(_ address: SocketAddress) {
        high = address.high
        low = address.isIPv4 ? address.low : 0
    }
}
