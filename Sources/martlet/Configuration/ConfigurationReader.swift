/// Reads a configuration from a file, overridden by the environment, and collects the faults of both.
struct ConfigurationReader {
    private(set) var configuration = Configuration()
    private(set) var faults: [ConfigurationFault] = []
}

extension Configuration {
    /// The configuration of a file (nil: none), overridden by the environment, and checked as far as possible without serving:
    /// `serve` and `check-config` both call this. Without a `machine`, as for a command that does not serve, names, values and keys are checked.
    static func load(
        file: String?, environment: [String: String], development: Bool, on machine: Machine?, needsKey: Bool = true
    ) throws(ConfigurationError) -> Configuration {
        var reader = ConfigurationReader()
        if let file { try reader.apply(file: file) }
        reader.apply(environment)
        var (configuration, faults) = (reader.configuration, reader.faults)
        if development { configuration.becomeDevelopment() }
        faults += configuration.keyFaults
        if let machine {
            faults += configuration.faults(on: machine)
            configuration.warnings += configuration.warnings(on: machine)
            configuration.notes = configuration.machineNotes(machine)
        }
        // Last, and only without other faults: the keys may be missing for the same reason.
        if needsKey, faults.isEmpty, configuration.keys.isEmpty { faults = [Self.noKey] }
        guard faults.isEmpty else {
            let order = faults.indices.sorted { (faults[$0].line, $0) < (faults[$1].line, $1) }
            throw ConfigurationError(faults: order.map { faults[$0] })
        }
        return configuration
    }
}

// MARK: - A file

extension ConfigurationReader {
    /// Applies a file's settings. Throws if it has none, because it cannot be read or is no YAML.
    mutating func apply(file: String) throws(ConfigurationError) { apply(try Self.read(file), from: file) }

    private static func read(_ file: String) throws(ConfigurationError) -> YAMLDocument {
        func failure(_ line: Int, _ problem: String) -> ConfigurationError {
            ConfigurationError(faults: [ConfigurationFault(origin: .file(file, line: line), problem: problem)])
        }
        let bytes: [UInt8]
        do throws(FileError) {
            bytes = try FileContents.read(file, atMost: YAMLDocument.maximumBytes)
        } catch {
            throw ConfigurationError(faults: [ConfigurationFault(problem: "\(file): \(error.problem)")])
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            let line = lines.firstIndex { String(validating: $0, as: UTF8.self) == nil } ?? 0
            throw failure(line + 1, "not UTF-8; save the file in this encoding")
        }
        do {
            return try YAMLDocument(parsing: text)
        } catch {
            throw failure(error.line, error.problem)
        }
    }

    /// Applies a file's settings; unknown names are faults, because a misspelt limit is no limit.
    mutating func apply(_ document: YAMLDocument, from file: String) {
        apply(document.members, below: "", of: file)
    }

    private mutating func apply(_ members: [YAMLDocument.Member], below section: String, of file: String) {
        for member in members {
            let path = section.isEmpty ? member.name : "\(section).\(member.name)"
            let origin = Origin.file(file, line: member.line)
            if path == "keys" {
                applyKeys(member, of: file)
            } else if let setting = Setting.named(path) {
                apply(member.value, to: setting, origin)
            } else if Setting.sections.contains(path) {
                switch member.value.content {
                case .map(let members): apply(members, below: path, of: file)
                case .none: continue
                case .text, .list:
                    faults.append(.init(origin: origin, path: path, problem: Self.isSection(path, not: member.value)))
                }
            } else {
                let known = Setting.all.map(\.path) + Setting.sections + ["keys"]
                let hint = Spelling.hint(for: path, among: known, otherwise: "; 'martlet help settings' lists them")
                faults.append(.init(origin: origin, problem: "there is no setting '\(path)'\(hint)"))
            }
        }
    }

    private mutating func apply(_ value: YAMLDocument.Node, to setting: Setting, _ origin: Origin) {
        // Once as 'http.port: 1' and once within 'http:'.
        if case .file(let file, let line) = origin, case .file(file, let first) = configuration.origins[setting.path],
            line != first
        {
            faults.append(
                .init(origin: origin, path: setting.path, problem: "duplicate setting; the first is in line \(first)"))
        }
        configuration.origins[setting.path] = origin
        do throws(SettingError) {
            try setting.apply(&configuration, value)
        } catch {
            var place = origin
            if case .file(let file, _) = origin, let line = error.line { place = .file(file, line: line) }
            faults.append(.init(origin: place, path: setting.path, problem: error.problem))
        }
    }

    /// The advice if a section's name is followed by a value: the section's setting that would accept it, if one does.
    private static func isSection(_ path: String, not value: YAMLDocument.Node) -> String {
        let inside = Setting.all.filter { $0.path.hasPrefix(path + ".") }
        let fitting = inside.first { setting in
            var configuration = Configuration()
            return (try? setting.apply(&configuration, value)) != nil
        }
        let known = inside.prefix(3).map { String($0.path.dropFirst(path.count + 1)) }.joined(separator: ", ")
        let hint =
            if let fitting, case .text(let text) = value.content {
                "did you mean '\(fitting.path): \(text)'?"
            } else {
                "write its settings (\(known), …) below it, indented"
            }
        return "is a section and takes no value; \(hint)"
    }

    private mutating func applyKeys(_ section: YAMLDocument.Member, of file: String) {
        func fault(_ line: Int, _ path: String, _ problem: String) {
            faults.append(.init(origin: .file(file, line: line), path: path, problem: problem))
        }
        // Values are secrets: no message shows one.
        guard case .map(let members) = section.value.content else {
            if section.value.content != .none {
                fault(section.line, "keys", "is a section and takes no value; write 'NAME: SECRET' below it, indented")
            }
            return
        }
        for member in members {
            switch member.value.content {
            case .text(let secret):
                configuration.keys[member.name] = secret
                configuration.origins["keys.\(member.name)"] = .file(file, line: member.line)
            case .none where member.name.contains(":"):
                fault(member.line, "keys", "a key has no secret; write 'NAME: SECRET' with a space after the colon")
            case .none:
                fault(member.line, "keys.\(member.name)", "has no secret; 'openssl rand -hex 32' generates one")
            case .list, .map: fault(member.line, "keys.\(member.name)", "expected one value, the secret")
            }
        }
    }
}

// MARK: - The environment

extension ConfigurationReader {
    /// Applies MARTLET_… variables over the file's settings.
    ///
    /// A variable is the setting's path in upper case with `_` for each dot. Lists are separated by commas; objects are written in YAML's
    /// brackets. Names that look like settings but are none are faults; names unlike any setting are warned about, because other
    /// programs may own them.
    mutating func apply(_ environment: [String: String]) {
        let own = environment.filter { $0.key.hasPrefix("MARTLET_") && !Self.isFromContainer($0.key, $0.value) }
        for (name, text) in own.sorted(by: { $0.key < $1.key }) {
            do throws(SettingError) {
                if let setting = Setting.all.first(where: { $0.variable == name }) {
                    configuration.origins[setting.path] = .variable(name)
                    try setting.apply(&configuration, try Self.value(text, of: setting))
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
            configuration.keys[parts[0]] = parts[1]
            configuration.origins["keys.\(parts[0])"] = .variable(variable)
        }
    }

    /// MARTLET_KEYS_APP: the secret of the key whose path is keys.app. A variable has no case, so it stands for the file's key that
    /// differs only in case, or else for the name in lower case.
    private mutating func applyKey(_ secret: String, from variable: String) throws(SettingError) {
        let same = configuration.keys.keys.filter { Setting.variable(of: "keys.\($0)") == variable }.sorted()
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
        configuration.keys[name] = secret
        configuration.origins["keys.\(name)"] = .variable(variable)
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
        configuration.warnings.append(.init(origin: .variable(name), problem: "\(problem); it is ignored"))
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
