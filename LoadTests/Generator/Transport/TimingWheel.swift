/// Timers of thousands of peers at the cost of an array append: slots of one millisecond, about four seconds ahead.
///
/// A timer that is no longer wanted is not removed: its owner looks at the time when it is called.
struct TimingWheel {
    private static let slotCount = 4_096
    private static let slotNanoseconds: Int64 = 1_000_000
    private var slots = [[UInt64]](repeating: [], count: TimingWheel.slotCount)
    private var current: Int64
    private var waiting = 0

    /// An empty wheel that starts at `now`.
    init(now: Int64) { current = now / Self.slotNanoseconds }

    /// Calls `key` at `time` or up to a millisecond later; times further ahead than the wheel come early.
    mutating func schedule(_ key: UInt64, at time: Int64) {
        let tick = max(current + 1, (time + Self.slotNanoseconds - 1) / Self.slotNanoseconds)
        slots[Int(min(tick, current + Int64(Self.slotCount - 1)) % Int64(Self.slotCount))].append(key)
        waiting += 1
    }

    /// The keys whose time has come.
    mutating func advance(to now: Int64, into due: inout [UInt64]) {
        due.removeAll(keepingCapacity: true)
        let target = now / Self.slotNanoseconds
        while current < target {
            current += 1
            let slot = Int(current % Int64(Self.slotCount))
            guard !slots[slot].isEmpty else { continue }
            due.append(contentsOf: slots[slot])
            waiting -= slots[slot].count
            slots[slot].removeAll(keepingCapacity: true)
        }
    }

    /// When the next slot with a key comes, at most `limit` nanoseconds after `now`.
    func nextDeadline(now: Int64, limit: Int64) -> Int64 {
        let last = (now + limit) / Self.slotNanoseconds
        var tick = current + 1
        while tick < last {
            if !slots[Int(tick % Int64(Self.slotCount))].isEmpty { return tick * Self.slotNanoseconds }
            tick += 1
        }
        return now + limit
    }
}
