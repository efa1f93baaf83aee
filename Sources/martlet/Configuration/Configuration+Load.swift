import Foundation

extension Configuration {
    /// The configuration of a file (nil: none) with what the environment says on top, checked as far as it can be without serving:
    /// `serve` and `check-config` both call this. Without a `machine`, as for a command that does not serve, names, values and keys are checked.
    static func load(
        file: String?, environment: [String: String], development: Bool, on machine: Machine?, needsKey: Bool = true
    ) throws(ConfigurationError) -> Configuration {
        var configuration = Configuration()
        var faults: [ConfigurationFault] = []
        if let file {
            let document = try read(file)
            configuration.apply(document, from: file, &faults)
        }
        configuration.apply(environment, &faults)
        if development { configuration.becomeDevelopment() }
        faults += configuration.keyFaults
        if let machine {
            faults += configuration.faults(on: machine)
            configuration.warnings += configuration.warnings(on: machine)
            configuration.notes = configuration.machineNotes(machine)
        }
        // Last, and alone: where a file is wrong otherwise, its keys may be missing for the same reason.
        if needsKey, faults.isEmpty, configuration.keys.isEmpty { faults = [Self.noKey] }
        guard faults.isEmpty else {
            let order = faults.indices.sorted { (faults[$0].line, $0) < (faults[$1].line, $1) }
            throw ConfigurationError(faults: order.map { faults[$0] })
        }
        return configuration
    }

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
    mutating func apply(_ document: YAMLDocument, from file: String, _ faults: inout [ConfigurationFault]) {
        apply(document.members, below: "", of: file, &faults)
    }

    private mutating func apply(
        _ members: [YAMLDocument.Member], below section: String, of file: String, _ faults: inout [ConfigurationFault]
    ) {
        for member in members {
            let path = section.isEmpty ? member.name : "\(section).\(member.name)"
            let origin = Origin.file(file, line: member.line)
            if path == "keys" {
                applyKeys(member, of: file, &faults)
            } else if let setting = Setting.named(path) {
                apply(member.value, to: setting, origin, &faults)
            } else if Setting.sections.contains(path) {
                switch member.value.content {
                case .map(let members): apply(members, below: path, of: file, &faults)
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

    private mutating func apply(
        _ value: YAMLDocument.Node, to setting: Setting, _ origin: Origin, _ faults: inout [ConfigurationFault]
    ) {
        // Once as 'http.port: 1' and once within 'http:'.
        if case .file(let file, let line) = origin, case .file(file, let first) = origins[setting.path], line != first {
            faults.append(
                .init(origin: origin, path: setting.path, problem: "duplicate setting; the first is in line \(first)"))
        }
        origins[setting.path] = origin
        do throws(SettingError) {
            try setting.apply(&self, value)
        } catch {
            var place = origin
            if case .file(let file, _) = origin, let line = error.line { place = .file(file, line: line) }
            faults.append(.init(origin: place, path: setting.path, problem: error.problem))
        }
    }

    /// What to write where a value stands behind a section's name: the section's setting that would accept it, if one does.
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

    private mutating func applyKeys(
        _ section: YAMLDocument.Member, of file: String, _ faults: inout [ConfigurationFault]
    ) {
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
                keys[member.name] = secret
                origins["keys.\(member.name)"] = .file(file, line: member.line)
            case .none where member.name.contains(":"):
                fault(member.line, "keys", "a key has no secret; write 'NAME: SECRET' with a space after the colon")
            case .none:
                fault(member.line, "keys.\(member.name)", "has no secret; 'openssl rand -hex 32' generates one")
            case .list, .map: fault(member.line, "keys.\(member.name)", "expected one value, the secret")
            }
        }
    }
}
