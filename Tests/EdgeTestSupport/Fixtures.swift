import Foundation

/// Offers of real clients.
public enum Fixtures {
    /// The text of a captured description by its name.
    public static func offer(_ name: String) throws -> String {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Vectors")
        return try String(contentsOf: folder.appending(path: "sdp/\(name).sdp"), encoding: .utf8)
    }
}
