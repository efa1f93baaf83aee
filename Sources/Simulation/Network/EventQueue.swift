public import Primitives

/// Future events, in order of time; of events at the same time, the one that was planned first happens first, so that one seed gives
/// one run. A binary heap.
public struct EventQueue<Event> {
    private struct Planned {
        var time: MonotonicTime
        var order: UInt64
        var event: Event

        static func < (a: Self, b: Self) -> Bool { (a.time, a.order) < (b.time, b.order) }
    }

    private var heap: [Planned] = []
    private var planned: UInt64 = 0

    /// Nothing planned.
    public init() {}

    /// The time of the next event; nil if none is planned.
    public var nextTime: MonotonicTime? { heap.first?.time }

    /// Whether nothing is planned.
    public var isEmpty: Bool { heap.isEmpty }

    /// Plans something.
    public mutating func plan(_ event: Event, at time: MonotonicTime) {
        heap.append(Planned(time: time, order: planned, event: event))
        planned += 1
        var child = heap.count - 1
        while child > 0, heap[child] < heap[(child - 1) / 2] {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Removes and returns the next event no later than `time`.
    public mutating func next(until time: MonotonicTime) -> (time: MonotonicTime, event: Event)? {
        guard let first = heap.first, first.time <= time else { return nil }
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var parent = 0
        while true {
            let left = 2 * parent + 1
            guard left < heap.count else { break }
            let right = left + 1
            let least = right < heap.count && heap[right] < heap[left] ? right : left
            guard heap[least] < heap[parent] else { break }
            heap.swapAt(least, parent)
            parent = least
        }
        return (first.time, first.event)
    }
}
