import Foundation

/// As much of JSON Schema as `openapi.json` uses, and stricter: a member that no schema names is a fault.
struct SchemaChecker {
    let components: [String: Any]

    init(document: [String: Any]) {
        let all = document["components"] as? [String: Any]
        components = all?["schemas"] as? [String: Any] ?? [:]
    }

    /// What is wrong with `value`; empty when nothing is.
    func faults(_ value: Any, _ schema: [String: Any], at place: String = "$") -> [String] {
        if let reference = schema["$ref"] as? String {
            let name = String(reference.split(separator: "/").last ?? "")
            guard let target = components[name] as? [String: Any] else { return ["\(place): no schema \(name)"] }
            return faults(value, target, at: place)
        }
        if let choices = schema["anyOf"] as? [[String: Any]] {
            return choices.contains { faults(value, $0, at: place).isEmpty } ? [] : ["\(place): fits nothing"]
        }
        let types = (schema["type"] as? [String]) ?? (schema["type"] as? String).map { [$0] } ?? []
        guard types.contains(where: { Self.isOf($0, value) }) else { return ["\(place): not \(types)"] }
        if let words = schema["enum"] as? [Any], !words.contains(where: { "\($0)" == "\(value)" }) {
            return ["\(place): \(value) is not in the list"]
        }
        if let list = value as? [Any], let items = schema["items"] as? [String: Any] {
            return list.enumerated().flatMap { faults($0.element, items, at: "\(place)[\($0.offset)]") }
        }
        guard let object = value as? [String: Any] else { return [] }
        let properties = schema["properties"] as? [String: [String: Any]] ?? [:]
        let missing = (schema["required"] as? [String] ?? []).filter { object[$0] == nil }
        return missing.map { "\(place).\($0) is missing" }
            + object.flatMap { name, member in
                (properties[name] ?? schema["additionalProperties"] as? [String: Any])
                    .map { faults(member, $0, at: "\(place).\(name)") } ?? ["\(place).\(name) is unknown"]
            }
    }

    private static func isOf(_ type: String, _ value: Any) -> Bool {
        switch type {
        case "object": value is [String: Any]
        case "array": value is [Any]
        case "string": value is String
        case "null": value is NSNull
        case "boolean": (value as? NSNumber).map { Self.isBoolean($0) } ?? (value is Bool)
        case "integer":
            (value as? NSNumber).map { !Self.isBoolean($0) && $0.doubleValue.rounded() == $0.doubleValue } ?? false
        case "number": (value as? NSNumber).map { !Self.isBoolean($0) } ?? false
        default: false
        }
    }

    private static func isBoolean(_ number: NSNumber) -> Bool { String(cString: number.objCType) == "c" }
}
