/// Any JSON value.
public enum JSONValue: Codable, Sendable, Hashable {
    case null
    case flag(Bool)
    case integer(Int64)
    case number(Double)
    case text(String)
    case array([JSONValue])
    case object([String: JSONValue])

    public init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let flag = try? value.decode(Bool.self) {
            self = .flag(flag)
        } else if let integer = try? value.decode(Int64.self) {
            self = .integer(integer)
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else if let text = try? value.decode(String.self) {
            self = .text(text)
        } else if let elements = try? value.decode([JSONValue].self) {
            self = .array(elements)
        } else {
            self = .object(try value.decode([String: JSONValue].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        switch self {
        case .null: try value.encodeNil()
        case .flag(let flag): try value.encode(flag)
        case .integer(let integer): try value.encode(integer)
        case .number(let number): try value.encode(number)
        case .text(let text): try value.encode(text)
        case .array(let elements): try value.encode(elements)
        case .object(let members): try value.encode(members)
        }
    }

    /// This value with `patch` applied (RFC 7396 section 2): members of objects are merged, null removes one, anything else replaces.
    public func merging(_ patch: JSONValue) -> JSONValue {
        guard case .object(let changes) = patch else { return patch }
        var members: [String: JSONValue] = [:]
        if case .object(let own) = self { members = own }
        for (name, change) in changes {
            members[name] = change == .null ? nil : (members[name] ?? .null).merging(change)
        }
        return .object(members)
    }
}

extension JSONCoding {
    /// The media type of a merge patch (RFC 7396 section 4).
    public static let mergePatchType = "application/merge-patch+json"

    /// `current` with the merge patch in `bytes` applied. Each member of the patch must have the form that it has in `Value`, so that a misspelt name
    /// is found even if its value is null.
    public static func merge<Value: Codable>(_ bytes: [UInt8], into current: Value) throws(JSONFault) -> Value {
        let patch = try decode(JSONValue.self, from: bytes)
        guard case .object = patch else { throw explained(JSONFault([], .unexpected(wanted: "an object")), by: bytes) }
        _ = try decode(Value.self, from: bytes)
        let merged = try decode(JSONValue.self, from: encode(current)).merging(patch)
        return try decode(Value.self, from: encode(merged))
    }
}
