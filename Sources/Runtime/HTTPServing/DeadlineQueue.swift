import Primitives

/// Deadlines with their owners, soonest first: a binary heap.
///
/// A postponed deadline stays in the heap until it expires; its `Timeout` then decides whether it still counts.
struct DeadlineQueue {
    private var heap: [(moment: MonotonicTime, owner: UInt64)] = []

    /// The number of deadlines.
    var count: Int { heap.count }

    /// The soonest; `distantFuture` if there is none.
    var next: MonotonicTime { heap.first?.moment ?? .distantFuture }

    /// Adds a deadline for `owner`.
    mutating func add(_ moment: MonotonicTime, _ owner: UInt64) {
        heap.append((moment, owner))
        var child = heap.count - 1
        while child > 0, heap[child].moment < heap[(child - 1) / 2].moment {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Removes an expired deadline, with its owner.
    mutating func removeDue(at now: MonotonicTime) -> (moment: MonotonicTime, owner: UInt64)? {
        guard let first = heap.first, first.moment <= now else { return nil }
        heap[0] = heap[heap.count - 1]
        heap.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
                if heap[child].moment < heap[least].moment { least = child }
            }
            if least == parent { return first }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}

/// The timeout of one owner: a deadline that is postponed far more often than it expires.
///
/// Only the soonest entry in `DeadlineQueue` counts; a later one is added when that expires. So a busy owner costs the heap one entry in
/// ten seconds and not one for each request.
struct Timeout {
    private var moment = MonotonicTime.distantFuture
    private var entered = MonotonicTime.distantFuture

    /// Whether it is active.
    var isSet: Bool { moment != .distantFuture }

    /// Gives `owner` time until `moment`; no limit with `.distantFuture`.
    mutating func set(_ moment: MonotonicTime, of owner: UInt64, in deadlines: inout DeadlineQueue) {
        self.moment = moment
        guard moment < entered else { return }
        entered = moment
        deadlines.add(moment, owner)
    }

    /// Whether `owner` has timed out, now that one of its deadlines has expired.
    mutating func isOver(
        at moment: MonotonicTime, now: MonotonicTime, of owner: UInt64, in deadlines: inout DeadlineQueue
    ) -> Bool {
        // An entry that was replaced by a sooner deadline.
        guard moment == entered else { return false }
        entered = .distantFuture
        if self.moment <= now { return true }
        set(self.moment, of: owner, in: &deadlines)
        return false
    }

    /// Whether the deadline has passed.
    func isOver(at now: MonotonicTime) -> Bool { moment <= now }
}
