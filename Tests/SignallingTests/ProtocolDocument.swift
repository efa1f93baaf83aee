import Foundation

/// The messages that Protocol.md shows.
enum ProtocolDocument {
    static func text() throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return try String(contentsOf: root.appending(path: "Sources/Edges/Signalling/Protocol.md"), encoding: .utf8)
    }

    static func messages(of side: String) throws -> [String] {
        let text = try text()
        var messages: [String] = []
        var inside = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line == "```json \(side)" {
                inside = true
            } else if line == "```" {
                inside = false
            } else if inside {
                messages.append(String(line))
            }
        }
        return messages
    }

    /// Equal JSON has an equal canonical form.
    static func canonical(_ text: String) throws -> String {
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8))
        let data = try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys, .withoutEscapingSlashes])
        return String(decoding: data, as: UTF8.self)
    }
}
