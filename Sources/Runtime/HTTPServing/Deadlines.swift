import Primitives

/// Deadlines with their owners, soonest first: a binary heap.
///
/// A postponed deadline stays in until it expires; its `Timeout` then knows whether it still counts.
struct Deadlines {
    private var heap: [(moment: MonotonicTime, owner: UInt64)] = []

    /// How many moments are waited for.
    var count: Int { heap.count }

    /// The soonest; `distantFuture` when there is none.
    var next: MonotonicTime { heap.first?.moment ?? .distantFuture }

    /// Adds a deadline of `owner`.
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

/// When one owner times out: a deadline that is postponed far more often than it expires.
///
/// Of the moments in `Deadlines` only the soonest counts, and a later one is entered when that has come. So whoever is busy costs the heap an entry in
/// ten seconds and not one for each request.
struct Timeout {
    private var moment = MonotonicTime.distantFuture
    private var entered = MonotonicTime.distantFuture

    /// Whether it is set.
    var isSet: Bool { moment != .distantFuture }

    /// Gives `owner` time until `moment`; without limit with `.distantFuture`.
    mutating func set(_ moment: MonotonicTime, of owner: UInt64, in deadlines: inout Deadlines) {
        self.moment = moment
        guard moment < entered else { return }
        entered = moment
        deadlines.add(moment, owner)
    }

    /// Whether the time of `owner` is over, now that one of its deadlines has expired.
    mutating func isOver(
        at moment: MonotonicTime, now: MonotonicTime, of owner: UInt64, in deadlines: inout Deadlines
    ) -> Bool {
        // One that was replaced by a sooner deadline.
        guard moment == entered else { return false }
        entered = .distantFuture
        if self.moment <= now { return true }
        set(self.moment, of: owner, in: &deadlines)
        return false
    }

    /// Whether it has come.
    func isOver(at now: MonotonicTime) -> Bool { moment <= now }
}
