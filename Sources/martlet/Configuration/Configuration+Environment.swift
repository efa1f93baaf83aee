extension Configuration {
    /// Applies MARTLET_… variables over what the file says.
    ///
    /// A variable is the setting's path in upper case with `_` for each dot. Lists are separated by commas; objects stand in YAML's
    /// brackets. Names that look like settings and are none are faults; names unlike any setting are warned about, because other
    /// programs may own them.
    mutating func apply(_ environment: [String: String], _ faults: inout [ConfigurationFault]) {
        let own = environment.filter { $0.key.hasPrefix("MARTLET_") && !Self.isFromContainer($0.key, $0.value) }
        for (name, text) in own.sorted(by: { $0.key < $1.key }) {
            do throws(SettingError) {
                if let setting = Setting.all.first(where: { $0.variable == name }) {
                    origins[setting.path] = .variable(name)
                    try setting.apply(&self, try Self.value(text, of: setting))
                } else if name == "MARTLET_KEYS" {
                    try applyKeys(text, from: name)
                } else if name.hasPrefix("MARTLET_KEYS_") {
                    try applyKey(text, from: name)
                } else {
                    try refuse(name)
                }
            } catch {
                faults.append(.init(origin: .variable(name), problem: error.problem))
            }
        }
    }

    private static func value(_ text: String, of setting: Setting) throws(SettingError) -> YAMLDocument.Node {
        guard setting.isList else {
            guard !text.isEmpty else {
                throw SettingError(problem: "is empty; unset it or give it a value: \(setting.wants)")
            }
            return .init(content: .text(text), line: 1)
        }
        if text.drop(while: { $0 == " " || $0 == "[" }).first == "{" {
            do {
                return try YAMLDocument(parsing: "value: \(text)").members[0].value
            } catch {
                throw SettingError(problem: error.problem)
            }
        }
        let parts = text.split(separator: ",").map { String($0.trimming(while: \.isWhitespace)) }
        return .init(content: .list(parts.map { .init(content: .text($0), line: 1) }), line: 1)
    }

    /// MARTLET_KEYS: names and secrets. Values are secrets: no message shows one.
    private mutating func applyKeys(_ text: String, from variable: String) throws(SettingError) {
        for pair in text.split(separator: ",") {
            let parts = pair.split(separator: ":", maxSplits: 1).map { String($0.trimming(while: \.isWhitespace)) }
            guard parts.count == 2 else { throw SettingError(problem: "expected NAME:SECRET, separated by commas") }
            keys[parts[0]] = parts[1]
            origins["keys.\(parts[0])"] = .variable(variable)
        }
    }

    /// MARTLET_KEYS_APP: the secret of the key whose path is keys.app. A variable has no case, so it stands for the file's key that
    /// differs by case alone, else for the name in lower case.
    private mutating func applyKey(_ secret: String, from variable: String) throws(SettingError) {
        let same = keys.keys.filter { Setting.variable(of: "keys.\($0)") == variable }.sorted()
        guard same.count <= 1 else {
            let names = same.joined(separator: "' and '")
            throw SettingError(problem: "matches more than one key, '\(names)'; use MARTLET_KEYS=NAME:SECRET")
        }
        let suffix = variable.dropFirst("MARTLET_KEYS_".count)
        guard !suffix.isEmpty, variable == variable.uppercased() else {
            throw SettingError(
                problem: "must be in upper case; for a key name with lower case use MARTLET_KEYS=NAME:SECRET")
        }
        let name = same.first ?? suffix.lowercased()
        keys[name] = secret
        origins["keys.\(name)"] = .variable(variable)
    }

    private mutating func refuse(_ name: String) throws(SettingError) {
        let word = String(name.dropFirst("MARTLET_".count))
        let whole = Spelling.nearest(
            to: word, among: Setting.all.map { String($0.variable.dropFirst("MARTLET_".count)) } + ["KEYS"])
        let part = Spelling.nearest(to: word, among: Setting.all.map(\.path))
        let nearest = whole.map { "MARTLET_\($0)" } ?? part.map(Setting.variable(of:))
        let problem = "there is no such setting"
        if let nearest { throw SettingError(problem: "\(problem); did you mean \(nearest)?") }
        guard !Setting.sections.contains(where: { name.hasPrefix(Setting.variable(of: $0) + "_") }) else {
            throw SettingError(problem: "\(problem); 'martlet help settings' lists them")
        }
        warnings.append(.init(origin: .variable(name), problem: "\(problem); it is ignored"))
    }

    /// Whether Kubernetes or Docker made the variable for a service or container called "martlet": MARTLET_SERVICE_HOST,
    /// MARTLET_SERVICE_PORT_HTTP, MARTLET_PORT=tcp://10.0.0.1:7880, MARTLET_PORT_7880_TCP_ADDR.
    private static func isFromContainer(_ name: String, _ value: String) -> Bool {
        name.hasPrefix("MARTLET_SERVICE_") || name.hasPrefix("MARTLET_PORT_")
            || (name == "MARTLET_PORT" && value.contains("://"))
    }
}

extension StringProtocol {
    /// Without the characters at both ends that `isLoose` picks.
    fileprivate func trimming(while isLoose: (Character) -> Bool) -> SubSequence {
        let start = firstIndex { !isLoose($0) } ?? endIndex
        let end = lastIndex { !isLoose($0) }.map { index(after: $0) } ?? start
        return self[start..<end]
    }
}
