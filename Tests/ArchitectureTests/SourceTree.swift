import Foundation

/// The project's Swift sources as text, for tests that read the house instead of running it.
struct SourceTree {
    struct File {
        /// Path from the project's folder, for example "Sources/Formats/RTP/RTPHeader.swift".
        let path: String
        let lines: [Substring]

        /// The module that the file belongs to: the folder under its group.
        var module: String {
            let parts = path.split(separator: "/")
            return parts.count > 3 ? String(parts[2]) : String(parts[1])
        }

        /// The functions and initialisers that span several lines: where each begins and how long it is. The formatter puts the closing
        /// brace under the declaration.
        var functions: [(line: Int, length: Int)] {
            lines.indices.compactMap { start in
                let line = lines[start]
                let indent = line.prefix { $0 == " " }
                let words = line.dropFirst(indent.count).split { $0 == " " || $0 == "(" || $0 == "<" || $0 == "?" }
                guard words.contains("func") || words.contains("init") || words.first == "deinit",
                    words.first?.hasPrefix("//") == false, words.first?.contains(".") == false
                else { return nil }
                let end = lines[start...].firstIndex { $0 == "\(indent)}" }
                let next = lines[(start + 1)...].firstIndex { $0.hasPrefix("\(indent)///") || $0 == "" }
                // A declaration of one line, or without a body, ends before the next one begins.
                guard let end, lines[start].hasSuffix("{") || (next ?? end) > end else { return nil }
                return (start + 1, end - start + 1)
            }
        }

        /// The folder of the modules' group, for example "Formats".
        var group: String { String(path.split(separator: "/")[1]) }
    }

    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Every Swift file below `folder`.
    static func files(in folder: String) throws -> [File] {
        try paths(in: folder, kinds: ["swift"]).map { path in
            File(path: path, lines: try text(path).split(separator: "\n", omittingEmptySubsequences: false))
        }
    }

    /// Every file below `folder` whose name ends in one of `kinds`, from the project's folder on.
    static func paths(in folder: String, kinds: [String]) throws -> [String] {
        guard let walk = FileManager.default.enumerator(atPath: root.appendingPathComponent(folder).path) else {
            return []
        }
        return walk.compactMap { $0 as? String }
            .filter { name in kinds.contains { name.hasSuffix(".\($0)") } }.sorted().map { "\(folder)/\($0)" }
    }

    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }
}
