import Foundation
import Testing

/// Tests/Requirements.md against the tests: what is claimed exists, and what tests claim is listed.
@Suite("Requirements")
struct RequirementsTests {
    /// A row of the page's tables.
    struct Row {
        let id: String
        let proofs: [String]
        let state: String
    }

    static let states = ["met", "partly", "not met", "open"]

    static func rows() throws -> [Row] {
        try SourceTree.text("Tests/Requirements.md").split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|", omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count > 1, cells[1].wholeMatch(of: /[A-L][0-9]{1,2}/) != nil else { return nil }
            try #require(cells.count == 6, "\(cells[1]): a row has four columns, this one has \(cells.count - 2)")
            return Row(id: cells[1], proofs: cells[3].matches(of: /`([^`]+)`/).map { String($0.1) }, state: cells[4])
        }
    }

    @Test("Each requirement has one row, a state, and a proof unless it is open")
    func rowsAreWhole() throws {
        let rows = try Self.rows()
        #expect(rows.count > 100, "the tables were found")
        #expect(Set(rows.map(\.id)).count == rows.count, "a number stands in two rows")
        for row in rows {
            #expect(
                Self.states.contains { row.state == $0 || row.state.hasPrefix("\($0):") }, "\(row.id): \(row.state)")
            #expect(
                row.state.hasPrefix("open") == row.proofs.isEmpty, "\(row.id): open rows, and no others, have no proof")
            #expect(
                row.state != "partly" && row.state != "not met", "\(row.id): what is missing stands behind the state")
        }
    }

    @Test("Each proof exists: a Swift test, an interop test, or a target of the Makefile")
    func proofsExist() throws {
        let swift = Set(try SwiftTest.all().map(\.name)), python = Set(try PythonTest.all().map(\.name))
        let makefile = try SourceTree.text("Makefile")
        for row in try Self.rows() {
            for proof in row.proofs {
                let exists =
                    if proof.hasPrefix("make ") {
                        makefile.contains("\n\(proof.dropFirst(5)):")
                    } else {
                        swift.contains(proof) || python.contains(proof)
                    }
                #expect(exists, "\(row.id): there is no \(proof)")
            }
        }
    }

    @Test("Every other test that the page names exists")
    func otherNamesExist() throws {
        let swift = Set(try SwiftTest.all().map(\.name)), python = Set(try PythonTest.all().map(\.name))
        let names = try SourceTree.text("Tests/Requirements.md").matches(of: /`([^`]+)`/).map { String($0.1) }
            .filter { $0.contains("::") || $0.wholeMatch(of: /\w+Tests\.\w+\/\w+/) != nil }
        #expect(names.count > 200, "the names were found")
        for name in names where name != "file::function" {
            #expect(swift.contains(name) || python.contains(name), "there is no \(name)")
        }
    }

    @Test("Each field of a room's policy has a row with a proof that it acts, and no other has one")
    func policyFields() throws {
        let document = try JSONSerialization.jsonObject(
            with: Data(SourceTree.text("Sources/Edges/ControlAPI/openapi.json").utf8))
        let components = (document as? [String: Any])?["components"] as? [String: [String: [String: Any]]]
        let fields = try #require(components?["schemas"]?["Policy"]?["properties"] as? [String: Any])
        let page = try SourceTree.text("Tests/Requirements.md")
        let section = try #require(page.split(separator: "\n## ").first { $0.hasPrefix("Fields of a policy") })
        var proofs: [String: Int] = [:]
        for line in section.split(separator: "\n") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 2, let field = cells[0].wholeMatch(of: /`(\w+)`/) else { continue }
            proofs[String(field.1)] = cells[1].matches(of: /`\w+\.\w+\/\w+`/).count
        }
        #expect(Set(proofs.keys) == Set(fields.keys))
        #expect(proofs.filter { $0.value == 0 }.isEmpty)
    }

    @Test("Each number in a test's title is that of a requirement")
    func titlesAreListed() throws {
        let known = Set(try Self.rows().map(\.id))
        let tests = try SwiftTest.all().map { ($0.name, $0.title) } + PythonTest.all().map { ($0.name, $0.title) }
        #expect(tests.count > 900, "the walk found the tests")
        for (name, title) in tests {
            for number in RequirementNumber.all(in: title) {
                #expect(known.contains(number), "\(name) names \(number), which is no requirement")
            }
        }
    }

    /// What users read: pages, the changelog, the API's description, what programs print.
    @Test("No text for users contains the number of a requirement")
    func textsHaveNoNumbers() throws {
        let known = Set(try Self.rows().map(\.id))
        for path in try Self.userFacing() {
            for (index, line) in try SourceTree.text(path).split(separator: "\n", omittingEmptySubsequences: false)
                .enumerated()
            {
                for number in RequirementNumber.all(in: String(line)) where known.contains(number) {
                    Issue.record(
                        "\(path):\(index + 1) has \(number), which means nothing to its readers: say what is meant")
                }
            }
        }
    }

    /// Sources and what measures them, comments too, and all pages but Requirements.md.
    private static func userFacing() throws -> [String] {
        let kinds = ["swift", "md", "json", "py", "js", "html", "yaml"]
        let pages = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
        let matrix = try SourceTree.paths(in: "Tests/InteropTests/matrix", kinds: kinds)
        return try pages + matrix + ["Sources", "LoadTests"].flatMap { try SourceTree.paths(in: $0, kinds: kinds) }
    }
}

/// Numbers of requirements in a text.
enum RequirementNumber {
    /// A letter and one or two digits that stand alone: no codec's mode (L1T3), no part of a name, a number or a template. By hand, because
    /// a regular expression takes seconds over all sources.
    static func all(in text: String) -> [String] {
        let bytes = Array(text.utf8)
        func isWord(_ place: Int) -> Bool {
            guard bytes.indices.contains(place) else { return false }
            return UInt8(ascii: "0")...UInt8(ascii: "9") ~= bytes[place]
                || UInt8(ascii: "a")...UInt8(ascii: "z") ~= bytes[place] | 0x20
        }
        func isDigit(_ place: Int) -> Bool {
            bytes.indices.contains(place) && UInt8(ascii: "0")...UInt8(ascii: "9") ~= bytes[place]
        }
        let joining = Set("`.$_".utf8)
        return bytes.indices.compactMap { place in
            guard UInt8(ascii: "A")...UInt8(ascii: "L") ~= bytes[place], isDigit(place + 1) else { return nil }
            let end = place + (isDigit(place + 2) ? 3 : 2)
            let before = place > 0 ? bytes[place - 1] : 0, after = end < bytes.count ? bytes[end] : 0
            guard !isWord(place - 1), !joining.contains(before), !isWord(end) else { return nil }
            // A full stop behind it ends a sentence, unless a word goes on.
            guard !joining.contains(after) || (after == UInt8(ascii: ".") && !isWord(end + 1)) else { return nil }
            return String(decoding: bytes[place..<end], as: UTF8.self)
        }
    }
}

/// A test of swift-testing as it stands in the sources.
struct SwiftTest {
    /// As `swift test --filter` takes it: Module.Type/function.
    let name: String
    let title: String

    /// Read once: three tests ask for them.
    private static let found = Result { try SourceTree.files(in: "Tests").flatMap(tests) }

    static func all() throws -> [SwiftTest] { try found.get() }

    private static func tests(in file: SourceTree.File) -> [SwiftTest] {
        let folder = String(file.path.split(separator: "/")[1])
        let module = folder == "Fuzz" ? "FuzzTests" : folder
        var found: [SwiftTest] = [], type = "", attribute: String?
        for line in file.lines {
            if !line.hasPrefix(" "),
                let match = line.prefixMatch(of: /(?:final )?(?:struct|class|enum|extension|actor) (\w+)/)
            {
                type = String(match.1)
                // The title of a suite is checked as one of a test; no proof names it.
                if let suite = attribute { found.append(SwiftTest(name: "\(module).\(type)", title: title(of: suite))) }
                attribute = nil
            }
            let words = line.drop { $0 == " " }
            if words.hasPrefix("@Test") || words.hasPrefix("@Suite") {
                attribute = String(words)
            } else if attribute != nil, let match = words.firstMatch(of: /\bfunc (\w+)\(/),
                attribute?.hasPrefix("@Test") == true
            {
                found.append(SwiftTest(name: "\(module).\(type)/\(match.1)", title: title(of: attribute ?? "")))
                attribute = nil
            } else if let begun = attribute {
                attribute = begun + String(words)
            }
        }
        return found
    }

    private static func title(of attribute: String) -> String {
        attribute.firstMatch(of: /"((?:[^"\\]|\\.)*)"/).map { String($0.1) } ?? ""
    }
}

/// A function that pytest collects, with its docstring as its title.
struct PythonTest {
    /// As pytest takes it: file::function.
    let name: String
    let title: String

    static func all() throws -> [PythonTest] {
        try SourceTree.paths(in: "Tests/InteropTests", kinds: ["py"]).flatMap { path in
            let file = String(path.split(separator: "/").last ?? "")
            guard file.hasPrefix("test_") || file.hasPrefix("nightly_") else { return [PythonTest]() }
            let text = try SourceTree.text(path)
            // Behind the colon a comment may stand: a word to a linter.
            let function = /(?m)^(?:async )?def (test_\w+)\([^)]*\):(?: +#.*)?\n(?: +"""((?:[^"]|"[^"])*)""")?/
            return text.matches(of: function).map { match in
                let words = match.1.split(separator: "_").joined(separator: " ")
                return PythonTest(name: "\(file)::\(match.1)", title: words + " " + (match.2.map(String.init) ?? ""))
            }
        }
    }
}
