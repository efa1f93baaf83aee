import Foundation
import Testing

/// What people read has the field's words: pages, the texts in sources that become logs, errors, help and settings, and what tests are called.
@Suite("Wording")
struct WordingTests {
    /// Not these words, but those; and where a word is the field's after all.
    private static let words: [(word: String, instead: String, unlessIn: [String])] = [
        (
            "picture", "frame, video or layer",
            ["picture id", "idr picture", "vp9 picture", "picture parameter set", "picture in picture"]
        ),
        ("pictures", "frames or video", ["h.264 pictures"]),
        ("sound", "audio", []),
        ("sounds", "audio", []),
        ("told", "notified, announced, advertised or configured", []),
        ("tell", "notify, announce, report or ask", ["can tell", "tell apart"]),
        ("tells", "notifies, announces, reports or asks", []),
        ("stranger", "unknown source", []),
        ("strangers", "unknown sources", []),
        ("wish", "preference or demand", ["draft-ietf-wish-whep"]),
        ("wishes", "preferences or demands", []),
        ("knock", "ask to join", []),
        ("gone", "disconnected, closed, expired or removed", ["410: \"gone\""]),
        ("amid", "within, or during", []),
    ]

    @Test("Pages and the API's description use the field's words")
    func pages() throws {
        let roots = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "Tests/Requirements.md"]
        let folders = try ["Sources", "LoadTests", "Helm", "Packaging", "Tests/InteropTests/matrix"].flatMap {
            try SourceTree.paths(in: $0, kinds: ["md", "json"])
        }
        #expect(folders.count > 40, "the walk found the pages")
        for path in roots + folders {
            Self.look(in: try SourceTree.text(path), of: path) { _, _ in true }
        }
    }

    @Test("Texts in sources use the field's words")
    func literals() throws {
        for file in try SourceTree.files(in: "Sources") {
            Self.look(in: file.lines.joined(separator: "\n"), of: file.path) { line, column in
                Self.isInLiteral(line, column)
            }
        }
    }

    @Test("The console's pages, and the texts in its scripts and styles, use the field's words")
    func console() throws {
        let pages = try SourceTree.paths(in: "Sources/Edges/Console", kinds: ["html"])
        let scripts = try SourceTree.paths(in: "Sources/Edges/Console", kinds: ["js", "css"])
        #expect(pages.count > 3 && scripts.count > 40, "the walk found the console")
        for path in pages {
            Self.look(in: try SourceTree.text(path), of: path) { _, _ in true }
        }
        for path in scripts {
            Self.look(in: try SourceTree.text(path), of: path) { line, column in
                Self.isInLiteral(line, column, quotes: "\"`")
            }
        }
    }

    @Test("Titles, names and descriptions of tests use the field's words")
    func titles() throws {
        let files = try SourceTree.files(in: "Tests")
        let cases = try SourceTree.paths(in: "Tests/InteropTests", kinds: ["py"])
        #expect(files.count > 300 && cases.count > 50, "the walk found the tests")
        for file in files {
            Self.look(in: Self.titles(in: file.lines), of: file.path) { line, column in
                Self.isInLiteral(line, column)
            }
        }
        for path in cases {
            let lines = try SourceTree.text(path).split(separator: "\n", omittingEmptySubsequences: false)
            Self.look(in: Self.cases(in: lines), of: path) { _, _ in true }
        }
    }

    /// The lines of Swift with a test's or a suite's title, which stands behind the attribute or, if it is long, in the next line; the others are empty.
    private static func titles(in lines: [Substring]) -> String {
        var isBehind = false
        return lines.map { line -> String in
            let words = line.drop { $0 == " " }
            let isTitle = isBehind || words.hasPrefix("@Test(") || words.hasPrefix("@Suite(")
            isBehind = words == "@Test(" || words == "@Suite("
            return isTitle ? String(line) : ""
        }.joined(separator: "\n")
    }

    /// The lines of Python with a test's name, as words, or the beginning of its description behind that, or with a check's obligation; the others are empty.
    private static func cases(in lines: [Substring]) -> String {
        var isBehind = false
        return lines.map { line -> String in
            let isName = line.hasPrefix("def test_")
            let isDescription = isBehind && line.hasPrefix("    \"\"\"")
            isBehind = isName
            if isName { return line.replacingOccurrences(of: "_", with: " ") }
            return isDescription || line.hasPrefix("@SUITE.check(") ? String(line) : ""
        }.joined(separator: "\n")
    }

    /// Records each place of a word that `counts`, by its line and the bytes before it there. Bytes instead of a regular expression, which takes seconds.
    private static func look(in text: String, of path: String, where counts: (Substring.UTF8View, Int) -> Bool) {
        let bytes = Array(text.lowercased().utf8)
        for (place, index) in places(in: bytes) {
            let (word, instead, exceptions) = words[index]
            let start = bytes[..<place].lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
            let end = bytes[place...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
            let line = String(decoding: bytes[start..<end], as: UTF8.self)
            guard counts(line[...].utf8, place - start), !exceptions.contains(where: line.contains) else { continue }
            let number = bytes[..<start].count { $0 == UInt8(ascii: "\n") } + 1
            Issue.record("\(path):\(number) has '\(word)': say \(instead)")
        }
    }

    /// Where a word of `words` stands by itself, not in a name, and which one.
    private static func places(in bytes: [UInt8]) -> [(place: Int, word: Int)] {
        let candidates = words.map { Array($0.word.utf8) }
        let firsts = Set(candidates.compactMap(\.first))
        func isLetter(_ byte: UInt8) -> Bool {
            UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || byte == UInt8(ascii: "_")
        }
        var found: [(place: Int, word: Int)] = []
        bytes.withUnsafeBufferPointer { bytes in
            var isInside = false
            for place in bytes.indices {
                defer { isInside = isLetter(bytes[place]) }
                guard !isInside, firsts.contains(bytes[place]) else { continue }
                for (index, word) in candidates.enumerated() where bytes[place...].starts(with: word) {
                    let end = place + word.count
                    if end == bytes.count || !isLetter(bytes[end]) { found.append((place, index)) }
                }
            }
        }
        return found
    }

    /// Whether a place in a line is inside of a literal, which ends with the quote that began it, and not in a comment behind the code.
    private static func isInLiteral(
        _ line: Substring.UTF8View, _ column: Int, quotes: String = "\""
    ) -> Bool {
        var opened: UInt8?, previous: UInt8 = 0
        for byte in line.prefix(column) {
            if let quote = opened {
                if byte == quote, previous != UInt8(ascii: "\\") { opened = nil }
            } else if quotes.utf8.contains(byte) {
                opened = byte
            } else if byte == UInt8(ascii: "/"), previous == byte {
                return false
            }
            previous = byte
        }
        return opened != nil
    }
}
