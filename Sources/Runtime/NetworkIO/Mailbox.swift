import Synchronization

/// Values handed from any thread to the one that owns a loop.
///
/// Bounded by its senders: what is posted are jobs whose senders wait for them.
public final class Mailbox<Element: Sendable>: Sendable {
    private let queue = Mutex<[Element]>([])
    private let wake: WakeSignal

    /// An empty mailbox that wakes its owner by `wake`.
    public init(wake: WakeSignal) { self.wake = wake }

    /// Adds a value. Only the first into an empty mailbox costs a system call.
    public func post(_ element: Element) {
        let wasEmpty = queue.withLock { queue in
            queue.append(element)
            return queue.count == 1
        }
        if wasEmpty { wake.signal() }
    }

    /// Swaps what was posted into `taken`, which must be empty: the two buffers take turns and nothing is allocated.
    public func take(into taken: inout [Element]) {
        precondition(taken.isEmpty, "the last values have been handled")
        queue.withLock { swap(&$0, &taken) }
    }
}
