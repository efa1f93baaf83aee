/// One command of the program as its users see it: its help and the parsing of its arguments follow from this.
struct CommandSyntax {
    struct Option {
        /// "--config"
        var name: String
        /// The name of its value, "FILE"; nil for a switch.
        var value: String?
        var help: String
    }

    var name: String
    /// What follows the name in the overview.
    var operands = ""
    /// One line.
    var summary: String
    var options: [Option] = []
    /// How many arguments that are no options are accepted.
    var maxOperands = 0
    /// What the options do not say: paragraphs, examples.
    var details = ""

    var usage: String { operands.isEmpty ? name : "\(name) \(operands)" }

    /// What `martlet help NAME` prints.
    var help: String {
        let known = options + [Option(name: "--help", value: nil, help: "print this help")]
        let heads = known.map { option in option.value.map { "\(option.name) \($0)" } ?? option.name }
        let width = heads.map(\.count).max() ?? 0
        let lines = zip(heads, known).map { head, option in
            "  \(head)\(String(repeating: " ", count: width - head.count))  \(option.help)"
        }
        return "usage: martlet \(usage)\n\n\(summary)\n\n\(lines.joined(separator: "\n"))"
            + (details.isEmpty ? "" : "\n\n\(details)")
    }

    /// Parses the words after the command's name; nil if they request help.
    func parse(_ words: [String]) throws(CommandError) -> CommandArguments? {
        if words.contains("--help") || words.contains("-h") { return nil }
        var given = CommandArguments()
        var rest = words[...]
        while let word = rest.popFirst() {
            guard word.hasPrefix("-"), word.count > 1 else {
                guard given.operands.count < maxOperands else { throw unexpected(word) }
                given.operands.append(word)
                continue
            }
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard let option = options.first(where: { $0.name == parts[0] }) else {
                throw wrong("unknown option '\(parts[0])'\(Spelling.hint(for: parts[0], among: options.map(\.name)))")
            }
            var value = parts.count == 2 ? parts[1] : nil
            if let name = option.value, value == nil {
                guard let next = rest.first, !next.hasPrefix("--") else {
                    throw wrong("missing \(name) for \(option.name)")
                }
                value = rest.removeFirst()
            }
            guard option.value != nil || value == nil else { throw wrong("\(option.name) takes no value") }
            guard given.values.updateValue(value ?? "", forKey: option.name) == nil else {
                throw wrong("\(option.name) is given twice")
            }
        }
        return given
    }

    private func unexpected(_ word: String) -> CommandError {
        let takesFile = maxOperands == 0 && options.contains { $0.value == "FILE" } && word.contains(".")
        return wrong("'\(word)' is not expected here" + (takesFile ? "; did you mean '--config \(word)'?" : ""))
    }

    func wrong(_ problem: String) -> CommandError {
        CommandError(
            message: "martlet \(name): \(problem)\nusage: martlet \(usage)\n'martlet help \(name)' describes it.",
            exitCode: 2)
    }
}

/// The arguments of a command.
struct CommandArguments {
    /// Values by option; switches have an empty one.
    fileprivate(set) var values: [String: String] = [:]
    /// Words that are no options, in their order.
    fileprivate(set) var operands: [String] = []

    subscript(option: String) -> String? { values[option] }
    func has(_ option: String) -> Bool { values[option] != nil }
}
