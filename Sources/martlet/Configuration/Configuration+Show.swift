import EdgeSupport

extension Configuration {
    /// What `martlet config show` prints: every setting with its value and the origin of that; secrets are masked.
    var shown: [String] {
        let settings = Setting.all.map { setting in
            (setting.path, value(of: setting), origins[setting.path].map(Self.text) ?? implied(setting.path))
        }
        let secrets = keys.keys.sorted().map { name in
            ("keys.\(name)", Self.mask, origins["keys.\(name)"].map(Self.text) ?? implied("keys"))
        }
        let rows = (settings + secrets).map { path, value, origin in (text: "\(path): \(value)", origin: origin) }
        // Longer ones, such as lists of ICE servers, may stick out.
        let width = min(60, rows.map(\.text.count).max() ?? 0)
        return rows.map { row in
            let blanks = String(repeating: " ", count: max(0, width - row.text.count))
            return "\(row.text)\(blanks)  # \(row.origin)"
        }
    }

    private static let mask = "***"

    private func value(of setting: Setting) -> String {
        guard setting.path == "ice_servers" else {
            let shown = setting.show(self)
            return setting.isList ? "[\(shown)]" : shown.isEmpty ? "~" : shown
        }
        let servers = iceServers.map { entry in
            let secret = entry.secret != nil ? ", secret: \(Self.mask)" : ""
            let credential = entry.server.credential != nil ? ", username: \(Self.mask), credential: \(Self.mask)" : ""
            return "{urls: [\(entry.server.urls.joined(separator: ", "))]\(secret)\(credential)}"
        }
        return "[\(servers.joined(separator: ", "))]"
    }

    private static func text(_ origin: Origin) -> String {
        switch origin {
        case .file(let file, let line): "\(file):\(line)"
        case .variable(let name): name
        }
    }

    /// The origin of a value that was not given.
    private func implied(_ path: String) -> String {
        guard isDevelopment else { return "default" }
        let ordinary = Configuration()
        let isOrdinary = Setting.named(path).map { $0.show(self) == $0.show(ordinary) } ?? false
        return isOrdinary ? "default" : "--dev"
    }
}
