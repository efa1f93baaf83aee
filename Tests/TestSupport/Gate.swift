import Synchronization

/// A gate that opens once; tests wait for it instead of sleeping.
public final class Gate: Sendable {
    private let state = Mutex<(isOpen: Bool, waiters: [CheckedContinuation<Void, Never>])>((false, []))

    /// A closed gate.
    public init() {}

    /// Lets all pass, now and later.
    public func open() {
        let waiters = state.withLock { state in
            defer { state = (true, []) }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns once it is open.
    public func wait() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiters.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }
}

/// Lets other tasks run while a test waits for them, and throws when the test's time is over: the limit by itself
/// ends no loop, and the whole run would never end.
public func giveWay() async throws {
    try Task.checkCancellation()
    await Task.yield()
}
