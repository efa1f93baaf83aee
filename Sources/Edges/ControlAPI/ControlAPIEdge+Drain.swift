import EdgeSupport
import HTTPServing
import RoomService
import Rooms

extension ControlAPIEdge {
    /// Begins a drain: not ready, no new rooms, members are told. The process goes on until somebody ends it.
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
}

/// The body of a drain; nothing means that nobody knows when it ends.
struct DrainRequest: Decodable {
    /// Until calls are ended, as members are told.
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
