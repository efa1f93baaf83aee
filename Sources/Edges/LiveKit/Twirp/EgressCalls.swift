import AccessTokens
import CLiveKitProtocol
import EdgeSupport
import HTTPServing
import MediaControl
import Recorder
import RoomService
import Rooms

/// One call of `livekit.Egress`, if it requests recordings: of a track or of a participant, as they are sent, into files of this server.
struct EgressCalls: Sendable {
    let context: EdgeContext
    let recorder: FileRecorder
    let claims: AccessClaims
    let request: HTTPRequest

    private var body: TwirpBody { TwirpBody(request: request) }

    func perform(_ method: String) async throws(TwirpError) -> HTTPResponse {
        switch method {
        case "StartTrackEgress": try await startTrack()
        case "StartParticipantEgress": try await startParticipant()
        case "ListEgress": try list()
        case "StopEgress": try await stop()
        case "StartRoomCompositeEgress", "StartTrackCompositeEgress", "StartWebEgress", "StartEgress", "UpdateLayout",
            "UpdateStream":
            throw TwirpError(
                .unimplemented, "\(method) is not available on this server: it records tracks as they are sent")
        default: throw TwirpError(.badRoute, "livekit.Egress has no method \(method)")
        }
    }

    // MARK: Who may

    /// A missing grant is "unauthenticated" in LiveKit's API.
    private static func check(_ permits: Bool) throws(TwirpError) {
        guard permits else { throw TwirpError(.unauthenticated, "permissions denied: the token lacks the grant") }
    }

    private var mayRecord: Bool { claims.video.roomRecord || claims.video.roomAdmin || claims.video.recorder }

    private func mayRecord(in room: String) -> Bool {
        let granted = claims.video.room ?? ""
        return mayRecord && (granted.isEmpty || granted == room)
    }

    // MARK: Starting

    private func startTrack() async throws(TwirpError) -> HTTPResponse {
        let wanted = try body.read(livekit__track_egress_request__init, livekit__track_egress_request__unpack) {
            RequestedTrack(
                room: String($0.room_name), track: String($0.track_id),
                isStreamed: $0.output_case == LIVEKIT__TRACK_EGRESS_REQUEST__OUTPUT_WEBSOCKET_URL,
                isUploaded: $0.output_case == LIVEKIT__TRACK_EGRESS_REQUEST__OUTPUT_FILE
                    && $0.file.pointee.output_case != LIVEKIT__DIRECT_FILE_OUTPUT__OUTPUT__NOT_SET,
                hasWebhooks: $0.n_webhooks > 0,
                fileName: $0.output_case == LIVEKIT__TRACK_EGRESS_REQUEST__OUTPUT_FILE
                    ? EgressFileName.template($0.file.pointee.filepath) : nil)
        }
        try Self.check(mayRecord(in: wanted.room))
        guard !wanted.track.isEmpty else { throw TwirpError(.invalidArgument, "track_id is missing") }
        if wanted.isStreamed { throw Self.unavailable("a track sent to a WebSocket") }
        if wanted.isUploaded { throw Self.unavailable("an upload") }
        if wanted.hasWebhooks { throw Self.unavailable("a webhook of one egress") }
        var options = RecordingOptions()
        options.files = .tracks
        options.fileName = wanted.fileName
        return try await start(RecordingScope(track: wanted.track), options, in: wanted.room)
    }

    private func startParticipant() async throws(TwirpError) -> HTTPResponse {
        let wanted = try body.read(
            livekit__participant_egress_request__init, livekit__participant_egress_request__unpack
        ) { RequestedParticipant($0) }
        try Self.check(mayRecord(in: wanted.room))
        guard !wanted.identity.isEmpty else { throw TwirpError(.invalidArgument, "identity is missing") }
        if let refused = wanted.refused { throw Self.unavailable(refused) }
        let sources: Set<TrackSource> = wanted.isScreen ? [.screen, .screenAudio] : [.microphone, .camera]
        var options = RecordingOptions()
        // LiveKit's server, too, makes one file of all that a participant sends.
        options.files = .participant
        options.fileName = wanted.fileName
        return try await start(
            RecordingScope(participant: wanted.identity, sources: sources), options, in: wanted.room,
            of: wanted.identity)
    }

    private func start(
        _ scope: RecordingScope, _ options: RecordingOptions, in room: String, of identity: String? = nil
    ) async throws(TwirpError) -> HTTPResponse {
        let info: RecordingInfo
        do throws(RoomError) {
            info = try await context.rooms.startRecording(scope, options: options, in: room)
        } catch {
            throw TwirpError(error)
        }
        guard let summary = recorder[info.sid] else { throw Self.noSuchEgress }
        return reply(EgressModel(summary, identity: identity))
    }

    private static func unavailable(_ what: String) -> TwirpError {
        TwirpError(.unimplemented, "\(what) is not available on this server: it records into files of its own")
    }

    // MARK: Listing and stopping

    private func list() throws(TwirpError) -> HTTPResponse {
        let (room, egress, isActive) = try body.read(
            livekit__list_egress_request__init, livekit__list_egress_request__unpack
        ) { (String($0.room_name), String($0.egress_id), $0.active != 0) }
        try Self.check(mayRecord)
        let found = recorder.recordings.filter { summary in
            mayRecord(in: summary.room) && (room.isEmpty || summary.room == room)
                && (egress.isEmpty || EgressModel.id(of: summary) == egress)
        }.map { EgressModel($0) }
        let arena = MessageArena()
        let items = found.filter { !isActive || $0.isActive }.map { arena.egress($0) }
        return body.reply(
            arena,
            arena.make(livekit__list_egress_response__init) { message in
                message.n_items = items.count
                message.items = arena.list(items)
            })
    }

    private func stop() async throws(TwirpError) -> HTTPResponse {
        let egress = try body.read(livekit__stop_egress_request__init, livekit__stop_egress_request__unpack) {
            String($0.egress_id)
        }
        guard let summary = EgressModel.recording(of: egress).flatMap({ recorder[$0] }), mayRecord(in: summary.room)
        else {
            throw Self.noSuchEgress
        }
        guard summary.state == .recording else {
            throw TwirpError(.failedPrecondition, "the egress has ended and cannot be stopped")
        }
        do throws(RoomError) {
            try await context.rooms.stopRecording(summary.sid, in: summary.room)
        } catch {
            throw TwirpError(error)
        }
        return reply(EgressModel(recorder[summary.sid] ?? summary, isEnding: true))
    }

    private func reply(_ model: EgressModel) -> HTTPResponse {
        let arena = MessageArena()
        return body.reply(arena, arena.egress(model))
    }

    private static let noSuchEgress = TwirpError(.notFound, "there is no such egress")
}

/// The parameters of a call to record a track.
private struct RequestedTrack {
    var room: String
    var track: String
    var isStreamed: Bool
    var isUploaded: Bool
    var hasWebhooks: Bool
    var fileName: String?
}

/// The parameters of a call to record a participant.
private struct RequestedParticipant {
    let room: String
    let identity: String
    let isScreen: Bool
    /// The template of the files' names; nil: the server's.
    let fileName: String?
    /// What this server does not support of the request; nil: it supports all of it.
    let refused: String?

    init(_ message: Livekit__ParticipantEgressRequest) {
        room = String(message.room_name)
        identity = String(message.identity)
        isScreen = message.screen_share != 0
        fileName =
            message.n_file_outputs > 0
            ? message.file_outputs[0].flatMap { EgressFileName.template($0.pointee.filepath) } : nil
        refused = Self.refused(message)
    }

    private static func refused(_ message: Livekit__ParticipantEgressRequest) -> String? {
        if message.n_stream_outputs > 0 { return "a stream (RTMP, SRT)" }
        if message.n_segment_outputs > 0 { return "a playlist of segments (HLS)" }
        if message.n_image_outputs > 0 { return "an output of images" }
        if message.n_webhooks > 0 { return "a webhook of one egress" }
        switch message.options_case {
        case LIVEKIT__PARTICIPANT_EGRESS_REQUEST__OPTIONS_ADVANCED: return "an encoding of its own"
        case LIVEKIT__PARTICIPANT_EGRESS_REQUEST__OPTIONS_PRESET
        where message.preset != LIVEKIT__ENCODING_OPTIONS_PRESET__PASSTHROUGH:
            return "an encoding of its own"
        default: break
        }
        for index in 0..<message.n_file_outputs {
            guard let file = message.file_outputs[index]?.pointee else { continue }
            if file.output_case != LIVEKIT__ENCODED_FILE_OUTPUT__OUTPUT__NOT_SET { return "an upload" }
            if file.file_type != LIVEKIT__ENCODED_FILE_TYPE__DEFAULT_FILETYPE,
                file.file_type != LIVEKIT__ENCODED_FILE_TYPE__MP4
            {
                return "a file other than MP4"
            }
        }
        return nil
    }
}
