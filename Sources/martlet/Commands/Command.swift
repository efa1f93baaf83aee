/// A parsed command line.
enum Command {
    case serve(file: String?, isDevelopment: Bool)
    case token(TokenCommand)
    case checkConfig(String)
    case showConfig(file: String?, isDevelopment: Bool)
    case ask(OperatorCommand)
    case completion(String)
    case version
    case help(String)

    init(arguments: [String]) throws(CommandError) {
        let rest = Array(arguments.dropFirst())
        switch arguments.first {
        case "serve":
            guard let given = try CommandSyntax.serve.parse(rest) else {
                self = .help(CommandSyntax.serve.help); return
            }
            self = .serve(file: given["--config"], isDevelopment: given.has("--dev"))
        case "token":
            guard let given = try CommandSyntax.token.parse(rest) else {
                self = .help(CommandSyntax.token.help); return
            }
            self = .token(try TokenCommand(given))
        case "check-config":
            let syntax = CommandSyntax.checkConfig
            guard let given = try syntax.parse(rest) else { self = .help(syntax.help); return }
            guard let file = given.operands.first else { throw syntax.wrong("missing FILE") }
            self = .checkConfig(file)
        case "config":
            let syntax = CommandSyntax.config
            guard let given = try syntax.parse(rest) else { self = .help(syntax.help); return }
            guard let word = given.operands.first else { throw syntax.wrong("missing 'show'") }
            guard word == "show" else {
                throw syntax.wrong("there is no 'config \(word)'\(Spelling.hint(for: word, among: ["show"]))")
            }
            self = .showConfig(file: given["--config"], isDevelopment: given.has("--dev"))
        case "version", "--version":
            guard try CommandSyntax.version.parse(rest) != nil else { self = .help(CommandSyntax.version.help); return }
            self = .version
        case "help", "--help", "-h": self = .help(try Self.help(on: rest))
        case "completion":
            let syntax = CommandSyntax.completion
            guard let given = try syntax.parse(rest) else { self = .help(syntax.help); return }
            guard let shell = given.operands.first else { throw syntax.wrong("missing bash, zsh or fish") }
            self = .completion(try Completion.script(for: shell))
        case let word:
            if let syntax = CommandSyntax.operators.first(where: { $0.name == word }) {
                guard let given = try syntax.parse(rest) else { self = .help(syntax.help); return }
                self = .ask(try OperatorCommand(syntax, given))
                return
            }
            let names = CommandSyntax.all.map(\.name)
            let problem = word.map { "there is no command '\($0)'\(Spelling.hint(for: $0, among: names))" }
            throw CommandError(message: "martlet: \(problem ?? "missing command")\n\n\(Self.overview)", exitCode: 2)
        }
    }

    private static func help(on words: [String]) throws(CommandError) -> String {
        guard let topic = words.first, topic != "--help", topic != "-h" else { return overview }
        if let extra = words.dropFirst().first { throw CommandSyntax.helpOn.wrong("'\(extra)' is not expected here") }
        if topic == "settings" { return settings }
        if let syntax = CommandSyntax.all.first(where: { $0.name == topic }) { return syntax.help }
        let hint = Spelling.hint(for: topic, among: CommandSyntax.all.map(\.name) + ["settings"])
        throw CommandSyntax.helpOn.wrong("there is no help on '\(topic)'\(hint)")
    }

    /// All commands, for `martlet help`.
    static var overview: String {
        let width = CommandSyntax.all.map(\.usage.count).max() ?? 0
        let lines = CommandSyntax.all.map { syntax in
            "  martlet \(syntax.usage)\(String(repeating: " ", count: width - syntax.usage.count))  \(syntax.summary)"
        }
        return "usage: martlet COMMAND\n\n\(lines.joined(separator: "\n"))\n\n"
            + "'martlet help COMMAND' describes a command, 'martlet help settings' lists all settings."
    }

    /// Every setting with its default, for `martlet help settings`.
    static var settings: String {
        let lines = Setting.rows.map { row in
            "  \(row.path)\(row.initial.isEmpty ? "" : "  [\(row.initial)]")\n      \(row.summary)"
        }
        return """
            All settings, with their defaults. The environment variable of a setting is MARTLET_ and its path in upper case, with '_'
            for each dot: http.port is MARTLET_HTTP_PORT, keys.app is MARTLET_KEYS_APP. Separate the elements of a list by commas.

            """ + lines.joined(separator: "\n")
    }
}
