import EdgeSupport

/// Fields of bodies with the bounds that `openapi.json` gives them.
extension KeyedDecodingContainer {
    /// A text of at most so many Unicode code points.
    func text(_ key: Key, upTo most: Int) throws -> String? {
        guard let text = try decodeIfPresent(String.self, forKey: key) else { return nil }
        guard text.unicodeScalars.count <= most else {
            throw JSONFault(codingPath, key, .unexpected(wanted: "at most \(most) characters"))
        }
        return text
    }

    /// A list of at most so many texts, each as long as a name.
    func texts(_ key: Key, upTo most: Int) throws -> [String]? {
        guard let texts = try decodeIfPresent([String].self, forKey: key) else { return nil }
        guard texts.count <= most, texts.allSatisfy({ $0.unicodeScalars.count <= Bounds.name }) else {
            throw JSONFault(
                codingPath, key,
                .unexpected(wanted: "at most \(most) texts of at most \(Bounds.name) characters"))
        }
        return texts
    }
}

/// Bounds of fields that the rooms' rules do not bound.
enum Bounds {
    /// Names, identities and sids.
    static let name = 256
    /// Paths of files below a folder.
    static let path = 1_024
    /// Lists of words from a small set.
    static let words = 64
    /// The text of a message: more than any server is configured to forward; the room checks the configured limit.
    static let messageText = 262_144
    /// The same in base64.
    static let messageBytes = 349_528
    /// Receivers of a message.
    static let receivers = 256
}
