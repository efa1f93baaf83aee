internal import CEmbeddedFiles
public import EdgeSupport
public import HTTPServing
public import Player
public import Recorder
public import Rooms
public import SessionStore
public import Webhooks

/// The operators' API: JSON under `/v1`, described by `/openapi.json`.
public struct ControlAPIEdge: Sendable {
    let context: EdgeContext
    let webhooks: Webhooks
    let sessions: SessionStore
    let recorder: Recorder?
    let player: Player?
    let node: @Sendable () async -> NodeReport
    let drain: @Sendable (DrainNotice?) async -> Bool
    let limit: CallLimit

    /// An API over `context`, of which each API key may make `callsPerSecond` calls; `recorder` writes recordings and `player` plays files (nil: there are
    /// none), `node` reports on the process, `drain` begins a drain or (nil) ends it;
    /// false: the process ends, which nobody can undo.
    public init(
        context: EdgeContext, webhooks: Webhooks, sessions: SessionStore, recorder: Recorder? = nil,
        player: Player? = nil,
        callsPerSecond: Int = 1_000,
        node: @escaping @Sendable () async -> NodeReport,
        drain: @escaping @Sendable (DrainNotice?) async -> Bool = { _ in false }
    ) {
        limit = CallLimit(perSecond: callsPerSecond)
        self.context = context
        self.webhooks = webhooks
        self.sessions = sessions
        self.recorder = recorder
        self.player = player
        self.node = node
        self.drain = drain
    }

    /// One operation of the API.
    struct Operation: Sendable {
        var method: HTTPMethod
        var pattern: String
        var handler: ThrowingHandler
    }

    /// What clients need and no operator: it is on the public listener wherever the others are.
    var clientOperations: [Operation] {
        [get("/v1/ice-servers", listICEServers), operation(.post, "/v1/checks", createCheck)]
    }

    /// Every operation; the test holds this list and `openapi.json` to each other.
    var operations: [Operation] {
        let room = "/v1/rooms/{room}"
        let participant = "\(room)/participants/{participant}"
        let track = "\(room)/tracks/{track}"
        return [
            get("/v1/node", showNode),
            operation(.post, "/v1/node/drain", beginDrain),
            operation(.delete, "/v1/node/drain", endDrain),
            get("/v1/node/log-levels", showLogLevels),
            operation(.patch, "/v1/node/log-levels", patchLogLevels),
            get("/v1/rooms", listRooms),
            operation(.post, "/v1/rooms", createRoom),
            get(room, showRoom),
            operation(.put, room, ensureRoom),
            operation(.patch, room, patchRoom),
            operation(.delete, room, deleteRoom),
            get("\(room)/policy", showPolicy),
            operation(.put, "\(room)/policy", replacePolicy),
            operation(.patch, "\(room)/policy", patchPolicy),
            operation(.put, "\(room)/lock", lockRoom),
            operation(.delete, "\(room)/lock", unlockRoom),
            operation(.post, "\(room)/messages", sendMessage),
            get("\(room)/events", listRoomEvents),
            get("/v1/events", listAllEvents),
            get("\(room)/bans", listBans),
            operation(.delete, "\(room)/bans/{identity}", endBan),
            get("/v1/presets", listPresets),
            get("/v1/presets/{preset}", showPreset),
            operation(.put, "/v1/presets/{preset}", putPreset),
            operation(.delete, "/v1/presets/{preset}", deletePreset),
            get("/v1/revocations", listRevocations),
            operation(.put, "/v1/revocations/{kind}/{id}", revoke),
            operation(.delete, "/v1/revocations/{kind}/{id}", endRevocation),
            get("/v1/sessions", listSessions),
            get("/v1/sessions/{session}", showSession),
            get("\(participant)/history", listSamples),
            get("\(room)/recordings", listRoomRecordings),
            operation(.post, "\(room)/recordings", startRecording),
            get("/v1/recordings", listRecordings),
            get("/v1/recordings/{recording}", showRecording),
            operation(.delete, "/v1/recordings/{recording}", endRecording),
            get("/v1/recordings/{recording}/file", readRecording),
            operation(.post, "/v1/recordings/{recording}/links", createRecordingLink),
            get("/v1/webhooks", listWebhooks),
            get("/v1/webhooks/{webhook}", showWebhook),
            operation(.put, "/v1/webhooks/{webhook}", putWebhook),
            operation(.delete, "/v1/webhooks/{webhook}", deleteWebhook),
            get("\(room)/stats", showRoomStatistics),
            get("\(room)/participants", listParticipants),
            get(participant, showParticipant),
            operation(.patch, participant, patchParticipant),
            operation(.delete, participant, removeParticipant),
            operation(.post, "\(participant)/move", moveParticipant),
            operation(.put, "\(participant)/subscriptions", putSubscribeRules),
            operation(.delete, "\(participant)/subscriptions", deleteSubscribeRules),
            get("\(participant)/stats", showParticipantStatistics),
            get("\(participant)/decisions", listDecisions),
            get("\(room)/tracks", listTracks),
            get(track, showTrack),
            get("\(track)/stats", showTrackStatistics),
            operation(.post, "\(track)/mute", muteTrack),
            operation(.post, "\(track)/unmute-request", requestUnmute),
            get("\(room)/guests", listGuests),
            operation(.post, "\(room)/guests/{identity}", letGuestIn),
            operation(.delete, "\(room)/guests/{identity}", turnGuestAway),
            get("\(room)/subscriptions", listSubscriptions),
        ] + captures + playbacks + clientOperations
    }

    private var playbacks: [Operation] {
        let playback = "/v1/playbacks/{playback}"
        return [
            get("/v1/rooms/{room}/playbacks", listRoomPlaybacks),
            operation(.post, "/v1/rooms/{room}/playbacks", startPlayback),
            get(playback, showPlayback),
            operation(.patch, playback, patchPlayback),
            operation(.delete, playback, endPlayback),
        ]
    }

    private var captures: [Operation] {
        let captures = "/v1/rooms/{room}/participants/{participant}/captures"
        return [
            operation(.post, captures, startCapture),
            get(captures, listCaptures),
            get("\(captures)/{capture}", showCapture),
            operation(.delete, "\(captures)/{capture}", deleteCapture),
            get("\(captures)/{capture}/packets", showCapturedPackets),
        ]
    }

    private func get(
        _ pattern: String, _ handler: @escaping @Sendable (HTTPRequest) async throws(Problem) -> HTTPResponse
    ) -> Operation {
        operation(.get, pattern, handler)
    }

    private func operation(
        _ method: HTTPMethod, _ pattern: String,
        _ handler: @escaping @Sendable (HTTPRequest) async throws(Problem) -> HTTPResponse
    ) -> Operation {
        Operation(method: method, pattern: pattern, handler: handler)
    }

    /// Adds the routes that clients need, where the API is served elsewhere.
    public func registerForClients(on router: inout Router) { add(clientOperations, to: &router) }

    private func add(_ operations: [Operation], to router: inout Router) {
        for operation in operations {
            router.route(
                operation.method, operation.pattern, admission: context.gate.admit, operation.handler)
        }
    }

    /// Adds all routes.
    public func register(on router: inout Router) {
        add(operations, to: &router)
        let description = embedded_api_description()
        let content = Array(UnsafeBufferPointer(start: description.bytes, count: Int(description.byte_count)))
        router.on(.get, String(cString: description.path)) { _ in
            HTTPResponse(
                status: 200, headers: ["Content-Type": JSONCoding.contentType, "Cache-Control": "no-cache"],
                body: content)
        }
    }
}
