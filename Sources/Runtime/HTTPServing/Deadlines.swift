import Primitives

/// When somebody is due, soonest first: a binary heap.
///
/// A moment that was put off stays in until it comes; whoever owns it looks then whether it still counts.
struct Deadlines {
    private var heap: [(moment: MonotonicTime, owner: UInt64)] = []

    /// The soonest; never when there is none.
    var next: MonotonicTime { heap.first?.moment ?? .distantFuture }

    /// Adds a moment of `owner`.
    mutating func add(_ moment: MonotonicTime, _ owner: UInt64) {
        heap.append((moment, owner))
        var child = heap.count - 1
        while child > 0, heap[child].moment < heap[(child - 1) / 2].moment {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Takes out an owner whose moment has come.
    mutating func removeDue(at now: MonotonicTime) -> UInt64? {
        guard let first = heap.first, first.moment <= now else { return nil }
        heap[0] = heap[heap.count - 1]
        heap.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
                if heap[child].moment < heap[least].moment { least = child }
            }
            if least == parent { return first.owner }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
