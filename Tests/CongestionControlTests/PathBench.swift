import CongestionControl
import Primitives
import Simulation

/// One sender over one bottleneck, in steps of a millisecond: what the estimator makes of it.
///
/// The source sends frames at the rate that `choose` gives for the estimate, as an encoder or a layer would.
struct PathBench: ~Copyable {
    struct Sample {
        var time: MonotonicTime
        var estimate: Double
        var rate: Double
        var capacity: Double
        var queueDelay: Double
    }

    struct Arrival {
        var sequence: UInt16
        var sent: MonotonicTime
        var at: MonotonicTime
        var isOwn: Bool
        var size: Int
    }

    var estimator = BandwidthEstimator()
    var pacer = Pacer()
    var link: VirtualLink
    var random: RandomSource
    var now = MonotonicTime(milliseconds: 1_000)
    var backDelay = TimeSpan.milliseconds(25)
    var framesPerSecond = 30.0
    var paddingSize = 400
    var feedbackInterval = TimeSpan.milliseconds(60)
    /// The rate of the source for an estimate.
    var choose: (Double, MonotonicTime) -> Double
    /// What would be needed for the next gain, and for everything.
    var demand: (Double) -> (next: Double?, wanted: Double) = { ($0 * 1.2, 1e9) }
    /// Bits a second of other traffic, constant.
    var cross = 0.0
    var tcp: RenoFlow?
    /// Each so many probes one has its first packets held back on the way, as radios do, so that it seems to come faster than the link is; 0: none.
    var holdsEachProbe = 0

    private(set) var samples: [Sample] = []
    private(set) var sentPackets = 0
    private(set) var lostPackets = 0
    private(set) var probeBytes = 0
    private(set) var deliveredBytes = 0
    private var sequence: UInt16 = 0
    private var inFlight = EventQueue<Arrival>()
    private var feedback = EventQueue<[(UInt16, Int64?)]>()
    private var arrived: [(UInt16, Int64)] = []
    private var nextExpected: UInt16 = 1
    private var nextFeedback = MonotonicTime.zero
    private var nextFrame = MonotonicTime(milliseconds: 1_000)
    private var nextCross = MonotonicTime(milliseconds: 1_000)
    private var waiting: [Int] = []
    private var probes = 0
    private var lastPadding = MonotonicTime.zero
    private var heldUntil = MonotonicTime.zero

    init(
        rate: Double?, delay: TimeSpan = .milliseconds(25), seed: UInt64 = 1,
        choose: @escaping (Double, MonotonicTime) -> Double = { estimate, _ in estimate }
    ) {
        var model = LinkModel(delay: delay)
        model.rate = rate.map { .bitsPerSecond(Int64($0)) }
        link = VirtualLink(model)
        random = RandomSource(seed: seed)
        self.choose = choose
    }

    mutating func run(seconds: Double) {
        let end = now + .microseconds(Int64(seconds * 1e6))
        while now < end {
            step()
            now = now + .milliseconds(1)
        }
    }

    private mutating func step() {
        deliver()
        let estimate = Double(estimator.estimate(at: now).bitsPerSecond)
        let want = demand(estimate)
        let rate = choose(estimate, now)
        estimator.setDemand(
            allocated: .bitsPerSecond(Int64(rate)), video: .bitsPerSecond(Int64(rate)),
            next: want.next.map { .bitsPerSecond(Int64($0)) },
            wanted: .bitsPerSecond(Int64(want.wanted)), at: now)
        pacer.setEstimate(.bitsPerSecond(Int64(estimate)))
        pacer.refill(at: now)
        sendFrame(rate)
        while pacer.next(at: now) != nil, !waiting.isEmpty { send(waiting.removeFirst(), isPadding: false) }
        estimator.advance(to: now)
        while estimator.probeBytesDue(at: now) > 0 { send(paddingSize, isPadding: true) }
        crossTraffic()
        if now.milliseconds % 50 == 0 { sample(estimate, rate) }
    }

    private mutating func sendFrame(_ rate: Double) {
        guard now >= nextFrame else { return }
        nextFrame = nextFrame + .microseconds(Int64(1e6 / framesPerSecond))
        // Headers count: a rate is what the wire carries.
        var bytes = Int(rate / 8 / framesPerSecond * Double.random(in: 0.8...1.2, using: &random))
        while bytes > 0 {
            let size = max(min(bytes, 1_100) - BandwidthEstimator.wireOverhead, 20)
            bytes -= size + BandwidthEstimator.wireOverhead
            if pacer.isOpen {
                send(size, isPadding: false)
            } else if pacer.enqueue(.init(value: 0, size: size)) {
                waiting.append(size)
            }
        }
    }

    private mutating func send(_ size: Int, isPadding: Bool) {
        sequence &+= 1
        estimator.sent(sequence, size: size, at: now)
        pacer.spend(size)
        sentPackets += 1
        if isPadding { probeBytes += size }
        let arrivals = link.arrivals(of: size, at: now, random: &random)
        if arrivals.isEmpty { lostPackets += 1 }
        if isPadding, let first = arrivals.first { hold(first) }
        for time in arrivals.map({ max($0, heldUntil) }) {
            inFlight.plan(Arrival(sequence: sequence, sent: now, at: time, isOwn: true, size: size), at: time)
        }
    }

    private mutating func hold(_ first: MonotonicTime) {
        if now - lastPadding > .milliseconds(50) {
            probes += 1
            if holdsEachProbe > 0, probes.isMultiple(of: holdsEachProbe) { heldUntil = first + .milliseconds(8) }
        }
        lastPadding = now
    }

    private mutating func deliver() {
        while let (time, packet) = inFlight.next(until: now) {
            guard packet.isOwn else {
                tcp?.acknowledged(at: time)
                continue
            }
            arrived.append((packet.sequence, time.microseconds + 77_000_000))
            deliveredBytes += packet.size + BandwidthEstimator.wireOverhead
        }
        if now >= nextFeedback, !arrived.isEmpty {
            nextFeedback = now + feedbackInterval
            sendFeedback()
        }
        while let (_, report) = feedback.next(until: now) {
            estimator.beginFeedback(at: now)
            for (sequence, arrival) in report { estimator.report(sequence, arrival: arrival) }
            estimator.endFeedback(at: now)
        }
    }

    private mutating func sendFeedback() {
        let newest = arrived.map { Int(Int16(bitPattern: $0.0 &- nextExpected)) }.max() ?? 0
        var report: [(UInt16, Int64?)] = []
        let first = min(0, arrived.map { Int(Int16(bitPattern: $0.0 &- nextExpected)) }.min() ?? 0)
        for offset in first...max(newest, first) {
            let number = nextExpected &+ UInt16(truncatingIfNeeded: offset)
            let time = arrived.first { $0.0 == number }?.1
            if offset >= 0 || time != nil { report.append((number, time.map { $0 / 250 * 250 })) }
        }
        if newest >= 0 { nextExpected = nextExpected &+ UInt16(truncatingIfNeeded: newest + 1) }
        arrived.removeAll()
        feedback.plan(report, at: now + backDelay)
    }

    private mutating func crossTraffic() {
        while cross > 0, now >= nextCross {
            _ = link.arrivals(of: 1_100, at: now, random: &random)
            nextCross = nextCross + .microseconds(Int64(1_128 * 8e6 / cross))
        }
        guard tcp != nil else { return }
        while tcp!.maySend {
            let arrivals = link.arrivals(of: 1_400, at: now, random: &random)
            tcp!.sent(wasLost: arrivals.isEmpty, at: now)
            for time in arrivals {
                inFlight.plan(
                    Arrival(sequence: 0, sent: now, at: time, isOwn: false, size: 1_400), at: time + backDelay)
            }
        }
        tcp!.advance(to: now)
    }

    private mutating func sample(_ estimate: Double, _ rate: Double) {
        samples.append(
            Sample(
                time: now, estimate: estimate, rate: rate,
                capacity: Double(link.model.rate?.bitsPerSecond ?? 0),
                queueDelay: Double(link.backlog(at: now).microseconds) / 1_000))
    }

    // MARK: - Reading

    func estimates(from: Double, to: Double = .infinity) -> [Double] {
        samples.filter {
            $0.time.milliseconds >= Int64(from * 1e3) + 1_000 && Double($0.time.milliseconds - 1_000) <= to * 1e3
        }
        .map(\.estimate)
    }

    func queueDelays(from: Double) -> [Double] {
        samples.filter { $0.time.milliseconds >= Int64(from * 1e3) + 1_000 }.map(\.queueDelay)
    }

    /// Seconds after `start` until the estimate is at least `rate`; nil when it never is.
    func time(after start: Double, untilAtLeast rate: Double) -> Double? {
        samples.first { Double($0.time.milliseconds) / 1e3 - 1 >= start && $0.estimate >= rate }
            .map { Double($0.time.milliseconds) / 1e3 - 1 - start }
    }

    func time(after start: Double, untilAtMost rate: Double) -> Double? {
        samples.first { Double($0.time.milliseconds) / 1e3 - 1 >= start && $0.estimate <= rate }
            .map { Double($0.time.milliseconds) / 1e3 - 1 - start }
    }
}

/// A flow that fills the queue until it loses, as Reno does.
struct RenoFlow {
    var window = 4.0
    private var outstanding = 0
    private var threshold = 1e9
    private var lastLoss = MonotonicTime.zero
    private var losses: [MonotonicTime] = []
    private(set) var delivered = 0

    var maySend: Bool { Double(outstanding) < window }

    mutating func sent(wasLost: Bool, at now: MonotonicTime) {
        outstanding += 1
        if wasLost { losses.append(now + .milliseconds(150)) }
    }

    mutating func acknowledged(at now: MonotonicTime) {
        outstanding = max(0, outstanding - 1)
        delivered += 1
        window += window < threshold ? 1 : 1 / window
    }

    mutating func advance(to now: MonotonicTime) {
        while let first = losses.first, first <= now {
            losses.removeFirst()
            outstanding = max(0, outstanding - 1)
            guard now - lastLoss > .milliseconds(150) else { continue }
            lastLoss = now
            window = max(2, window / 2)
            threshold = window
        }
    }
}

extension [Double] {
    func percentile(_ p: Double) -> Double {
        isEmpty ? .nan : sorted()[Swift.min(count - 1, Int(Double(count) * p))]
    }
    var mean: Double { isEmpty ? .nan : reduce(0, +) / Double(count) }
}
