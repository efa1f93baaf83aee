import AccessTokens
import EdgeSupport
import HTTPServing
import MediaControl
import Recorder
import RoomService
import Rooms

/// Recordings: started and ended by an operator, or by a moderator or a bearer of the grant `recorder` for the room.
struct RecordingsResource: Resource {
    let access: APIAccess
    private let recorder: FileRecorder?

    init(access: APIAccess, recorder: FileRecorder?) {
        self.access = access
        self.recorder = recorder
    }

    var operations: [Operation] {
        [
            .get("/v1/rooms/{room}/recordings", listRoomRecordings),
            .post("/v1/rooms/{room}/recordings", startRecording),
            .get("/v1/recordings", listRecordings),
            .get("/v1/recordings/{recording}", showRecording),
            .delete("/v1/recordings/{recording}", endRecording),
            .get("/v1/recordings/{recording}/file", readRecording),
            .post("/v1/recordings/{recording}/links", createRecordingLink),
        ]
    }

    func startRecording(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try recordedRoom(request)
        let wanted = try body(RecordingRequestModel.self, of: request)
        let (scope, options) = (try wanted.scope(), try wanted.options())
        let info = try await asking { () async throws(RoomError) in
            try await context.rooms.startRecording(scope, options: options, in: room)
        }
        guard let summary = recorder?[info.sid] else { throw Self.noSuchRecording }
        var response = HTTPResponse.json(summary, status: 201)
        response.headers["Location"] = "/v1/recordings/\(info.sid)"
        return response
    }

    func listRoomRecordings(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try recordedRoom(request)
        try checkName(room)
        return try page((recorder?.recordings ?? []).filter { $0.room == room }, request)
    }

    func listRecordings(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let claims = try authorize(request) { $0.roomAdmin || $0.recorder }
        return try page((recorder?.recordings ?? []).filter { Self.covers(claims.video, $0.room) }, request)
    }

    /// The newest come first.
    private func page(_ all: [RecordingSummary], _ request: HTTPRequest) throws(Problem) -> HTTPResponse {
        try ListPage(of: all, request) { "\(String(newestFirst: $0.startedAt))-\($0.sid)" }
            .response("recordings") { $0 }
    }

    func showRecording(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        .json(try recording(request))
    }

    /// Ends a running recording; deletes one that has ended, with its files. The query's `state` says which of these is meant.
    func endRecording(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let summary = try recording(request)
        let isRunning = summary.state == .recording
        switch request.query["state"] {
        case nil: break
        case "recording":
            guard isRunning else { throw Problem(409, "conflict", "The recording has ended already.") }
        case "ended":
            guard !isRunning else { throw Problem(409, "conflict", "The recording goes on.") }
        default: throw Problem(400, "invalid_request", "The query's state must be recording or ended.")
        }
        if isRunning {
            try await asking { () async throws(RoomError) in
                try await context.rooms.stopRecording(summary.sid, in: summary.room)
            }
        } else {
            let isDeleted = try await onDisk { () async throws(FileRecorder.DiskIsBusy) in
                try await recorder?.delete(summary.sid) ?? false
            }
            guard isDeleted else { throw Self.noSuchRecording }
        }
        return HTTPResponse(status: 204)
    }

    /// A file of a recording, or a part of it (RFC 9110 section 14), for clients that may read the recording or have a link to the file.
    func readRecording(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let place: RecordingLink
        if let text = request.query["link"] {
            place = try RecordingLink(text, context.gate)
            // A link is passed on to others: their downloads must not use up the calls of the API key.
            try access.limitCalls(of: "links of \(place.issuer)")
            guard try request.parameter("recording") == place.recording else { throw RecordingLink.wrong }
        } else {
            let (summary, claims) = try permitted(request)
            place = try RecordingLink(to: request.query["name"], of: summary, by: claims)
        }
        let file = try await onDisk { () async throws(FileRecorder.DiskIsBusy) in
            try await recorder?.file(place.file, of: place.recording)
        }
        guard let recorder, let file else { throw RecordingLink.noSuchFile }
        return try await RecordingDownload(file, name: place.file, of: recorder).response(to: request)
    }

    /// A link to one file, for players and downloads that cannot send a token.
    func createRecordingLink(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let (summary, claims) = try permitted(request)
        let wanted = try body(RecordingLinkRequest.self, of: request)
        let link = try RecordingLink(to: wanted.file, of: summary, by: claims)
        let seconds = wanted.seconds ?? RecordingLinkRequest.standardSeconds
        return .json(try link.signed(by: context.gate, seconds: seconds), status: 201)
    }

    private func recording(_ request: HTTPRequest) throws(Problem) -> RecordingSummary {
        try permitted(request).summary
    }

    /// The recording in the path, if the token may read it.
    private func permitted(
        _ request: HTTPRequest
    ) throws(Problem) -> (summary: RecordingSummary, claims: AccessClaims) {
        let claims = try authorize(request) { $0.roomAdmin || $0.recorder }
        guard let summary = recorder?[try request.parameter("recording")], Self.covers(claims.video, summary.room)
        else { throw Self.noSuchRecording }
        return (summary, claims)
    }

    private func recordedRoom(_ request: HTTPRequest) throws(Problem) -> String {
        let room = try request.parameter("room")
        try authorize(request, room: room) { $0.roomAdmin || $0.recorder }
        return room
    }

    private static let noSuchRecording = Problem(404, "recording_not_found", "There is no such recording.")
}
