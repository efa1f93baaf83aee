import Console
import EdgeTestSupport
import HTTPServing
import Testing

@Suite("Console page")
struct ConsolePageTests {
    let router: Router

    init() {
        var router = Router()
        ConsolePage.register(on: &router)
        self.router = router
    }

    /// The files that a file of the page asks for: scripts, styles, pictures, imported modules.
    static func references(in text: String) -> [String] {
        let absolute = text.matches(of: /"(\/console\/[a-z]+\.[a-z]+)"/).map { String($0.output.1) }
        let imported = text.matches(of: /from "\.\/([a-z]+\.js)"/).map { "/console/\($0.output.1)" }
        return absolute + imported
    }

    static let pages = ["/", "/check", "/reference"]

    /// Every file that is reached from a page, or from all, with its answer.
    func files(of page: String? = nil) async throws -> [(path: String, response: HTTPResponse)] {
        var found: [(path: String, response: HTTPResponse)] = []
        var waiting = page.map { [$0] } ?? Self.pages
        while let path = waiting.popLast() {
            guard !found.contains(where: { $0.path == path }) else { continue }
            let response = await router.handle(try request(.get, path))
            found.append((path, response))
            waiting += Self.references(in: response.text)
        }
        return found
    }

    @Test("Every file that the pages load exists, with the type that its name says")
    func complete() async throws {
        let files = try await files()
        #expect(files.count > 15)
        for (path, response) in files {
            #expect(response.status == 200, "\(path)")
            let type =
                switch path.split(separator: ".").last {
                case "css": "text/css; charset=utf-8"
                case "js": "text/javascript; charset=utf-8"
                case "svg": "image/svg+xml"
                default: "text/html; charset=utf-8"
                }
            #expect(response.headers["Content-Type"] == type, "\(path)")
        }
    }

    @Test("Nothing is loaded from another host, and the content security policy forbids it")
    func offline() async throws {
        for (path, response) in try await files() {
            let addresses = response.text.matches(of: /https?:\/\/[a-z0-9.]+/).map { String($0.output) }
            #expect(addresses.allSatisfy { $0 == "http://www.w3.org" }, "\(path): \(addresses)")
            let policy = try #require(response.headers["Content-Security-Policy"])
            #expect(policy.hasPrefix("default-src 'self';") && !policy.contains("unsafe"))
            #expect(response.headers["X-Content-Type-Options"] == "nosniff")
        }
    }

    @Test("A page contains every element that its scripts look up by id", arguments: pages)
    func elements(path: String) async throws {
        let page = await router.handle(try request(.get, path)).text
        for (path, response) in try await files(of: path) where path.hasSuffix(".js") {
            for match in response.text.matches(of: /(?:element|getElementById)\("([a-z-]+)"\)/) {
                #expect(page.contains("id=\"\(match.output.1)\""), "\(path): \(match.output.1)")
            }
        }
    }
}
