/// Where a value was given.
enum Origin: Sendable, Hashable {
    case file(String, line: Int)
    case variable(String)
}

/// One fault of a configuration: where, in which setting, and what it is.
struct ConfigurationFault: Sendable, Hashable, CustomStringConvertible {
    /// nil: the value was not given, and is the default.
    var origin: Origin?
    /// "http.port"; nil if the fault is in the text rather than a setting.
    var path: String?
    var problem: String

    /// "martlet.yaml:2: http.port: …"
    var description: String {
        switch origin {
        case .file(let file, let line):
            (["\(file):\(line)"] + (path.map { [$0] } ?? []) + [problem]).joined(separator: ": ")
        case .variable(let name): "\(name): \(problem)"
        case nil: path.map { "\($0): \(problem)" } ?? problem
        }
    }

    /// Faults of the file come first, in its order.
    var line: Int { if case .file(_, let line) = origin { line } else { Int.max } }
}

/// Why a configuration cannot be used.
struct ConfigurationError: Error, Hashable {
    var faults: [ConfigurationFault]
}

/// A fault of a setting, reported by a section that does not know where it was given.
struct SettingProblem: Error, Hashable {
    /// "recording.upload_credentials".
    let path: String
    let problem: String

    init(_ path: String, _ problem: String) {
        self.path = path
        self.problem = problem
    }
}
