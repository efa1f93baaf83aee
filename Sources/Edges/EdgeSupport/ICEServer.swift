/// A STUN or TURN server that is announced to clients.
public struct ICEServer: Sendable, Hashable, Codable {
    /// `stun:…`, `turn:…` or `turns:…` addresses.
    public var urls: [String]
    /// TURN credentials.
    public var username: String?
    /// TURN credentials.
    public var credential: String?

    /// A server with these addresses.
    public init(urls: [String], username: String? = nil, credential: String? = nil) {
        self.urls = urls
        self.username = username
        self.credential = credential
    }

    /// `Link` field values, one per address (RFC 9725 section 4.6).
    public var linkValues: [String] {
        urls.map { url in
            var value = "<\(Self.uri(url))>; rel=\"ice-server\""
            if let username, let credential {
                value += "; username=\"\(Self.quoted(username))\"; credential=\"\(Self.quoted(credential))\""
                value += "; credential-type=\"password\""
            }
            return value
        }
    }

    private static func uri(_ text: String) -> String { text.filter { $0 != "<" && $0 != ">" && !$0.isNewline } }

    /// The inside of a quoted string (RFC 9110 section 5.6.4).
    private static func quoted(_ text: String) -> String {
        var result = ""
        for character in text where !character.isNewline {
            if character == "\"" || character == "\\" { result.append("\\") }
            result.append(character)
        }
        return result
    }
}
