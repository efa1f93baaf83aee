import Foundation

/// Reads and writes JSON in the same way for every edge, with sorted keys, so that equal values give equal bytes.
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

    /// The value in `bytes`; the fault names the place, what must be there, and what is there.
    public static func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: [UInt8]
    ) throws(JSONFault) -> Value {
        do {
            return try JSONDecoder().decode(type, from: Data(bytes))
        } catch let fault as JSONFault {
            throw explained(fault, by: bytes)
        } catch let error as DecodingError {
            throw explained(JSONFault(error), by: bytes)
        } catch {
            throw JSONFault([], .notJSON)
        }
    }

    /// The fault, with what `bytes` has at its place if something else was expected.
    public static func explained(_ fault: JSONFault, by bytes: [UInt8]) -> JSONFault {
        guard fault.reason == .notJSON || fault.wanted != nil && fault.found == nil else { return fault }
        let decoder = JSONDecoder()
        decoder.userInfo[JSONGlimpse.path] = fault.path
        guard let glimpse = try? decoder.decode(JSONGlimpse.self, from: Data(bytes)) else { return fault }
        // The decoder refused well-formed text without naming a place.
        if fault.reason == .notJSON { return JSONFault([], .refused("has a number that is out of range")) }
        var fault = fault
        fault.found = glimpse.words
        return fault
    }
}

extension Problem {
    /// The HTTP problem for a body of the wrong form.
    public init(_ fault: JSONFault) {
        self.init(400, "malformed_json", fault.sentence)
        place = fault
    }
}
