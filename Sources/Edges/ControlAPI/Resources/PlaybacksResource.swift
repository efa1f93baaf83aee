import AccessTokens
import EdgeSupport
import HTTPServing
import Player
import Recorder
import RoomService
import Rooms

/// Playbacks: files and recordings that become participants, started and ended by an operator or a moderator.
struct PlaybacksResource: Resource {
    let access: APIAccess
    private let player: FilePlayer?
    private let recorder: FileRecorder?

    init(access: APIAccess, player: FilePlayer?, recorder: FileRecorder?) {
        self.access = access
        self.player = player
        self.recorder = recorder
    }

    var operations: [Operation] {
        let playback = "/v1/playbacks/{playback}"
        return [
            .get("/v1/rooms/{room}/playbacks", listRoomPlaybacks),
            .post("/v1/rooms/{room}/playbacks", startPlayback),
            .get(playback, showPlayback),
            .patch(playback, patchPlayback),
            .delete(playback, endPlayback),
        ]
    }

    func startPlayback(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try request.parameter("room")
        let claims = try authorize(request, room: room) { $0.roomAdmin }
        let model = try body(PlaybackRequestModel.self, of: request)
        let source = try model.source()
        // Errors in the request are reported before what the server lacks.
        _ = try await asking { () async throws(RoomError) in try await context.rooms.rules(ofRoom: room) }
        guard let player else { throw Self.noPlayer }
        if case .recording(let sid, _) = source {
            // Its files may be played only by clients that may read the recording.
            guard let summary = recorder?[sid], Self.covers(claims.video, summary.room) else {
                throw Problem(404, "recording_not_found", "There is no such recording.")
            }
        }
        let info = try await asking { () async throws(RoomError) in
            let file = try await player.open(source, model.terms)
            do throws(RoomError) {
                let asked = PlaybackRequest(
                    identity: model.identity ?? "player", name: model.name ?? "",
                    isScreen: model.shownAs == .screen, formats: file.formats)
                return try await context.rooms.startPlayback(asked, of: file, in: room)
            } catch {
                player.close(file)
                throw error
            }
        }
        guard let summary = player[info.sid] else { throw Self.noSuchPlayback }
        var response = HTTPResponse.json(summary, status: 201)
        response.headers["Location"] = "/v1/playbacks/\(info.sid)"
        return response
    }

    func listRoomPlaybacks(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        try checkName(room)
        let all = (player?.playbacks ?? []).filter { $0.room == room }
        return try ListPage(of: all, request) { "\(String(newestFirst: $0.startedAt))-\($0.sid)" }
            .response("playbacks") { $0 }
    }

    func showPlayback(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        .json(try playback(request).summary)
    }

    /// Pauses, resumes, seeks, loops or stops looping; answers at once with the previous state, because the playback changes within milliseconds.
    func patchPlayback(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let (player, summary) = try playback(request)
        let edit = try patched(PlaybackEdit(summary), by: request)
        player.change(summary.sid, try edit.change(of: summary))
        return HTTPResponse(status: 204)
    }

    func endPlayback(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let summary = try playback(request).summary
        try await asking { () async throws(RoomError) in
            try await context.rooms.endPlayback(summary.sid, .stopped, room: summary.room)
        }
        return HTTPResponse(status: 204)
    }

    private func playback(_ request: HTTPRequest) throws(Problem) -> (player: FilePlayer, summary: PlaybackSummary) {
        let claims = try authorize(request) { $0.roomAdmin }
        guard let player, let summary = player[try request.parameter("playback")],
            Self.covers(claims.video, summary.room)
        else { throw Self.noSuchPlayback }
        return (player, summary)
    }

    private static let noPlayer = Problem(RoomError(.playbackDisabled, "the server plays no files"))
    private static let noSuchPlayback = Problem(404, "playback_not_found", "There is no such playback.")
}

/// What is to be played, and as which participant.
private struct PlaybackRequestModel: Decodable {
    /// Whether its tracks are shown as a camera or as a screen.
    enum ShownAs: String, Decodable { case camera, screen }

    var file: String?
    var recording: String?
    var identity: String?
    var name: String?
    var shownAs: ShownAs?
    /// Whether it starts paused, where it starts, and whether it loops.
    var terms = PlaybackChange()

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case file, recording, identity, name, shownAs, paused, positionMilliseconds, loop
    }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        file = try fields.text(.file, upTo: Bounds.path)
        recording = try fields.text(.recording, upTo: Bounds.name)
        identity = try fields.text(.identity, upTo: Bounds.name)
        name = try fields.text(.name, upTo: Bounds.name)
        shownAs = try fields.decodeIfPresent(ShownAs.self, forKey: .shownAs)
        terms.paused = try fields.decodeIfPresent(Bool.self, forKey: .paused)
        terms.positionMilliseconds = try fields.decodeIfPresent(Int64.self, forKey: .positionMilliseconds)
        terms.loop = try fields.decodeIfPresent(Bool.self, forKey: .loop)
    }

    func source() throws(Problem) -> PlaybackSource {
        try PlaybackEdit.check(position: terms.positionMilliseconds)
        if let recording { return .recording(recording, file: file) }
        guard let file, !file.isEmpty else {
            throw Problem(400, "invalid_request", "A playback needs a file or a recording.")
        }
        return .file(file)
    }
}

/// What can be changed of a playback.
private struct PlaybackEdit: Codable {
    var paused: Bool
    var positionMilliseconds: Int64
    var loop: Bool

    private enum CodingKeys: String, CodingKey, CaseIterable { case paused, positionMilliseconds, loop }

    /// A year: files are not longer.
    private static let longest: Int64 = 31_536_000_000

    init(_ summary: PlaybackSummary) {
        paused = summary.state == .paused
        positionMilliseconds = summary.positionMilliseconds
        loop = summary.loop
    }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        // A member that a patch removes (null) is reset to its value at the start of a playback.
        paused = try fields.decodeIfPresent(Bool.self, forKey: .paused) ?? false
        positionMilliseconds = try fields.decodeIfPresent(Int64.self, forKey: .positionMilliseconds) ?? 0
        loop = try fields.decodeIfPresent(Bool.self, forKey: .loop) ?? false
    }

    static func check(position: Int64?) throws(Problem) {
        guard (0...longest).contains(position ?? 0) else {
            throw Problem(400, "invalid_request", "positionMilliseconds must be from 0 to \(longest).")
        }
    }

    /// What differs from `summary`.
    func change(of summary: PlaybackSummary) throws(Problem) -> PlaybackChange {
        try Self.check(position: positionMilliseconds)
        let former = Self(summary)
        return PlaybackChange(
            paused: paused == former.paused ? nil : paused,
            positionMilliseconds: positionMilliseconds == former.positionMilliseconds ? nil : positionMilliseconds,
            loop: loop == former.loop ? nil : loop)
    }
}
