import AccessTokens
import Testing

@testable import martlet

@Suite("Command line")
struct CommandTests {
    @Test(
        "Words that make no sense are refused with the usage",
        arguments: [
            [], ["dance"], ["serve", "--config"], ["serve", "extra"], ["token", "--dev"], ["check-config"],
            ["token", "--identity", "a", "--valid-for", "soon"],
        ])
    func refusals(arguments: [String]) {
        let error = #expect(throws: CommandError.self) { _ = try Command(arguments: arguments) }
        #expect(error?.exitCode == 2 && error?.message.contains("usage:") == true)
    }

    @Test("A minted token says what was asked for")
    func tokens() throws {
        let command = try Command(arguments: [
            "token", "--dev", "--identity", "ada", "--room", "lobby", "--no-subscribe", "--name", "Ada",
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
