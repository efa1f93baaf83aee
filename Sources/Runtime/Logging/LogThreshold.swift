import Synchronization

/// The level from which one component writes lines. Shared by all loggers of that component, and may change while they write.
final class LogThreshold: Sendable {
    private let rawLevel: Atomic<Int>

    init(_ level: LogLevel) { rawLevel = Atomic(level.rawValue) }

    /// The level. A change applies to later lines.
    var level: LogLevel {
        get { LogLevel(rawValue: rawLevel.load(ordering: .relaxed)) ?? .debug }
        set { rawLevel.store(newValue.rawValue, ordering: .relaxed) }
    }
}
