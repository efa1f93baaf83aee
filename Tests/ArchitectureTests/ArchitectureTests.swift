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

    @Test("The core knows no Foundation, thread, lock, clock or task")
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

    @Test("Nobody reads a wall clock, rolls unseeded dice, prints, or gives up on input")
    func bannedWords() throws {
        let banned = ["try!", "Date(", "random(in:", "fatalError"]
        for file in try SourceTree.files(in: "Sources") {
            let allowsOutput = file.group == "martlet"
            for (number, line) in Self.code(file) {
                for word in banned where line.contains(word) && !line.contains("using:") {
                    Issue.record("\(file.path):\(number) has '\(word)'")
                }
                if !allowsOutput, line.contains(" print(") || line.hasPrefix("print(") {
                    Issue.record("\(file.path):\(number) prints")
                }
            }
        }
    }

    @Test("No file grows past 400 lines")
    func fileSizes() throws {
        for folder in ["Sources", "Tests", "LoadTests"] {
            for file in try SourceTree.files(in: folder) {
                #expect(file.lines.count <= 401, "\(file.path) has \(file.lines.count) lines; split it")
            }
        }
    }

    @Test("Every module says what it is for on a page of its own")
    func modulesAreDocumented() throws {
        let files = try SourceTree.files(in: "Sources").filter { $0.group != "System" && Self.order.contains($0.group) }
        for (group, module) in Set(files.map { [$0.group, $0.module] }).map({ ($0[0], $0[1]) }) {
            let page = "Sources/\(group)/\(module)/\(module).docc/\(module).md"
            #expect(
                FileManager.default.fileExists(atPath: SourceTree.root.appendingPathComponent(page).path), "no \(page)")
        }
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
