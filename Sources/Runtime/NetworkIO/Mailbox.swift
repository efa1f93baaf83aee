import Synchronization

/// Values passed from any thread to the one that owns a loop.
///
/// Bounded by its senders: each waits for the job that it posts.
public final class Mailbox<Element: Sendable>: Sendable {
    private struct State {
        var queue: [Element] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    private let wake: WakeSignal

    /// An empty mailbox that wakes its owner by `wake`.
    public init(wake: WakeSignal) { self.wake = wake }

    /// Adds a value; false if the mailbox is closed. Only the first one into an empty mailbox costs a system call.
    public func post(_ element: Element) -> Bool {
        let (isPosted, wasEmpty) = state.withLock { state -> (Bool, Bool) in
            guard !state.isClosed else { return (false, false) }
            state.queue.append(element)
            return (true, state.queue.count == 1)
        }
        if wasEmpty { wake.signal() }
        return isPosted
    }

    /// Swaps the posted values into `taken`, which must be empty: the two buffers take turns and nothing is allocated.
    public func drain(into taken: inout [Element]) {
        precondition(taken.isEmpty, "the last values have been handled")
        state.withLock { swap(&$0.queue, &taken) }
    }

    /// Puts back values that were drained but not handled, from `index` on, before those posted since, and wakes the owner again.
    public func putBack(_ taken: inout [Element], from index: Int) {
        state.withLock { $0.queue.insert(contentsOf: taken[index...], at: 0) }
        taken.removeAll(keepingCapacity: true)
        wake.signal()
    }

    /// Whether it is closed.
    public var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Closes it; what was posted can still be drained.
    public func close() { state.withLock { $0.isClosed = true } }
}
