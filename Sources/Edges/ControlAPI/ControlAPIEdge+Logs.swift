import EdgeSupport
import HTTPServing
import Logging

extension ControlAPIEdge {
    func showLogLevels(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorizeServer(request)
        return .json(LogLevelsModel(context.logger.output))
    }

    /// Other levels for some components, from the next line on and until the process ends.
    func patchLogLevels(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorizeServer(request)
        let output = context.logger.output
        let wanted = try patched(LogLevelsModel(output), by: request)
        if let unknown = output.setLevels(wanted.levels.compactMapValues { LogLevel(word: $0) }) {
            throw Problem(409, "conflict", "There is no component \(unknown).")
        }
        return .json(LogLevelsModel(output))
    }
}

/// From which level on each component writes lines, as JSON shows it.
struct LogLevelsModel: Codable {
    var levels: [String: String]

    private enum CodingKeys: String, CodingKey, CaseIterable { case levels }

    init(_ output: LogOutput) { levels = output.levels.mapValues(\.word) }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        levels = try fields.decodeIfPresent([String: String].self, forKey: .levels) ?? [:]
        guard levels.values.allSatisfy({ LogLevel(word: $0) != nil }) else {
            let words = LogLevel.allCases.map(\.word).joined(separator: ", ")
            throw JSONFault(
                fields.codingPath, CodingKeys.levels,
                .unexpected(wanted: "an object with one of \(words) for each component"))
        }
    }
}
