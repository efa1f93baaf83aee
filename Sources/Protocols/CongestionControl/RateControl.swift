import Primitives

/// Derives the rate from the state of the queues: additive or multiplicative increase, multiplicative decrease.
///
/// Follows draft-ietf-rmcat-gcc-02 section 5.5 and libwebrtc's `AimdRateControl`. What differs, and why:
/// - a decrease is based on what the last quarter second delivered (`DeliveryWindow`), and is deeper the longer the queue already is, because a
///   router cannot slow an encoder down, only change the layer once;
/// - if the link delivers as fast as packets are sent, a decrease is a step of the estimate itself and never below the delivered rate: a router sends
///   what the layers require, usually far below the estimate, and a false alarm must not make that the estimate.
struct RateControl: Sendable {
    enum State: Sendable { case hold, increase, decrease }

    /// Bits per second.
    private(set) var bitsPerSecond: Double
    private(set) var state = State.hold
    private(set) var capacity = LinkCapacity()
    /// The acknowledged rate, averaged over the last feedback packets.
    private var steadyDelivered = 0.0
    private var lastChange: MonotonicTime?
    private var lastDecrease: MonotonicTime?
    let least: Double
    let most: Double

    init(start: Double, least: Double, most: Double) {
        bitsPerSecond = start
        self.least = least
        self.most = most
    }

    /// The results of one feedback packet.
    struct Input {
        var usage: DelayTrend.Usage
        /// Smoothed rate of arrivals.
        var acknowledged: Double?
        var rates: DeliveryWindow.Rates?
        /// Microseconds.
        var queueDelay: Int64
        var roundTrip: TimeSpan
        var isApplicationLimited: Bool
        /// The path delivers what is sent.
        var isCarried: Bool
    }

    /// Applies the results of one feedback packet.
    mutating func update(_ input: Input, at now: MonotonicTime) {
        switch input.usage {
        case .over:
            if mayDecrease(input, at: now) { decrease(input, at: now) }
        case .under: state = .hold
        case .normal:
            if state != .increase {
                lastChange = now
                state = .increase
            }
            increase(input, at: now)
        }
    }

    /// A probe or another proof sets the rate.
    mutating func set(_ bitsPerSecond: Double, isProbe: Bool, at now: MonotonicTime) {
        self.bitsPerSecond = min(max(bitsPerSecond, least), most)
        if isProbe { capacity.wasProbed(at: bitsPerSecond) }
        lastChange = now
    }

    /// Records a probe's result as evidence of the link's limit.
    mutating func probed(_ result: Double, of rate: Double) { capacity.noteProbe(result, of: rate) }

    /// Packets use another link.
    mutating func forgetLink() { capacity.forgetAll() }

    /// Lowers the rate to a limit that another part found.
    mutating func bound(by limit: Double) { bitsPerSecond = max(least, min(bitsPerSecond, limit)) }

    /// Queues cannot show the effect of the last decrease sooner than a round trip later.
    private func mayDecrease(_ input: Input, at now: MonotonicTime) -> Bool {
        guard let lastDecrease else { return true }
        let interval = min(max(input.roundTrip, .milliseconds(10)), .milliseconds(200))
        // One burst, such as a keyframe's, is one alarm.
        if input.isCarried { return now - lastDecrease >= Self.carriedInterval }
        if now - lastDecrease >= interval { return true }
        return (input.rates?.arrived ?? input.acknowledged ?? .infinity) < 0.5 * bitsPerSecond
    }

    private static let carriedInterval = TimeSpan.milliseconds(500)

    private mutating func decrease(_ input: Input, at now: MonotonicTime) {
        defer {
            state = .hold
            lastChange = now
            lastDecrease = now
        }
        guard let delivered = input.rates?.arrived ?? input.acknowledged else {
            return set(bitsPerSecond / 2, isProbe: false, at: now)
        }
        // 0.9 with a short queue; 0.7 with one of a quarter second, which must drain.
        let depth = min(max(Double(input.queueDelay - 30_000) / 220_000, 0), 1)
        let factor = 0.9 - 0.2 * depth
        // Too few packets for a rate, and little use: nothing shows that the link became slower.
        if input.rates == nil, delivered < 0.5 * bitsPerSecond, input.queueDelay < 100_000 { return }
        var lowered = factor * delivered
        if input.isCarried, delivered < factor * bitsPerSecond { lowered = max(factor * bitsPerSecond, delivered) }
        // The start value is a guess: what fills the link first shows how much it carries.
        if !input.isCarried, capacity.bitsPerSecond == nil, lowered > bitsPerSecond {
            bitsPerSecond = min(lowered, most)
            return capacity.wasFull(at: delivered)
        }
        // A queue that drains faster than the estimate is due to a burst and not to the estimate.
        guard lowered < bitsPerSecond else { return }
        bitsPerSecond = max(lowered, least)
        guard !input.isCarried else { return }
        if delivered < capacity.lowerBound { capacity.forget() }
        capacity.wasFull(at: delivered)
    }

    private mutating func increase(_ input: Input, at now: MonotonicTime) {
        defer { lastChange = now }
        let delivered = input.acknowledged ?? bitsPerSecond
        if delivered > capacity.upperBound { capacity.forget() }
        // Far above the sent rate nothing is known; probes cover that. (libwebrtc allows 1.5 times, because an encoder follows.)
        // Windows of 150 ms hold four or five frames, and an uneven one must not count as a faster link.
        steadyDelivered += (delivered - steadyDelivered) * (steadyDelivered == 0 ? 1 : 0.1)
        let limit = 1.05 * min(delivered, steadyDelivered) + 10_000
        guard bitsPerSecond < limit, !input.isApplicationLimited else { return }
        let elapsed = min(lastChange.map { (now - $0).seconds } ?? 0, 1)
        let step: Double
        if capacity.bitsPerSecond != nil {
            // One packet of the usual size per response time, which is twice the sum of the round trip and the detector's 100 ms.
            let frame = bitsPerSecond / 8 / 30
            let packet = frame / max(1, (frame / 1_200).rounded(.up)) * 8
            step = max(packet / (2 * (input.roundTrip.seconds + 0.1)), 4_000) * elapsed
        } else {
            step = max(bitsPerSecond * 0.08 * elapsed, 1_000 * elapsed)
        }
        // Slower if packets already wait; never so slow that a flow that fills queues takes everything.
        let patience = min(max(1 - Double(input.queueDelay - 20_000) / 60_000, 0.25), 1)
        bitsPerSecond = min(min(bitsPerSecond + step * patience, limit), most)
    }
}
