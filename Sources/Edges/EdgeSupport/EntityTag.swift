/// Entity tags and the If-Match condition (RFC 9110 sections 8.8.3 and 13.1.1).
public enum EntityTag {
    /// A strong tag as a field value.
    public static func field(_ tag: String) -> String { "\"\(tag)\"" }

    /// What If-Match asks for.
    public enum Condition: Sendable, Hashable {
        /// Any existing one. RFC 9725's examples write it with quotes, RFC 9110 without.
        case any
        case oneOf([String])

        /// The condition in the field lines; nil when there is none that says anything.
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
