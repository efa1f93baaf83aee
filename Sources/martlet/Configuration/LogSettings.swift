import Logging

/// `log`: which messages are logged, and how.
struct LogSettings: Sendable {
    var level = LogLevel.info
    var format = LogFormat.text
    var showsAddresses = false

    /// Where messages go.
    func makeOutput() -> LogOutput { LogOutput(level: level, format: format, showAddresses: showsAddresses) }
}

extension Setting {
    static let log: [Setting] = [
        word(
            "log.level", "minimum severity of messages to log",
            [("debug", .debug), ("info", .info), ("warning", .warning), ("error", .error)],
            \.log.level),
        word("log.format", "format of log lines", [("text", .text), ("json", .json)], \.log.format),
        flag("log.addresses", "log client addresses in full", \.log.showsAddresses),
    ]
}
