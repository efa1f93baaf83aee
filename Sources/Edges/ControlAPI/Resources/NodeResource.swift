import AccessTokens
import EdgeSupport
import HTTPServing
import Logging
import RoomService
import Rooms

/// The process: its state, its drain, and its log levels.
struct NodeResource: Resource {
    let access: APIAccess
    private let node: @Sendable () async -> NodeReport
    private let drain: @Sendable (DrainNotice?) async -> Bool

    init(
        access: APIAccess, node: @escaping @Sendable () async -> NodeReport,
        drain: @escaping @Sendable (DrainNotice?) async -> Bool
    ) {
        self.access = access
        self.node = node
        self.drain = drain
    }

    var operations: [Operation] {
        [
            .get("/v1/node", showNode),
            .post("/v1/node/drain", beginDrain),
            .delete("/v1/node/drain", endDrain),
            .get("/v1/node/log-levels", showLogLevels),
            .patch("/v1/node/log-levels", patchLogLevels),
        ]
    }

    func showNode(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorize(request) { $0.roomList }
        return .json(await node())
    }

    /// Begins a drain: the server is not ready and creates no new rooms, and members are notified. The process continues until somebody ends it.
    func beginDrain(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorizeServer(request)
        let seconds = try body(DrainRequest.self, of: request).seconds
        let deadline = seconds.map { context.rooms.wallClockMilliseconds + $0 * 1_000 }
        return try await setDrain(DrainNotice(deadline: deadline))
    }

    /// Ends a drain that an operator began.
    func endDrain(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorizeServer(request)
        return try await setDrain(nil)
    }

    private func setDrain(_ notice: DrainNotice?) async throws(Problem) -> HTTPResponse {
        guard await drain(notice) else { throw Problem(409, "conflict", "The server is shutting down.") }
        return .json(await node())
    }

    func showLogLevels(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorizeServer(request)
        return .json(LogLevelsModel(context.logger.output))
    }

    /// Sets other log levels for some components, from the next line until the process ends.
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

/// The body of a drain; if it is empty, it is not known when calls end.
struct DrainRequest: Decodable {
    /// The time until calls are ended, as it is announced to members.
    var seconds: Int64?

    private static let allowed: ClosedRange<Int64> = 0...86_400

    private enum CodingKeys: String, CodingKey, CaseIterable { case seconds }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        seconds = try fields.decodeIfPresent(Int64.self, forKey: .seconds)
        guard let seconds, !Self.allowed.contains(seconds) else { return }
        let wanted = "\(Self.allowed.lowerBound) to \(Self.allowed.upperBound)"
        throw JSONFault(fields.codingPath, CodingKeys.seconds, .unexpected(wanted: wanted))
    }
}

/// The log level of each component, as JSON shows it.
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
