import Synchronization

/// From which level on one component writes lines. Shared by all loggers of that component, and changed while they write.
final class LogThreshold: Sendable {
    private let rawLevel: Atomic<Int>

    init(_ level: LogLevel) { rawLevel = Atomic(level.rawValue) }

    /// The level. A change holds for the lines that come after it.
    var level: LogLevel {
        get { LogLevel(rawValue: rawLevel.load(ordering: .relaxed)) ?? .debug }
        set { rawLevel.store(newValue.rawValue, ordering: .relaxed) }
    }
}
