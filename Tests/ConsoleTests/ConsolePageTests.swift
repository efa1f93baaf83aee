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

    /// The files that a file at `path` asks for: scripts, styles, pictures, imported modules.
    static func references(in text: String, at path: String) -> [String] {
        let folder = path.prefix(through: path.lastIndex(of: "/") ?? path.startIndex)
        let absolute = text.matches(of: /"(\/console\/[a-z]+\.[a-z]+|\/martlet\.js)"/).map { String($0.output.1) }
        let imported = text.matches(of: /from "\.\/([a-z\/]+\.js)"/).map { "\(folder)\($0.output.1)" }
        return absolute + imported
    }

    static let pages = ["/", "/check", "/reference", "/examples"]

    /// Every file that is reached from a page, or from all, with its answer.
    func files(of page: String? = nil) async throws -> [(path: String, response: HTTPResponse)] {
        var found: [(path: String, response: HTTPResponse)] = []
        var waiting = page.map { [$0] } ?? Self.pages
        while let path = waiting.popLast() {
            guard !found.contains(where: { $0.path == path }) else { continue }
            let response = await router.handle(try request(.get, path))
            found.append((path, response))
            waiting += Self.references(in: response.text, at: path)
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
            // Names below "example" belong to nobody (RFC 2606).
            #expect(
                addresses.allSatisfy { $0 == "http://www.w3.org" || $0.hasSuffix(".example") },
                "\(path): \(addresses)")
            let policy = try #require(response.headers["Content-Security-Policy"])
            #expect(policy.hasPrefix("default-src 'self';") && !policy.contains("unsafe"))
            #expect(response.headers["X-Content-Type-Options"] == "nosniff")
        }
    }

    @Test(
        "Every file has a strong tag of its own content; whoever has it is answered 304, with a tag and without a body")
    func tags() async throws {
        var tags: [String: [UInt8]] = [:]
        for (path, response) in try await files() {
            let tag = try #require(response.headers["ETag"], "\(path)")
            #expect(tag.wholeMatch(of: /"[0-9a-f]{32}"/) != nil, "\(path)")
            #expect(tags.updateValue(response.body, forKey: tag) == nil, "\(path) has the tag of another file")
            for (field, status) in [
                (tag, 304), ("W/\(tag)", 304), ("\"other\", \(tag)", 304), ("*", 304), ("\"other\"", 200),
            ] {
                var again = try request(.get, path)
                again.headers["If-None-Match"] = field
                let answer = await router.handle(again)
                #expect(answer.status == status && answer.headers["ETag"] == tag, "\(path) \(field)")
                #expect(answer.body == (status == 304 ? [] : response.body), "\(path) \(field)")
            }
        }
    }

    @Test("The module is whole without the console's files, and speaks of every code that it makes itself")
    func module() async throws {
        var files: [(path: String, text: String)] = []
        var waiting = ["/martlet.js"]
        while let path = waiting.popLast() {
            guard !files.contains(where: { $0.path == path }) else { continue }
            let response = await router.handle(try request(.get, path))
            #expect(response.status == 200 && response.headers["Cache-Control"] == "no-cache", "\(path)")
            files.append((path, response.text))
            waiting += Self.references(in: response.text, at: path)
        }
        #expect(files.count > 8 && files.allSatisfy { $0.path.hasPrefix("/martlet") })
        let errors = try #require(files.first { $0.path == "/martlet/errors.js" }).text
        let made = Set(files.flatMap { $0.text.matches(of: /MartletError\("([a-z_]+)"/).map { String($0.output.1) } })
        // The server refuses the same with these (Protocol.md, section 9).
        let own = made.subtracting(["not_joined", "participant_not_found", "permission_denied", "too_large"])
        #expect(own.isSuperset(of: ["lost", "left", "unreachable", "no_websocket", "no_devices", "file_incomplete"]))
        for code in own { #expect(errors.contains("`\(code)`"), "\(code)") }
        // What a close code becomes is said by no MartletError("…"): a reason of `ended`, or a code of the module's own.
        let signal = try #require(files.first { $0.path == "/martlet/signal.js" }).text
        let ends = signal.matches(of: /\b4[0-9]{3}: "([a-z_]+)"/).map { String($0.output.1) } + ["closed"]
        #expect(ends.contains("resumed_elsewhere"))
        for code in ends {
            #expect(errors.contains("`\(code)`") || errors.contains("\n    \(code): \""), "\(code)")
        }
    }

    @Test("The example has 40 lines at most")
    func example() async throws {
        let response = await router.handle(try request(.get, "/console/example.js"))
        #expect(
            response.status == 200 && response.text.split(separator: "\n", omittingEmptySubsequences: false).count <= 41
        )
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
