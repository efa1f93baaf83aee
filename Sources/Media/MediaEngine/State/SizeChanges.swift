import Primitives

/// When the subscribers of one track may change to another size of it because bandwidth falls or rises.
///
/// A change of size begins with a keyframe, and the publisher's keyframe goes to all subscribers. Those behind one bottleneck also change for the same
/// cause, one shortly after the other. So the changes of a track come at common moments: after one, the next must wait. Of the subscribers in one network,
/// which probably share a bottleneck, few become larger at one moment, because each of them counts on the same bandwidth.
struct SizeChanges {
    private var last = MonotonicTime.zero
    /// When subscriptions in a network last became larger, and how many.
    private var raises: [SubscriberNetwork: (at: MonotonicTime, count: Int)] = [:]

    /// The aim is at most one keyframe request per track in this time (Tests/Requirements.md, five viewers behind one bottleneck).
    private static let period = TimeInterval.seconds(2)
    /// Raises in one network use every second moment: whether one was too much shows in the queue only after its keyframe and a report (measured
    /// over 30 runs of five viewers behind one bottleneck: with raises at each moment 23 changes in 50 s instead of 19, worst 8 requests in 2 s instead
    /// of 5).
    private static let raisePeriod = TimeInterval.seconds(4)
    /// One of so many subscriptions in a network may become larger at a moment: one of five (measured: if all may, the queue overflows for everybody,
    /// with freezes of up to 3 s), and of an office with a hundred so many that each gets its turn within 16 s.
    private static let subscriptionsPerRaise = 4

    /// The next common moment.
    var next: MonotonicTime { last == .zero ? .zero : last + Self.period }

    /// Whether `now` is a moment for changes.
    func isOpen(at now: MonotonicTime) -> Bool { now == last || now >= next }

    /// Admits a smaller size at `now`; false: it must wait.
    mutating func admitFall(at now: MonotonicTime) -> Bool {
        guard isOpen(at: now) else { return false }
        last = now
        return true
    }

    /// Admits a larger size for one of the track's `count` subscriptions in `network` at `now`; false: it must wait.
    mutating func admitRaise(in network: SubscriberNetwork?, of count: Int, at now: MonotonicTime) -> Bool {
        guard isOpen(at: now) else { return false }
        if let network, count > 1 {
            raises = raises.filter { now - $0.value.at < Self.raisePeriod }
            let earlier = raises[network] ?? (now, 0)
            guard earlier.at == now, earlier.count < max(1, count / Self.subscriptionsPerRaise) else { return false }
            raises[network] = (now, earlier.count + 1)
        }
        last = now
        return true
    }

    /// A keyframe is necessary at once: all that wait change with it.
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
