import Synchronization

/// Whether the server accepts new work. Alive and ready differ: a draining server is alive and not ready.
public final class Health: Sendable {
    private struct State {
        var isStarted = false
        var isDraining = false
        var isEnding = false
    }

    private let state = Mutex(State())

    /// Alive, not ready yet.
    public init() {}

    /// Everything is started.
    public func becomeReady() { state.withLock { $0.isStarted = true } }

    /// An operator begins or ends a drain. Returns false and does nothing while the server shuts down, which cannot be undone.
    public func setDraining(_ isDraining: Bool) -> Bool {
        state.withLock { state in
            guard !state.isEnding else { return false }
            state.isDraining = isDraining
            return true
        }
    }

    /// Ending: no new work, please.
    public func becomeUnready() { state.withLock { $0.isEnding = true } }

    /// Whether new work is welcome.
    public var isReady: Bool { state.withLock { $0.isStarted && !$0.isDraining && !$0.isEnding } }
}
