import Synchronization

/// A worker does not respond: its loop has not turned for seconds.
public struct WorkerHangs: Error, Sendable, Hashable {
    /// It hangs.
    public init() {}
}

/// The control plane's pending calls to one worker. Once the worker hangs all of them fail, and so do later ones.
final class WorkerCalls: Sendable {
    private struct State {
        var hangs = false
        var last: UInt64 = 0
        var waiting: [UInt64: @Sendable () -> Void] = [:]
    }

    private let state = Mutex(State())

    /// Whether the worker hangs.
    var hangs: Bool { state.withLock { $0.hangs } }

    /// How many are pending; for tests.
    var count: Int { state.withLock { $0.waiting.count } }

    /// Records a pending call; `giveUp` is called when the worker hangs, at once if it already does.
    func begin(_ giveUp: @escaping @Sendable () -> Void) -> UInt64 {
        let (number, hangs) = state.withLock { state -> (UInt64, Bool) in
            state.last += 1
            if !state.hangs { state.waiting[state.last] = giveUp }
            return (state.last, state.hangs)
        }
        if hangs { giveUp() }
        return number
    }

    /// The answer to call `number` has arrived.
    func end(_ number: UInt64) { state.withLock { _ = $0.waiting.removeValue(forKey: number) } }

    /// The worker hangs, or has recovered.
    func set(hangs: Bool) {
        let abandoned = state.withLock { state -> [@Sendable () -> Void] in
            state.hangs = hangs
            guard hangs else { return [] }
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        for giveUp in abandoned { giveUp() }
    }
}

/// One call, which ends once: by the worker's response or when it is abandoned.
final class PendingCall<Reply: Sendable>: Sendable {
    private let continuation: Mutex<CheckedContinuation<Reply?, Never>?>

    init(_ continuation: CheckedContinuation<Reply?, Never>) { self.continuation = Mutex(continuation) }

    /// nil: the response is no longer awaited.
    func finish(_ reply: Reply?) {
        let continuation = continuation.withLock { continuation -> CheckedContinuation<Reply?, Never>? in
            defer { continuation = nil }
            return continuation
        }
        continuation?.resume(returning: reply)
    }
}
