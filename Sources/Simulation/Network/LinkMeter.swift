public import Primitives

/// What one direction of a link carried, in steps of a fixed length.
public struct LinkMeter: Sendable {
    /// One step.
    public struct Step: Sendable {
        public var bytes = 0
        public var datagrams = 0
        public var lost = 0
        public var overflowed = 0
        /// The longest wait at the bottleneck.
        public var longestWait = TimeSpan.zero
    }

    /// Length of a step.
    public static let step = TimeSpan.milliseconds(100)
    /// Steps since the world's beginning.
    public private(set) var steps: [Step] = []
    /// Waits at the bottleneck by whole milliseconds; the last entry holds all longer ones.
    private var waits = [Int](repeating: 0, count: 2_001)

    init() {}

    /// What was carried in all.
    public var total: Step { sum(steps) }

    /// What was carried between two moments, in whole steps.
    public func total(from start: MonotonicTime, to end: MonotonicTime) -> Step {
        let range = index(start)..<max(index(start), index(end))
        return sum(steps[range.clamped(to: 0..<steps.count)])
    }

    /// Bits of datagrams, without IP and UDP headers, per second between two moments.
    public func rate(from start: MonotonicTime, to end: MonotonicTime) -> Bitrate {
        guard end > start else { return .zero }
        return .bitsPerSecond(Int64(Double(total(from: start, to: end).bytes * 8) / (end - start).seconds))
    }

    /// The wait that this share of datagrams (0 to 1) did not exceed.
    public func wait(percentile: Double) -> TimeSpan {
        let wanted = Int(Double(waits.reduce(0, +)) * percentile)
        var seen = 0
        for (milliseconds, count) in waits.enumerated() {
            seen += count
            if seen >= wanted, seen > 0 { return .milliseconds(Int64(milliseconds)) }
        }
        return .zero
    }

    mutating func passed(_ bytes: Int, wait: TimeSpan, at now: MonotonicTime) {
        let index = grow(now)
        steps[index].bytes += bytes
        steps[index].datagrams += 1
        steps[index].longestWait = max(steps[index].longestWait, wait)
        waits[min(Int(wait.milliseconds), waits.count - 1)] += 1
    }

    mutating func lost(at now: MonotonicTime) { steps[grow(now)].lost += 1 }
    mutating func overflowed(at now: MonotonicTime) { steps[grow(now)].overflowed += 1 }

    private func index(_ time: MonotonicTime) -> Int { Int(time.nanoseconds / Self.step.nanoseconds) }

    private mutating func grow(_ now: MonotonicTime) -> Int {
        let index = index(now)
        while steps.count <= index { steps.append(Step()) }
        return index
    }

    private func sum(_ steps: some Sequence<Step>) -> Step {
        steps.reduce(into: Step()) {
            $0.bytes += $1.bytes
            $0.datagrams += $1.datagrams
            $0.lost += $1.lost
            $0.overflowed += $1.overflowed
            $0.longestWait = max($0.longestWait, $1.longestWait)
        }
    }
}
