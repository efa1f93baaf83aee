import AccessTokens
import Testing

@testable import martlet

@Suite("Command line")
struct CommandTests {
    @Test(
        "Invalid arguments are refused with the usage of their command",
        arguments: [
            ([], "martlet: missing command"),
            (["sreve"], "martlet: there is no command 'sreve'; did you mean 'serve'?"),
            (["dance"], "martlet: there is no command 'dance'"),
            (["serve", "--config"], "martlet serve: missing FILE for --config"),
            (["serve", "--config", "--dev"], "martlet serve: missing FILE for --config"),
            (["serve", "--confg", "a"], "martlet serve: unknown option '--confg'; did you mean '--config'?"),
            (["serve", "-x"], "martlet serve: unknown option '-x'"),
            (["serve", "--config", "a", "--config=b"], "martlet serve: --config is given twice"),
            (["serve", "--dev=yes"], "martlet serve: --dev takes no value"),
            (["serve", "extra"], "martlet serve: 'extra' is not expected here"),
            (["serve", "m.yaml"], "martlet serve: 'm.yaml' is not expected here; did you mean '--config m.yaml'?"),
            (["token", "--dev"], "martlet token: missing --identity NAME (or --admin)"),
            (
                ["token", "--identity", "a", "--valid-for", "soon"],
                "martlet token: 'soon' is not valid for --valid-for; expected seconds, 1 to 315360000"
            ),
            (
                ["token", "--identity", "a", "--valid-for", "0"],
                "martlet token: '0' is not valid for --valid-for; expected seconds, 1 to 315360000"
            ),
            (
                ["token", "--identity", "a", "--valid-for", "315360001"],
                "martlet token: '315360001' is not valid for --valid-for; expected seconds, 1 to 315360000"
            ),
            (["check-config"], "martlet check-config: missing FILE"),
            (["check-config", "a", "b"], "martlet check-config: 'b' is not expected here"),
            (["help", "sevre"], "martlet help: there is no help on 'sevre'; did you mean 'serve'?"),
        ])
    func refusals(arguments: [String], problem: String) {
        let error = #expect(throws: CommandError.self) { _ = try Command(arguments: arguments) }
        #expect(error?.exitCode == 2 && error?.message.contains("usage: martlet") == true)
        #expect(error?.message.split(separator: "\n").first.map(String.init) == problem)
    }

    @Test("Every command has help, by each of the ways to request it")
    func help() throws {
        func help(_ arguments: [String]) throws -> String? {
            if case .help(let text) = try Command(arguments: arguments) { text } else { nil }
        }
        for syntax in CommandSyntax.all {
            let text = try #require(try help(["help", syntax.name]))
            #expect(text.hasPrefix("usage: martlet \(syntax.name)") && text.contains(syntax.summary))
            for option in syntax.options { #expect(text.contains(option.name)) }
            guard syntax.name != "help" else { continue }
            #expect(try help([syntax.name, "--help"]) == text && help([syntax.name, "-h"]) == text)
            #expect(Command.overview.contains("martlet \(syntax.usage)"))
        }
        #expect(try help(["token", "--dev", "--identity", "ada", "--help"]) == CommandSyntax.token.help)
        for words in [["help"], ["--help"], ["-h"], ["help", "--help"]] { #expect(try help(words) == Command.overview) }
        #expect(try help(["help", "settings"])?.contains("  media.udp_port  [7900]\n") == true)
    }

    @Test("Help fits a terminal of 130 columns")
    func helpWidth() {
        for text in CommandSyntax.all.map(\.help) + [Command.overview] {
            for line in text.split(separator: "\n") { #expect(line.count <= 130, "\(line)") }
        }
    }

    @Test(
        "A validity that no clock can be added to is refused; the longest one is minted",
        arguments: ["9223372036854775807", "9223372036854775808", "-1"])
    func longValidity(text: String) throws {
        let words = ["token", "--dev", "--identity", "ada", "--valid-for"]
        let error = #expect(throws: CommandError.self) {
            guard case .token(let request) = try Command(arguments: words + [text]) else { return }
            _ = try request.mint()
        }
        #expect(error?.exitCode == 2 && error?.message.contains("expected seconds, 1 to 315360000") == true)
        guard case .token(let longest) = try Command(arguments: words + ["315360000"]) else {
            Issue.record("not a token command")
            return
        }
        let claims = try TokenVerifier(.development).verify(try longest.mint(), at: 0)
        #expect(claims.expiresAt - (claims.issuedAt ?? 0) == 315_360_000)
    }

    @Test("A minted token contains the requested claims")
    func tokens() throws {
        let command = try Command(arguments: [
            "token", "--dev", "--identity", "ada", "--room=lobby", "--no-subscribe", "--name", "Ada",
        ])
        guard case .token(let request) = command else {
            Issue.record("not a token command")
            return
        }
        let claims = try TokenVerifier(.development).verify(try request.mint(), at: 0)
        #expect(claims.identity == "ada" && claims.name == "Ada" && claims.video.room == "lobby")
        #expect(claims.video.roomJoin && claims.video.canSubscribe == false && !claims.video.roomAdmin)
    }
}
