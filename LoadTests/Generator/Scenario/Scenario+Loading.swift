import Foundation

extension Scenario {
    /// Reads a file, lays `overrides` ("video.kbps" → "500") over it, and refuses names that do not exist.
    public static func load(file: String?, overrides: [(path: String, value: String)]) throws(LoadError) -> Scenario {
        var known = try dictionary(of: Scenario())
        if let file {
            guard let data = FileManager.default.contents(atPath: file),
                let object = (try? JSONSerialization.jsonObject(with: data)) as? [String: Any]
            else { throw .usage("\(file) is not a readable JSON object") }
            try lay(object, over: &known, at: "")
        }
        for (path, text) in overrides {
            try set(value(of: text), at: path.split(separator: ".").map(String.init)[...], in: &known, whole: path)
        }
        do {
            let data = try JSONSerialization.data(withJSONObject: known)
            return try JSONDecoder().decode(Scenario.self, from: data)
        } catch { throw .usage("the scenario is invalid: \(error)") }
    }

    private static func dictionary(of scenario: Scenario) throws(LoadError) -> [String: Any] {
        guard let data = try? JSONEncoder().encode(scenario),
            let object = (try? JSONSerialization.jsonObject(with: data)) as? [String: Any]
        else { throw .usage("cannot encode the scenario") }
        return object
    }

    private static func lay(_ object: [String: Any], over known: inout [String: Any], at path: String) throws(LoadError)
    {
        for (name, value) in object {
            guard let old = known[name] else { throw .usage("a scenario has no '\(path)\(name)'") }
            if var inner = old as? [String: Any], let new = value as? [String: Any] {
                try lay(new, over: &inner, at: path + name + ".")
                known[name] = inner
            } else {
                known[name] = value
            }
        }
    }

    private static func set(
        _ value: Any, at path: ArraySlice<String>, in known: inout [String: Any], whole: String
    ) throws(LoadError) {
        guard let name = path.first, let old = known[name] else { throw .usage("a scenario has no '\(whole)'") }
        guard path.count > 1 else {
            known[name] = old is String ? "\(value)" : value
            return
        }
        guard var inner = old as? [String: Any] else { throw .usage("a scenario has no '\(whole)'") }
        try set(value, at: path.dropFirst(), in: &inner, whole: whole)
        known[name] = inner
    }

    private static func value(of text: String) -> Any {
        if let number = Int(text) { return number }
        if let number = Double(text) { return number }
        switch text {
        case "true": return true
        case "false": return false
        default: return text
        }
    }
}
