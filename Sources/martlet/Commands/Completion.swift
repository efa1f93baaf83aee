/// Scripts that complete Martlet's commands in shells, generated from the commands' own syntax.
enum Completion {
    static let shells = ["bash", "zsh", "fish"]

    static func script(for shell: String) throws(CommandError) -> String {
        switch shell {
        case "bash": bash
        case "zsh": "#compdef martlet\nautoload -U +X bashcompinit && bashcompinit\n\(bash)"
        case "fish": fish
        default:
            throw CommandSyntax.completion.wrong(
                "there is no completion for '\(shell)'\(Spelling.hint(for: shell, among: shells))")
        }
    }

    private static func options(of syntax: CommandSyntax) -> [CommandSyntax.Option] {
        syntax.options + [CommandSyntax.Option(name: "--help", value: nil, help: "print this help")]
    }

    private static var bash: String {
        let cases = CommandSyntax.all.map { syntax in
            "        \(syntax.name)) words=\"\(options(of: syntax).map(\.name).joined(separator: " "))\" ;;"
        }
        return """
            _martlet() {
                local words current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
                if [ "$COMP_CWORD" -eq 1 ]; then
                    COMPREPLY=($(compgen -W "\(CommandSyntax.all.map(\.name).joined(separator: " "))" -- "$current"))
                    return
                fi
                case "$previous" in
                    \(fileOptions.joined(separator: "|"))) COMPREPLY=($(compgen -f -- "$current")); return ;;
                esac
                case "${COMP_WORDS[1]}" in
            \(cases.joined(separator: "\n"))
                esac
                COMPREPLY=($(compgen -W "$words" -- "$current"))
            }
            complete -o default -F _martlet martlet
            """
    }

    /// Options whose value is a file.
    private static var fileOptions: [String] {
        Set(CommandSyntax.all.flatMap(\.options).filter { $0.value == "FILE" }.map(\.name)).sorted()
    }

    private static var fish: String {
        CommandSyntax.all.flatMap { syntax in
            ["complete -c martlet -n __fish_use_subcommand -f -a \(syntax.name) -d \(quoted(syntax.summary))"]
                + options(of: syntax).map { option in
                    "complete -c martlet -n '__fish_seen_subcommand_from \(syntax.name)' -l \(option.name.dropFirst(2))"
                        + (option.value == nil ? "" : option.value == "FILE" ? " -rF" : " -x")
                        + " -d \(quoted(option.help))"
                }
        }.joined(separator: "\n")
    }

    private static func quoted(_ text: String) -> String {
        "'" + text.map { $0 == "'" || $0 == "\\" ? "\\\($0)" : "\($0)" }.joined() + "'"
    }
}
