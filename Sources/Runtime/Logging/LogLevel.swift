/// How much a line of the log matters.
public enum LogLevel: Int, Sendable, Comparable, CaseIterable {
    /// For developers: one line a step.
    case debug
    /// The normal life of the service: one line a join, a leave, a start.
    case info
    /// Something was refused or given up; the service goes on.
    case warning
    /// The service cannot do what it should.
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

    /// Whether `a` matters less than `b`.
    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}
