import Foundation
import Testing

/// The rules of the house that the compiler does not enforce.
@Suite("Architecture")
struct ArchitectureTests {
    /// Groups in the order in which code may depend on code: a module imports only from groups to its left (or its own).
    static let order = ["System", "Formats", "Protocols", "Media", "Control", "Runtime", "Edges"]
    /// Where no asynchronous code, lock or clock may appear.
    static let core: Set<String> = ["Formats", "Protocols", "Media", "Control"]

    @Test("A module imports only from its own group or one below")
    func importsFlowOneWay() throws {
        let files = try SourceTree.files(in: "Sources").filter { Self.order.contains($0.group) }
        #expect(files.count > 50, "the walk found the sources")
        var groupOf: [String: String] = [:]
        for file in files { groupOf[file.module] = file.group }
        for file in files {
            let own = try #require(Self.order.firstIndex(of: file.group))
            for imported in file.lines.compactMap(Self.importedModule) {
                guard let group = groupOf[imported], let other = Self.order.firstIndex(of: group) else { continue }
                #expect(other <= own, "\(file.path) imports \(imported) from \(group), which stands above it")
            }
        }
    }

    /// What each module may import beside Primitives and its system libraries: the table of the house. Package.swift says what it
    /// does import, and the build refuses the rest.
    static let table: [String: Set<String>] = [
        "Primitives": [], "RTP": [], "PayloadFormats": [], "SDP": [], "PacketCapture": [],
        "Movies": [], "MP4": ["Movies"], "WebM": ["PayloadFormats", "Movies"],
        "Cryptography": [], "ICE": [], "DTLS": ["Cryptography"], "SRTP": [], "CongestionControl": [],
        "DataChannels": [],
        "MediaControl": [],
        "PeerTransport": ["RTP", "MediaControl", "Cryptography", "ICE", "DTLS", "SRTP", "DataChannels"],
        "Forwarding": ["RTP", "PayloadFormats", "CongestionControl", "MediaControl"],
        "MediaEngine": ["RTP", "MediaControl", "PeerTransport", "Forwarding", "CongestionControl", "Cryptography"],
        "Recording": ["RTP", "PayloadFormats", "MediaControl", "Movies", "MP4"],
        "Playback": ["RTP", "PayloadFormats", "MediaControl", "Movies"],
        "AccessTokens": ["Cryptography"], "Rooms": ["SDP", "AccessTokens", "MediaControl"],
    ]

    @Test("Below Runtime a module imports exactly its row of the table")
    func importTable() throws {
        let own = Set(try SourceTree.files(in: "Sources").filter { Self.core.contains($0.group) }.map(\.module))
        #expect(own.isSubset(of: Self.table.keys), "a module without a row: \(own.subtracting(Self.table.keys))")
        for file in try SourceTree.files(in: "Sources") where Self.core.contains(file.group) {
            let row = Self.table[file.module, default: []].union(["Primitives"])
            for imported in file.lines.compactMap(Self.importedModule) where Self.table[imported] != nil {
                #expect(row.contains(imported), "\(file.path) imports \(imported), which is not in its row")
            }
        }
    }

    @Test("The core uses no Foundation, thread, lock, clock or task")
    func coreIsPure() throws {
        let banned = [
            "import Foundation", "import Synchronization", "import Dispatch", " async ", "await ", "Task {", " actor ",
            "Mutex<", "@unchecked Sendable", "ContinuousClock", "clock_gettime",
        ]
        for file in try SourceTree.files(in: "Sources") where Self.core.contains(file.group) {
            for (number, line) in Self.code(file) {
                for word in banned where " \(line)".contains(word) {
                    Issue.record("\(file.path):\(number) has '\(word)', which the core must not")
                }
            }
        }
    }

    @Test("No source reads a wall clock, uses unseeded randomness, prints, or traps on input")
    func bannedWords() throws {
        let banned = [
            "try!", "Date(", "Date.now", "ContinuousClock", "SuspendingClock", "gettimeofday", "random(in:",
            "randomElement()", "fatalError",
        ]
        for file in try SourceTree.files(in: "Sources") {
            let allowsOutput = file.group == "martlet"
            let isClock = ["MonotonicClock.swift", "LogOutput.swift"].contains { file.path.hasSuffix($0) }
            for (number, line) in Self.code(file) {
                for word in banned where line.contains(word) && !line.contains("using:") {
                    Issue.record("\(file.path):\(number) has '\(word)'")
                }
                if !isClock, line.contains("clock_gettime") {
                    Issue.record("\(file.path):\(number) reads a clock of its own")
                }
                if !allowsOutput, line.contains(" print(") || line.hasPrefix("print(") {
                    Issue.record("\(file.path):\(number) prints")
                }
            }
        }
    }

    /// Where a type hides its module, nothing else of the module can be named in full.
    @Test("No module has a type of its own name")
    func moduleNames() throws {
        let kinds: Set<Substring> = ["class", "struct", "actor", "enum", "protocol", "typealias"]
        for file in try SourceTree.files(in: "Sources") {
            let module = Self.order.contains(file.group) ? file.module : file.group
            for (number, line) in Self.code(file) {
                let words = line.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
                let declares = zip(words, words.dropFirst()).contains { kinds.contains($0) && $1 == module }
                #expect(!declares, "\(file.path):\(number) declares \(module) in the module \(module)")
            }
        }
    }

    /// A file may hold one type whole, with its private state and all that changes it; what outgrows this hides another type.
    @Test("No file is longer than 400 lines")
    func fileSizes() throws {
        for folder in ["Sources", "Tests", "LoadTests"] {
            for file in try SourceTree.files(in: folder) {
                #expect(file.lines.count <= 401, "\(file.path) has \(file.lines.count) lines; split it")
            }
        }
    }

    @Test("No function is longer than 60 lines")
    func functionSizes() throws {
        for folder in ["Sources", "LoadTests"] {
            for file in try SourceTree.files(in: folder) {
                for function in file.functions {
                    #expect(function.length <= 60, "\(file.path):\(function.line) has \(function.length) lines")
                }
            }
        }
    }

    /// Without its trait a suite plays one seed whatever MARTLET_SEED says, and `make scenarios` plays that one eight times.
    @Test("Each suite of scenarios is played with eight seeds")
    func scenarioSeeds() throws {
        var suites = 0
        for file in try SourceTree.files(in: "Tests/ScenarioTests") {
            let declared = file.lines.filter { $0.hasPrefix("@Suite") }
            suites += declared.count
            #expect(declared.allSatisfy { $0.contains(".eightSeeds") }, "\(file.path): a suite without .eightSeeds")
            let hasTests = file.lines.contains { $0.hasPrefix("    @Test") }
            #expect(!hasTests || !declared.isEmpty, "\(file.path): tests outside of a suite")
        }
        #expect(suites > 8, "the walk found the suites")
    }

    @Test("Every module has a page with its purpose and the required chapters")
    func modulesAreDocumented() throws {
        let files = try SourceTree.files(in: "Sources").filter { $0.group != "System" && Self.order.contains($0.group) }
        let modules = Set(files.map { "Sources/\($0.group)/\($0.module)" }).union(["Sources/Simulation"])
        for folder in modules {
            let name = folder.split(separator: "/").last ?? ""
            let page = SourceTree.root.appendingPathComponent("\(folder)/\(name).docc/\(name).md")
            guard let text = try? String(contentsOf: page, encoding: .utf8) else {
                Issue.record("\(folder) has no page \(name).docc/\(name).md")
                continue
            }
            #expect(text.hasPrefix("# ``\(name)``"), "\(folder): the page's title is the module")
            #expect(text.contains("## Purpose") || text.contains("## What it is for"), "\(folder): no purpose")
            for chapter in ["## What it is not", "```text", "## Invariants", "## Limits", "## References"] {
                #expect(text.contains(chapter), "\(folder): the page has no '\(chapter)'")
            }
        }
    }

    @Test("Below Runtime, every public type and function has a documentation comment")
    func publicDeclarationsAreDocumented() throws {
        for file in try SourceTree.files(in: "Sources") where Self.core.contains(file.group) {
            for (index, line) in file.lines.enumerated() where Self.needsComment(line) {
                let above = file.lines[..<index].last { !$0.trimmingCharacters(in: .whitespaces).hasPrefix("@") }
                let isDocumented = above?.trimmingCharacters(in: .whitespaces).hasPrefix("///") ?? false
                #expect(isDocumented, "\(file.path):\(index + 1) has no comment")
            }
        }
    }

    /// Whether a line declares a public type or function. Operators, initialisers and stored properties may speak for themselves.
    private static func needsComment(_ line: Substring) -> Bool {
        let words = line.split { $0 == " " || $0 == "(" }
        guard let access = words.firstIndex(of: "public"), !words.contains("import") else { return false }
        let kinds: Set<Substring> = ["func", "struct", "enum", "class", "protocol", "typealias"]
        guard words[..<access].allSatisfy({ $0.hasPrefix("@") || $0.hasPrefix("__always") }),
            let kind = words[access...].firstIndex(where: kinds.contains), kind + 1 < words.count
        else { return false }
        return words[kind + 1].first?.isLetter ?? false
    }

    /// The module that an import line names.
    private static func importedModule(_ line: Substring) -> String? {
        let words = line.split(separator: " ")
        guard let position = words.firstIndex(of: "import"), position < 2, position + 1 < words.count else {
            return nil
        }
        return String(words[position + 1])
    }

    /// The lines of a file that are not comments, with their numbers.
    private static func code(_ file: SourceTree.File) -> [(Int, Substring)] {
        file.lines.enumerated().compactMap { index, line in
            line.drop(while: { $0 == " " }).hasPrefix("//") ? nil : (index + 1, line)
        }
    }
}
