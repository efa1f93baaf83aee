import Synchronization

/// Whether the server takes new work. Alive and ready differ: a draining server is alive and not ready.
public final class Health: Sendable {
    private let ready = Atomic<Bool>(false)

    /// Alive, not ready yet.
    public init() {}

    /// Everything is started.
    public func becomeReady() { ready.store(true, ordering: .releasing) }

    /// Ending: no new work, please.
    public func becomeUnready() { ready.store(false, ordering: .releasing) }

    /// Whether new work is welcome.
    public var isReady: Bool { ready.load(ordering: .acquiring) }
}
