/// Timers of thousands of peers at the cost of an array append: slots of one length, about four seconds ahead.
///
/// A timer that is no longer wanted is not removed: its owner checks the time when it is called.
struct TimingWheel {
    /// How far ahead a timer can be set: longer than any interval of a peer.
    private static let span: Int64 = 4_096_000_000
    private let slotNanoseconds: Int64
    private let slotCount: Int
    private var slots: [[UInt64]]
    private var current: Int64
    private var waiting = 0

    /// An empty wheel that starts at `now`, with slots of `slotNanoseconds` (1,000 to 1,000,000).
    init(now: Int64, slotNanoseconds: Int64 = 1_000_000) {
        self.slotNanoseconds = slotNanoseconds
        slotCount = Int(Self.span / slotNanoseconds)
        slots = [[UInt64]](repeating: [], count: slotCount)
        current = now / slotNanoseconds
    }

    /// Calls `key` at `time` or up to a slot later; times further ahead than the wheel are called early.
    mutating func schedule(_ key: UInt64, at time: Int64) {
        let tick = max(current + 1, (time + slotNanoseconds - 1) / slotNanoseconds)
        slots[Int(min(tick, current + Int64(slotCount - 1)) % Int64(slotCount))].append(key)
        waiting += 1
    }

    /// The keys whose time has come.
    mutating func advance(to now: Int64, into due: inout [UInt64]) {
        due.removeAll(keepingCapacity: true)
        let target = now / slotNanoseconds
        while current < target {
            current += 1
            let slot = Int(current % Int64(slotCount))
            guard !slots[slot].isEmpty else { continue }
            due.append(contentsOf: slots[slot])
            waiting -= slots[slot].count
            slots[slot].removeAll(keepingCapacity: true)
        }
    }

    /// When the next slot with a key is due, at most `limit` nanoseconds after `now`.
    func nextDeadline(now: Int64, limit: Int64) -> Int64 {
        let last = (now + limit) / slotNanoseconds
        var tick = current + 1
        while tick < last {
            if !slots[Int(tick % Int64(slotCount))].isEmpty { return tick * slotNanoseconds }
            tick += 1
        }
        return now + limit
    }
}
