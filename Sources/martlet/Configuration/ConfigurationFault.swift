/// Where a value was given.
enum Origin: Sendable, Hashable {
    case file(String, line: Int)
    case variable(String)
}

/// One thing that is wrong with a configuration: where, with which setting, and what.
struct ConfigurationFault: Sendable, Hashable, CustomStringConvertible {
    /// nil: nobody gave the value, it is the default.
    var origin: Origin?
    /// "http.port"; nil when the fault is the text's and no setting's.
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

/// What is wrong with a setting, said by a section that does not know where it was given.
struct SettingProblem: Error, Hashable {
    /// "recording.upload_credentials".
    let path: String
    let problem: String

    init(_ path: String, _ problem: String) {
        self.path = path
        self.problem = problem
    }
}
