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

        /// The folder of the modules' group, for example "Formats".
        var group: String { String(path.split(separator: "/")[1]) }
    }

    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Every Swift file below `folder`.
    static func files(in folder: String) throws -> [File] {
        let base = root.appendingPathComponent(folder)
        guard let walk = FileManager.default.enumerator(atPath: base.path) else { return [] }
        return try walk.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }.sorted().map { name in
            let text = try String(contentsOf: base.appendingPathComponent(name), encoding: .utf8)
            return File(path: "\(folder)/\(name)", lines: text.split(separator: "\n", omittingEmptySubsequences: false))
        }
    }
}
