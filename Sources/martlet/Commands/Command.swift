/// What the command line asks for.
enum Command {
    case serve(file: String?, isDevelopment: Bool)
    case token(TokenCommand)
    case checkConfig(String)
    case version
    case help
    case helpSettings

    static let usage = """
        usage: martlet serve [--config FILE] [--dev]
               martlet token [--config FILE | --dev] [--key NAME] --identity NAME [--room ROOM] [--name TEXT]
                             [--metadata TEXT] [--valid-for SECONDS] [--no-publish] [--no-subscribe] [--admin] [--hidden]
               martlet check-config FILE
               martlet version
               martlet help settings
        """

    /// Every setting with its standard, for `martlet help settings`.
    static var settings: String {
        let lines = Setting.rows.map { row in
            let standard = row.standard.isEmpty ? "" : "  [\(row.standard)]"
            return "  \(row.path)\(standard)\n      \(row.summary)"
        }
        return "Settings of the file, with their standards; http.port is MARTLET_HTTP_PORT in the environment.\n"
            + lines.joined(separator: "\n")
    }

    init(arguments: [String]) throws(CommandError) {
        var rest = Arguments(Array(arguments.dropFirst()))
        switch arguments.first {
        case "serve":
            self = .serve(file: try rest.value("--config"), isDevelopment: rest.flag("--dev"))
        case "token": self = .token(try TokenCommand(&rest))
        case "check-config":
            guard let file = rest.next() else { throw Self.wrong("check-config wants a file") }
            self = .checkConfig(file)
        case "version", "--version": self = .version
        case "help", "--help", "-h": self = rest.take("settings") ? .helpSettings : .help
        case let word: throw Self.wrong(word.map { "there is no command '\($0)'" } ?? "a command is missing")
        }
        if let extra = rest.next() { throw Self.wrong("'\(extra)' is not expected here") }
    }

    static func wrong(_ problem: String) -> CommandError {
        CommandError(message: "martlet: \(problem)\n\(usage)", exitCode: 2)
    }
}

/// The words behind a command, taken one by one.
struct Arguments {
    private var words: [String]

    init(_ words: [String]) { self.words = words }

    /// Whether `word` comes next.
    mutating func take(_ word: String) -> Bool {
        guard words.first == word else { return false }
        words.removeFirst()
        return true
    }

    /// Whether `name` is there.
    mutating func flag(_ name: String) -> Bool {
        guard let index = words.firstIndex(of: name) else { return false }
        words.remove(at: index)
        return true
    }

    /// The word behind `name`; nil when `name` is not there.
    mutating func value(_ name: String) throws(CommandError) -> String? {
        guard let index = words.firstIndex(of: name) else { return nil }
        guard index + 1 < words.count else { throw Command.wrong("\(name) wants a value") }
        defer { words.removeSubrange(index...(index + 1)) }
        return words[index + 1]
    }

    /// The first word that nobody has taken.
    mutating func next() -> String? { words.isEmpty ? nil : words.removeFirst() }
}
