import Primitives
import Simulation

/// A TCP sender that never runs out of data, over a client's downlink: window by NewReno (RFC 5681, RFC 6582) or CUBIC (RFC 9438), losses found by
/// selective acknowledgements (RFC 6675), one reduction a round trip, a slow start that ends as delay grows (HyStart++, RFC 9406), and a
/// timeout. The link keeps the order, so what three later segments overtook is lost.
final class TCPFlow {
    enum Control: String { case newReno = "NewReno", cubic = "CUBIC" }

    /// A segment of 1,448 bytes with its headers takes 1,500 on the wire, 28 of which the link adds to every datagram.
    private static let length = 1_472
    private static let duplicates = 3
    private static let timeout = TimeSpan.seconds(1)

    private let world: World
    private let client: VirtualClient
    private var window: CongestionWindow
    /// Numbers on their way, in order, with when they left.
    private var outstanding: [(number: Int, sent: MonotonicTime)] = []
    private var next = 0
    /// Losses of numbers below this belong to the last reduction.
    private var recoveryEnd = 0
    private var lastProgress = MonotonicTime.zero
    private var random = RandomSource(seed: 5)
    private(set) var isRunning = false
    /// Segments acknowledged, and found lost.
    private(set) var delivered = 0
    private(set) var lost = 0

    init(_ control: Control, _ world: World, over client: VirtualClient) {
        window = CongestionWindow(isCubic: control == .cubic)
        self.world = world
        self.client = client
    }

    private var clock: Double { (world.now - .zero).seconds }

    /// Bits on the wire so far.
    var bits: Double { Double(delivered) * Double((Self.length + 28) * 8) }

    func start() {
        isRunning = true
        lastProgress = world.now
        send()
        watch()
    }

    func stop() { isRunning = false }

    private func send() {
        while isRunning, outstanding.count < window.segments {
            let number = next, sent = world.now
            next += 1
            outstanding.append((number, sent))
            guard let time = client.downlink.arrivals(of: Self.length, at: sent, random: &random).first else {
                continue
            }
            world.plan(at: time + client.uplink.model.delay) { [self] in acknowledged(number, sent: sent) }
        }
    }

    private func acknowledged(_ number: Int, sent: MonotonicTime) {
        guard let place = outstanding.firstIndex(where: { $0.number == number }) else { return }
        outstanding.remove(at: place)
        delivered += 1
        lastProgress = world.now
        window.acknowledged(roundTrip: (world.now - sent).seconds, isRoundEnd: number >= roundEnd, at: clock)
        if number >= roundEnd { roundEnd = next }
        while let first = outstanding.first, first.number + Self.duplicates <= number {
            outstanding.removeFirst()
            lost += 1
            guard first.number >= recoveryEnd else { continue }
            recoveryEnd = next
            window.lost(at: clock)
        }
        send()
    }

    private var roundEnd = 0

    private func watch() {
        guard isRunning else { return }
        if !outstanding.isEmpty, world.now - lastProgress >= Self.timeout {
            lost += outstanding.count
            outstanding.removeAll()
            window.timedOut(at: clock)
            recoveryEnd = next
            lastProgress = world.now
            send()
        }
        world.plan(in: .milliseconds(100)) { [self] in watch() }
    }
}

/// Segments that may be on their way.
private struct CongestionWindow {
    private static let scale = 0.4, beta = 0.7
    let isCubic: Bool
    private var size = 10.0
    private var threshold = Double.infinity
    /// CUBIC: the window before the last loss, when growth began again, and how long the way back takes.
    private var before = 0.0, epoch = 0.0, way = 0.0, friendly = 0.0
    /// HyStart++: the least round trip of this round and of the last.
    private var roundLeast = Double.infinity, lastLeast = Double.infinity, samples = 0

    init(isCubic: Bool) { self.isCubic = isCubic }

    var segments: Int { max(1, Int(size)) }

    mutating func acknowledged(roundTrip: Double, isRoundEnd: Bool, at now: Double) {
        if size < threshold {
            size += 1
            watchDelay(roundTrip, isRoundEnd: isRoundEnd, at: now)
        } else if isCubic {
            let time = now - epoch + roundTrip - way
            let target = min(max(Self.scale * time * time * time + before, size), 1.5 * size)
            size += (target - size) / size
            friendly += 3 * (1 - Self.beta) / (1 + Self.beta) / size
            size = max(size, friendly)
        } else {
            size += 1 / size
        }
    }

    private mutating func watchDelay(_ roundTrip: Double, isRoundEnd: Bool, at now: Double) {
        roundLeast = min(roundLeast, roundTrip)
        samples += 1
        if samples >= 8, roundLeast >= lastLeast + min(max(lastLeast / 8, 0.004), 0.016) {
            threshold = size
            begin(from: size, at: now)
        }
        guard isRoundEnd else { return }
        lastLeast = roundLeast
        roundLeast = .infinity
        samples = 0
    }

    mutating func lost(at now: Double) {
        // Fast convergence leaves room for a newcomer.
        let last = size < before ? size * (1 + Self.beta) / 2 : size
        size = max(2, size * (isCubic ? Self.beta : 0.5))
        threshold = size
        begin(from: last, at: now)
    }

    mutating func timedOut(at now: Double) {
        threshold = max(2, size / 2)
        begin(from: size, at: now)
        size = 1
        friendly = 1
    }

    private mutating func begin(from last: Double, at now: Double) {
        before = last
        epoch = now
        friendly = size
        way = Self.cubeRoot(max(last - size, 0) / Self.scale)
    }

    /// By Newton's method; Foundation is not needed for it.
    private static func cubeRoot(_ value: Double) -> Double {
        guard value > 0 else { return 0 }
        var root = max(value, 1)
        for _ in 0..<60 { root -= (root * root * root - value) / (3 * root * root) }
        return root
    }
}
