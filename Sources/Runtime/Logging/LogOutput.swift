import Glibc
import Synchronization

/// The format of lines.
public enum LogFormat: String, Sendable, CaseIterable {
    /// `2026-01-31T12:00:00.123Z info http: listening port=7880`
    case text
    /// One JSON object per line.
    case json
}

/// The destination of all loggers of a process: whole lines, one at a time, from any thread.
public final class LogOutput: Sendable {
    /// The level from which a component writes unless configured otherwise.
    public var level: LogLevel { standard.level }
    private let standard: LogThreshold
    /// By component, as soon as it has a logger.
    private let thresholds = Mutex<[String: LogThreshold]>([:])
    private let formatter: LogFormatter
    private let sink: @Sendable (String) -> Void
    /// The lock for writing. The closure is outside it: without optimisation, each access to one would wrap it again.
    private let turn = Mutex(())

    /// An output to `sink`, by default standard error. `showAddresses` writes client addresses in full.
    public init(
        level: LogLevel = .info, format: LogFormat = .text, showAddresses: Bool = false,
        sink: @escaping @Sendable (String) -> Void = LogOutput.writeToStandardError
    ) {
        standard = LogThreshold(level)
        self.formatter = LogFormatter(format: format, showAddresses: showAddresses)
        self.sink = sink
    }

    /// The threshold that all loggers of `component` share.
    func threshold(of component: String) -> LogThreshold {
        thresholds.withLock { thresholds in
            if let known = thresholds[component] { return known }
            let made = LogThreshold(level)
            thresholds[component] = made
            return made
        }
    }

    /// The level of every component that has a logger.
    public var levels: [String: LogLevel] { thresholds.withLock { $0.mapValues(\.level) } }

    /// Sets levels of components, from the next line on: all of them, or none if a component is unknown, whose name is then returned.
    public func setLevels(_ levels: [String: LogLevel]) -> String? {
        thresholds.withLock { thresholds in
            if let unknown = levels.keys.sorted().first(where: { thresholds[$0] == nil }) { return unknown }
            for (component, level) in levels { thresholds[component]?.level = level }
            return nil
        }
    }

    /// Sets the level of every component, also of those that have no logger yet, from the next line on.
    public func setLevel(_ level: LogLevel) {
        thresholds.withLock { thresholds in
            standard.level = level
            for threshold in thresholds.values { threshold.level = level }
        }
    }

    func write(level: LogLevel, component: String, message: String, fields: LogFields) {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        let line = formatter.line(
            seconds: Int(time.tv_sec), milliseconds: Int(time.tv_nsec) / 1_000_000, level: level, component: component,
            message: message, fields: fields)
        turn.withLock { _ in
            Self.standardError.reportLost { lost in
                formatter.line(
                    seconds: Int(time.tv_sec), milliseconds: Int(time.tv_nsec) / 1_000_000, level: .warning,
                    component: "log",
                    message: "log lines were lost because nobody read them for a while, or the disk was full",
                    fields: ["lines": .number(lost)]) + "\n"
            }
            sink(line)
        }
    }

    /// Writes a line to file descriptor 2, and never waits for its reader: see ``LineWriter``.
    public static func writeToStandardError(_ line: String) { standardError.write(line + "\n") }

    private static let standardError = LineWriter(2)
}
