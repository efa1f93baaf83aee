import Foundation

/// Why a configuration cannot be used: one line a fault, each with its place.
struct ConfigurationError: Error, Hashable {
    var faults: [String]
}

extension Configuration {
    /// The configuration of a file (nil: none) with what the environment says on top.
    static func load(
        file: String?, environment: [String: String], development: Bool
    ) throws(ConfigurationError) -> Configuration {
        var configuration = development ? Configuration.development : Configuration()
        var faults: [String] = []
        if let file {
            let entries = try read(file)
            configuration.take(entries, from: file, &faults)
        }
        configuration.take(environment, &faults)
        if development { configuration.becomeDevelopment() }
        faults += configuration.faults
        guard faults.isEmpty else { throw ConfigurationError(faults: faults) }
        return configuration
    }

    private static func read(_ file: String) throws(ConfigurationError) -> [YAMLDocument.Entry] {
        guard let data = FileManager.default.contents(atPath: file) else {
            let why = access(file, R_OK) == 0 ? "is it a file?" : String(cString: strerror(errno))
            throw ConfigurationError(faults: ["\(file): cannot be read: \(why)"])
        }
        guard let text = String(data: data, encoding: .utf8) else {
            throw ConfigurationError(faults: ["\(file): is not UTF-8"])
        }
        do {
            return try YAMLDocument(parsing: text).entries
        } catch {
            throw ConfigurationError(faults: ["\(file):\(error.line): \(error.problem)"])
        }
    }

    /// Takes a file's entries; unknown names are faults, because a misspelt limit is no limit.
    mutating func take(_ entries: [YAMLDocument.Entry], from file: String, _ faults: inout [String]) {
        for entry in entries {
            if entry.path.hasPrefix("keys.") {
                keys[String(entry.path.dropFirst("keys.".count))] = entry.values.first
                continue
            }
            guard let setting = Setting.all.first(where: { $0.path == entry.path }) else {
                faults.append(
                    "\(file):\(entry.line): there is no setting '\(entry.path)'; 'martlet help settings' lists them")
                continue
            }
            do throws(SettingError) {
                try setting.take(&self, entry.values)
            } catch {
                faults.append("\(file):\(entry.line): \(entry.path): \(error.problem)")
            }
        }
    }

    /// Takes MARTLET_… variables; lists are separated by commas, MARTLET_KEYS by commas as name:secret.
    mutating func take(_ environment: [String: String], _ faults: inout [String]) {
        for setting in Setting.all {
            guard let text = environment[setting.variable] else { continue }
            do throws(SettingError) {
                try setting.take(&self, text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) })
            } catch {
                faults.append("\(setting.variable): \(error.problem)")
            }
        }
        for pair in (environment["MARTLET_KEYS"] ?? "").split(separator: ",") {
            let parts = pair.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            if parts.count == 2 {
                keys[parts[0]] = parts[1]
            } else {
                faults.append("MARTLET_KEYS: wants name:secret, separated by commas")
            }
        }
    }
}
