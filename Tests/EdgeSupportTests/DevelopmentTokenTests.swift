import AccessTokens
import EdgeTestSupport
import HTTPServing
import Testing

@testable import EdgeSupport

@Suite("Tokens of a development server")
struct DevelopmentTokenTests {
    private func ask(
        authority: String = "localhost:7880", headers: HTTPHeaders = [:], isLoopback: Bool = true,
        host: String = "127.0.0.1"
    ) async throws -> HTTPResponse {
        var router = Router()
        DevelopmentTokens(
            verifier: TestTokens.verifier, key: TestTokens.key.name, host: host, clock: { TestTokens.now }
        )
        .register(on: &router)
        return await router.handle(
            try request(
                .post, "/dev/token", type: "application/json", headers: headers, body: "{\"identity\":\"ada\"}",
                isLoopback: isLoopback, authority: authority))
    }

    @Test(
        "1.7: the server's own page gets a token under any name of this machine, and so does a program",
        arguments: [
            ("localhost:7880", [:]), ("127.0.0.1", [:]), ("[::1]:7880", [:]), ("LOCALHOST:1", [:]),
            ("192.0.2.9:7880", [:]),
            ("localhost:7880", ["Origin": "http://localhost:7880", "Sec-Fetch-Site": "same-origin"]),
            ("[::1]", ["Origin": "http://[::1]"]), ("localhost:7880", ["Sec-Fetch-Site": "none"]),
        ] as [(String, HTTPHeaders)])
    func own(authority: String, headers: HTTPHeaders) async throws {
        let response = try await ask(authority: authority, headers: headers, host: "192.0.2.9")
        #expect(response.status == 200, "\(response.text)")
        let token = try #require(response.text.split(separator: "\"").first { $0.contains(".") })
        let claims = try TestTokens.verifier.verify(String(token), at: TestTokens.now)
        #expect(claims.identity == "ada" && claims.issuedAt == TestTokens.now)
    }

    @Test(
        "1.7: a page of another origin gets no token, wherever its name resolves to",
        arguments: [
            ("localhost:7880", ["Origin": "https://evil.example"]), ("localhost:7880", ["Origin": "null"]),
            ("localhost:7880", ["Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"]),
            ("localhost:7880", ["Origin": "https://localhost:7880"]),
            ("localhost:7880", ["Origin": "http://127.0.0.1:7880"]),
            ("localhost:7880", ["Sec-Fetch-Site": "cross-site"]), ("localhost:7880", ["Sec-Fetch-Site": "same-site"]),
            ("evil.example:7880", ["Origin": "http://evil.example:7880", "Sec-Fetch-Site": "same-origin"]),
            ("evil.example", [:]), ("localhost.evil.example:7880", [:]), ("127.0.0.1.evil.example", [:]), ("", [:]),
            ("localhost:7880", ["Origin": "http://localhost:7880", "origin": "https://evil.example"]),
        ] as [(String, HTTPHeaders)])
    func foreign(authority: String, headers: HTTPHeaders) async throws {
        let response = try await ask(authority: authority, headers: headers)
        #expect(response.status == 403 && response.text.contains("\"code\":\"cross_origin\""), "\(response.text)")
    }

    @Test("1.7: another machine gets no token")
    func elsewhere() async throws {
        #expect(try await ask(isLoopback: false).status == 403)
    }
}
