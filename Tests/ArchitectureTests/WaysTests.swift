import Foundation
import Testing

@Suite("Paths through the code")
struct WaysTests {
    @Test("Each step of a packet, a report and a request names an existing file and a function in it")
    func steps() throws {
        let page = SourceTree.root.appendingPathComponent("Sources/martlet/martlet.docc/Ways.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let files = Dictionary(uniqueKeysWithValues: try SourceTree.files(in: "Sources").map { ($0.path, $0) })
        let steps = text.split(separator: "\n").filter { $0.hasPrefix("|") && $0.contains(".swift`") }
        #expect(steps.count >= 35, "the page's tables were found")
        for step in steps {
            let names = step.split(separator: "`", omittingEmptySubsequences: false)
            try #require(names.count == 5, "a file and a function: \(step)")
            let file = try #require(files["Sources/\(names[1])"], "there is no file Sources/\(names[1])")
            let holds = file.lines.contains { $0.contains("func \(names[3])(") || $0.contains("func \(names[3])<") }
            #expect(holds, "\(file.path) has no function '\(names[3])'")
        }
    }
}
