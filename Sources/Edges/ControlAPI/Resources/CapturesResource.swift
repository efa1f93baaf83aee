import AccessTokens
import EdgeSupport
import HTTPServing
import Primitives
import RoomService
import Rooms

/// Captures of a participant's decrypted packets.
struct CapturesResource: Resource {
    let access: APIAccess

    var operations: [Operation] {
        let captures = "/v1/rooms/{room}/participants/{participant}/captures"
        return [
            .post(captures, startCapture),
            .get(captures, listCaptures),
            .get("\(captures)/{capture}", showCapture),
            .delete("\(captures)/{capture}", deleteCapture),
            .get("\(captures)/{capture}/packets", showCapturedPackets),
        ]
    }

    func startCapture(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let (room, author) = try moderation(request)
        let name = try request.parameter("participant")
        let wanted = try body(CaptureBody.self, of: request)
        let info = try await asking { () async throws(RoomError) in
            try await context.rooms.startCapture(
                of: name, in: room,
                CaptureRequest(
                    duration: .seconds(Int64(wanted.seconds)), maxBytes: wanted.maxBytes, keepsPayload: wanted.payload,
                    by: author))
        }
        var response = HTTPResponse.json(CaptureModel(info), status: 201)
        response.headers["Location"] =
            "/v1/rooms/\(PercentCoding.encode(room))/participants/\(info.participant)/captures/\(info.id)"
        return response
    }

    func listCaptures(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try ListPage(of: try await captures(request), request) { "\(String(sortableMoment: $0.startedAt))-\($0.id)" }
            .response("captures") { CaptureModel($0) }
    }

    func showCapture(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        .json(CaptureModel(try await capture(request)))
    }

    /// The file, for Wireshark.
    func showCapturedPackets(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let info = try await capture(request)
        guard let file = await context.rooms.captureFile(info.id) else { throw Self.noSuchCapture }
        return HTTPResponse(
            status: 200,
            headers: [
                "Content-Type": "application/x-pcapng", "Cache-Control": "no-store",
                "Content-Disposition": "attachment; filename=\"\(info.id).pcapng\"",
            ], body: file)
    }

    func deleteCapture(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        await context.rooms.deleteCapture(try await capture(request).id)
        return HTTPResponse(status: 204)
    }

    private func captures(_ request: HTTPRequest) async throws(Problem) -> [CaptureInfo] {
        let room = try moderatedRoom(request)
        try checkName(room)
        return await context.rooms.captures(of: try request.parameter("participant"), in: room)
    }

    private func capture(_ request: HTTPRequest) async throws(Problem) -> CaptureInfo {
        let id = try request.parameter("capture")
        guard let found = try await captures(request).first(where: { $0.id == id }) else { throw Self.noSuchCapture }
        return found
    }

    private static var noSuchCapture: Problem {
        Problem(404, "capture_not_found", "There is no such capture, or it was deleted.")
    }
}

/// The body that begins a capture.
private struct CaptureBody: Decodable {
    var seconds = 60
    var maxBytes = 16_000_000
    var payload = false

    private enum CodingKeys: String, CodingKey, CaseIterable { case seconds, maxBytes, payload }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        seconds = try fields.wholeNumber(.seconds, in: CaptureRequest.durations) ?? seconds
        maxBytes = try fields.wholeNumber(.maxBytes, in: CaptureRequest.sizes) ?? maxBytes
        payload = try fields.decodeIfPresent(Bool.self, forKey: .payload) ?? payload
    }
}

/// A capture as JSON shows it.
private struct CaptureModel: Encodable {
    var id: String
    var participant: String
    var identity: String
    var payload: Bool
    var startedAt: Int64
    var until: Int64
    var by: String
    var packets: Int
    var bytes: Int
    var dropped: UInt64
    /// Why it has ended; absent: it is running.
    var ended: String?

    init(_ info: CaptureInfo) {
        id = info.id
        participant = info.participant
        identity = info.identity
        payload = info.keepsPayload
        startedAt = info.startedAt
        until = info.until
        by = info.by
        packets = info.packets
        bytes = info.bytes
        dropped = info.dropped
        ended = info.end?.rawValue
    }
}
