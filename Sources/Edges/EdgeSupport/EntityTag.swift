/// Entity tags and the conditions If-Match and If-None-Match (RFC 9110 sections 8.8.3, 13.1.1 and 13.1.2).
public enum EntityTag {
    /// A strong tag as a field value.
    public static func field(_ tag: String) -> String { "\"\(tag)\"" }

    /// Whether the field lines of If-None-Match name the current tag: the client has that version already. The comparison is the weak one, as RFC 9110 demands.
    public static func isNamed(_ tag: String, by fields: [String]) -> Bool {
        fields.flatMap { $0.split(separator: ",") }.contains { part in
            let text = part.filter { $0 != " " && $0 != "\t" }
            return text == "*" || (text.hasPrefix("W/") ? String(text.dropFirst(2)) : text) == field(tag)
        }
    }

    /// What If-Match asks for.
    public enum Condition: Sendable, Hashable {
        /// Matches any existing tag. RFC 9725's examples write it with quotes, RFC 9110 without.
        case any
        case oneOf([String])

        /// The condition in the field lines; nil if they contain none.
        public init?(_ fields: [String]) {
            var tags: [String] = []
            for part in fields.flatMap({ $0.split(separator: ",") }) {
                let text = part.filter { $0 != " " && $0 != "\t" }
                if text == "*" || text == "\"*\"" {
                    self = .any
                    return
                }
                tags.append(text)
            }
            guard !tags.isEmpty else { return nil }
            self = .oneOf(tags)
        }

        /// Whether the current tag fulfils it. A weak tag never does.
        public func matches(_ tag: String) -> Bool {
            switch self {
            case .any: true
            case .oneOf(let tags): tags.contains(EntityTag.field(tag))
            }
        }
    }
}
