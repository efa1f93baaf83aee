public import Primitives

/// How one direction of a link treats datagrams. The defaults are a perfect wire.
public struct LinkModel: Sendable, Hashable {
    /// Time on the wire.
    public var delay = TimeSpan.zero
    /// Each datagram is delayed by up to this much more, evenly spread. Order is kept unless `keepsOrder` or `reorder` say otherwise.
    public var jitter = TimeSpan.zero
    /// With jitter, datagrams wait for those before them, as on radio links; false: each arrives when its own delay is over.
    public var keepsOrder = true
    /// Share of datagrams that are lost, 0 to 1.
    public var loss = 0.0
    /// Mean length of a run of losses in datagrams; above 1 losses come in bursts (Gilbert 1960).
    public var meanLossBurst = 1.0
    /// Share of datagrams that arrive twice, 0 to 1.
    public var duplicates = 0.0
    /// Share of datagrams that overtake the ones before them, 0 to 1.
    public var reorder = 0.0
    /// The rate of the bottleneck; nil for no bottleneck.
    public var rate: Bitrate?
    /// How long a datagram may wait at the bottleneck; one that would wait longer is dropped (tail drop).
    public var queueLimit = TimeSpan.milliseconds(300)
    /// Drops what exceeds a rate, before the bottleneck; nil for none.
    public var policer: Policer?

    /// A perfect wire.
    public init() {}

    /// A wire with a delay and random loss.
    public init(delay: TimeSpan, loss: Double = 0, rate: Bitrate? = nil) {
        self.delay = delay
        self.loss = loss
        self.rate = rate
    }
}

/// One direction of a link, with its state between datagrams.
public struct VirtualLink: Sendable {
    /// How it treats datagrams; may be changed at any time.
    public var model: LinkModel
    /// Datagrams lost at random so far.
    public private(set) var lost = 0
    /// Datagrams dropped at the bottleneck or by the policer so far.
    public private(set) var overflowed = 0
    /// What it carried, step by step.
    public var meter = LinkMeter()

    /// Bits that IPv4 and UDP headers add to each datagram on the wire.
    private static let headerBits: Int64 = 28 * 8
    private var isBad = false
    private var busyUntil = MonotonicTime.zero
    private var policerFullAt = MonotonicTime.zero
    private var lastArrival = MonotonicTime.zero

    /// An idle link.
    public init(_ model: LinkModel) { self.model = model }

    /// When a datagram sent now arrives: never (empty), once, or twice. `wait` was spent at a bottleneck before it.
    public mutating func arrivals(
        of length: Int, at now: MonotonicTime, behind wait: TimeSpan = .zero, random: inout RandomSource
    ) -> [MonotonicTime] {
        guard !isLost(&random) else {
            lost += 1
            meter.lost(at: now)
            return []
        }
        guard passPolicer(length, at: now), let leaves = passBottleneck(length, at: now + wait) else {
            overflowed += 1
            meter.overflowed(at: now)
            return []
        }
        meter.passed(length, wait: leaves - now, at: now)
        let overtakes = model.reorder > 0 && Double.random(in: 0..<1, using: &random) < model.reorder
        var arrival = leaves + model.delay
        if !overtakes {
            if model.jitter > .zero {
                arrival = arrival + .nanoseconds(Int64.random(in: 0...model.jitter.nanoseconds, using: &random))
            }
            if model.keepsOrder { arrival = max(arrival, lastArrival) }
            lastArrival = max(arrival, lastArrival)
        }
        let isDoubled = model.duplicates > 0 && Double.random(in: 0..<1, using: &random) < model.duplicates
        return isDoubled ? [arrival, arrival + .microseconds(100)] : [arrival]
    }

    /// How long a datagram sent now would wait at the bottleneck.
    public func backlog(at now: MonotonicTime) -> TimeSpan { max(busyUntil - now, .zero) }

    /// The bottleneck carries nothing for `time` from now on, and then everything that waits at its full rate, as radio links do.
    public mutating func stall(for time: TimeSpan, at now: MonotonicTime) { busyUntil = max(busyUntil, now) + time }

    private mutating func isLost(_ random: inout RandomSource) -> Bool {
        guard model.loss > 0 else { return false }
        let dice = Double.random(in: 0..<1, using: &random)
        guard model.meanLossBurst > 1 else { return dice < model.loss }
        let leaveBad = 1 / model.meanLossBurst
        let enterBad = leaveBad * model.loss / (1 - min(model.loss, 0.99))
        isBad = isBad ? dice >= leaveBad : dice < enterBad
        return isBad
    }

    private mutating func passPolicer(_ length: Int, at now: MonotonicTime) -> Bool {
        model.policer?.admits(Int64(length) * 8 + Self.headerBits, fullAt: &policerFullAt, at: now) ?? true
    }

    private mutating func passBottleneck(_ length: Int, at now: MonotonicTime) -> MonotonicTime? {
        guard let rate = model.rate, rate > .zero else { return now }
        let start = max(busyUntil, now)
        guard start - now <= model.queueLimit else { return nil }
        let bits = Int64(length) * 8 + Self.headerBits
        busyUntil = start + .nanoseconds(bits * 1_000_000_000 / rate.bitsPerSecond)
        return busyUntil
    }
}
