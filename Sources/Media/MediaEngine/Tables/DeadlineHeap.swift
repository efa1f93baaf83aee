import Primitives

/// The next deadlines of many owners, each identified by a small number: a binary heap with a table of positions.
struct DeadlineHeap: ~Copyable {
    private struct Entry {
        var time: MonotonicTime
        var owner: Int
    }

    private var heap: [Entry] = []
    /// Position of each owner in the heap; -1 without a deadline.
    private var positions: [Int] = []

    init() {}

    /// The earliest deadline.
    var next: MonotonicTime { heap.first?.time ?? .distantFuture }

    /// Removes the earliest deadline if it is due at `now`, and returns its owner.
    mutating func popDue(at now: MonotonicTime) -> Int? {
        guard let first = heap.first, first.time <= now else { return nil }
        remove(first.owner)
        return first.owner
    }

    /// Sets the deadline of `owner`, replacing an older one.
    mutating func set(_ owner: Int, to time: MonotonicTime) {
        while positions.count <= owner { positions.append(-1) }
        guard time != .distantFuture else { return remove(owner) }
        let position = positions[owner]
        if position < 0 {
            heap.append(Entry(time: time, owner: owner))
            positions[owner] = heap.count - 1
            siftUp(heap.count - 1)
        } else if heap[position].time != time {
            let isEarlier = time < heap[position].time
            heap[position].time = time
            if isEarlier { siftUp(position) } else { siftDown(position) }
        }
    }

    /// Sets the deadline of `owner` unless it has an earlier one.
    mutating func hasten(_ owner: Int, to time: MonotonicTime) {
        if owner < positions.count, positions[owner] >= 0, heap[positions[owner]].time <= time { return }
        set(owner, to: time)
    }

    /// Removes the deadline of `owner`.
    mutating func remove(_ owner: Int) {
        guard owner < positions.count, positions[owner] >= 0 else { return }
        let position = positions[owner]
        positions[owner] = -1
        let last = heap.removeLast()
        guard position < heap.count else { return }
        heap[position] = last
        positions[last.owner] = position
        siftUp(position)
        siftDown(positions[last.owner])
    }

    private mutating func siftUp(_ start: Int) {
        var index = start
        while index > 0 {
            let parent = (index - 1) / 2
            guard isBefore(index, parent) else { return }
            swap(index, parent)
            index = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var index = start
        while true {
            var least = index
            let child = 2 * index + 1
            if child < heap.count, isBefore(child, least) { least = child }
            if child + 1 < heap.count, isBefore(child + 1, least) { least = child + 1 }
            guard least != index else { return }
            swap(index, least)
            index = least
        }
    }

    /// Equal times are ordered by owner, so that one seed gives one order.
    private func isBefore(_ a: Int, _ b: Int) -> Bool {
        heap[a].time != heap[b].time ? heap[a].time < heap[b].time : heap[a].owner < heap[b].owner
    }

    private mutating func swap(_ a: Int, _ b: Int) {
        heap.swapAt(a, b)
        positions[heap[a].owner] = a
        positions[heap[b].owner] = b
    }
}
