import Foundation

/// JSON in and out in one way for every edge: sorted keys, so that equal values give equal bytes.
public enum JSONCoding {
    /// The media type.
    public static let contentType = "application/json"

    /// The bytes of `value`. The values of the edges always have a JSON form; one that has none gives `null`.
    public static func encode(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(value) else { return Array("null".utf8) }
        return Array(data)
    }

    /// The text of `value`.
    public static func encodeText(_ value: some Encodable) -> String {
        String(decoding: encode(value), as: UTF8.self)
    }

    /// The value in `bytes`; the problem names the place where it went wrong.
    public static func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: [UInt8]
    ) throws(JSONFault) -> Value {
        do {
            return try JSONDecoder().decode(type, from: Data(bytes))
        } catch let error as DecodingError {
            throw JSONFault(error)
        } catch {
            throw JSONFault(path: "", reason: "is not JSON")
        }
    }
}

/// Where and why a JSON text does not have the wanted form.
public struct JSONFault: Error, Sendable, Hashable {
    /// Members and indices from the top, joined by dots; empty for the text as a whole.
    public var path: String
    /// "is missing", "has the wrong type" …
    public var reason: String

    /// A fault at `path`.
    public init(path: String, reason: String) {
        self.path = path
        self.reason = reason
    }

    /// A sentence for people.
    public var sentence: String { path.isEmpty ? "The body \(reason)." : "The field \(path) \(reason)." }

    init(_ error: DecodingError) {
        switch error {
        case .keyNotFound(let key, let context): self.init(context.codingPath + [key], "is missing")
        case .valueNotFound(_, let context): self.init(context.codingPath, "is missing")
        case .typeMismatch(_, let context): self.init(context.codingPath, "has the wrong type")
        case .dataCorrupted(let context):
            self.init(
                context.codingPath, context.codingPath.isEmpty ? "is not JSON" : "has a value that is not allowed")
        @unknown default: self.init(path: "", reason: "is not understood")
        }
    }

    private init(_ path: [any CodingKey], _ reason: String) {
        self.init(
            path: path.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: "."), reason: reason)
    }
}

extension Problem {
    /// What a body of the wrong form is in HTTP.
    public init(_ fault: JSONFault) {
        self.init(400, "malformed_json", fault.sentence)
    }
}
