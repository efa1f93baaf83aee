/// The importance of a log line.
public enum LogLevel: Int, Sendable, Comparable, CaseIterable {
    /// For developers: one line per step.
    case debug
    /// Normal operation of the service: one line per join, leave or start.
    case info
    /// Something was refused or abandoned; the service continues.
    case warning
    /// The service cannot do its work.
    case error

    /// The word in the log and in the configuration.
    public var word: String {
        switch self {
        case .debug: "debug"
        case .info: "info"
        case .warning: "warning"
        case .error: "error"
        }
    }

    /// The level that `word` names; nil for an unknown word.
    public init?(word: String) {
        guard let level = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = level
    }

    /// Whether `a` is less important than `b`.
    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}
