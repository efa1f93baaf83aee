/// Where and why a JSON text does not have the expected form. Readers of single members throw it, too; ``JSONCoding`` adds what it found there.
public struct JSONFault: Error, Sendable, Hashable {
    /// What is wrong at a place.
    public enum Reason: Sendable, Hashable {
        /// The text is no JSON.
        case notJSON
        /// A member that must be there is absent or null.
        case missing
        /// An unknown member; the known one that was probably meant, as its path from the top.
        case unknown(meant: [String]?)
        /// A value that is refused for what it is: "holds U+202E as character 2".
        case refused(String)
        /// Another type, or a value that is not allowed, with what it must be, as in "it must be a whole number".
        case unexpected(wanted: String)
    }

    /// Members and indices from the top; empty for the text as a whole.
    public var path: [String]
    /// What is wrong.
    public var reason: Reason
    /// What was found there, if that helps: a short value, or its type.
    public var found: String?

    /// A fault at `path`.
    public init(_ path: [String], _ reason: Reason, found: String? = nil) {
        self.path = path
        self.reason = reason
        self.found = found
    }

    /// A fault of the member `key` below `path`.
    public init(_ path: [any CodingKey], _ key: any CodingKey, _ reason: Reason) {
        self.init(Self.names(path + [key]), reason)
    }

    /// The place as a JSON Pointer (RFC 6901).
    public var pointer: String {
        path.map { "/" + Self.brief($0).replacing("~", with: "~0").replacing("/", with: "~1") }.joined()
    }

    /// What it must be; nil if the reason does not say.
    public var wanted: String? {
        guard case .unexpected(let wanted) = reason else { return nil }
        return wanted
    }

    /// The member that was probably meant, with dots between its parts.
    public var suggestion: String? {
        guard case .unknown(let meant?) = reason else { return nil }
        return meant.joined(separator: ".")
    }

    /// A sentence for people.
    public var sentence: String {
        let place = path.isEmpty ? "The body" : "The field \(path.map(Self.brief).joined(separator: "."))"
        switch reason {
        case .notJSON: return "\(place) is not JSON."
        case .missing: return "\(place) is missing."
        case .refused(let why): return "\(place) \(why)."
        case .unknown: return "\(place) is unknown" + (suggestion.map { "; did you mean \($0)?" } ?? ".")
        case .unexpected(let wanted): return "\(place) \(found.map { "is \($0); it must be" } ?? "must be") \(wanted)."
        }
    }

    /// The client chooses an unknown member's name, which may have any length.
    private static func brief(_ name: String) -> String { name.count > 64 ? name.prefix(63) + "…" : name }

    /// A coding path as names and indices.
    public static func names(_ path: [any CodingKey]) -> [String] {
        path.map { $0.intValue.map(String.init) ?? $0.stringValue }
    }
}

extension JSONFault {
    /// A decoder's error in JSON's terms.
    init(_ error: DecodingError) {
        switch error {
        case .keyNotFound(let key, let context): self.init(Self.names(context.codingPath + [key]), .missing)
        case .valueNotFound(_, let context): self.init(Self.names(context.codingPath), .missing)
        case .typeMismatch(let type, let context):
            self.init(Self.names(context.codingPath), .unexpected(wanted: Self.word(for: type)))
        case .dataCorrupted: self.init([], .notJSON)
        @unknown default: self.init([], .notJSON)
        }
    }

    private static func word(for type: any Any.Type) -> String {
        switch type {
        case is Bool.Type: "true or false"
        case is String.Type: "a string"
        case is any BinaryInteger.Type: "a whole number"
        case is any BinaryFloatingPoint.Type: "a number"
        // For an array or a dictionary the decoder names its own type, not ours.
        default: "\(type)".hasPrefix("Array") ? "an array" : "an object"
        }
    }
}
