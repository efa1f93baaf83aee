/// Writes lines for one component to a shared output.
///
/// Messages and fields are autoclosures: a line below the output's level costs a comparison, never a string.
public struct Logger: Sendable {
    /// The part of the server that logs, for example "http".
    public let component: String
    /// Its output.
    public let output: LogOutput
    private let threshold: LogThreshold

    /// A logger for `component` that writes to `output`.
    public init(_ component: String, output: LogOutput) {
        self.component = component
        self.output = output
        threshold = output.threshold(of: component)
    }

    /// A logger that writes only errors to standard error; for tests and tools.
    public static let quiet = Logger("martlet", output: LogOutput(level: .error))

    /// The same output under another component's name.
    public func named(_ component: String) -> Logger { Logger(component, output: output) }

    /// Whether lines of `level` are written; for work that only a log line needs.
    public func writes(_ level: LogLevel) -> Bool { level >= threshold.level }

    /// Writes one line if `level` is enabled.
    public func log(
        _ level: LogLevel, _ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]
    ) {
        guard writes(level) else { return }
        output.write(level: level, component: component, message: message(), fields: fields())
    }

    /// One line per step, for developers.
    public func debug(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
        log(.debug, message(), fields())
    }

    /// Normal operation of the service.
    public func info(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
        log(.info, message(), fields())
    }

    /// Something was refused or abandoned; the service continues.
    public func warning(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
        log(.warning, message(), fields())
    }

    /// The service cannot do its work.
    public func error(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
        log(.error, message(), fields())
    }
}
