import EdgeSupport
import EdgeTestSupport
import HTTPServing
import Testing

@Suite("The client's name")
struct ClientNameTests {
    @Test(
        "The user agent is a name: cut where it is long, none where it is empty or would not read as one line",
        arguments: [
            ("Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (X11; Linux x86_64)"), ("", nil),
            (String(repeating: "a", count: 300), String(repeating: "a", count: 256)), ("a\u{202e}b", nil),
            ("a\u{1}b", nil),
        ] as [(String, String?)])
    func userAgent(field: String, name: String?) throws {
        var request = try request(.get, "/")
        request.headers["User-Agent"] = field
        #expect(request.clientName == name)
    }

    @Test("A request without user agent names no client")
    func none() throws { #expect(try request(.get, "/").clientName == nil) }
}
