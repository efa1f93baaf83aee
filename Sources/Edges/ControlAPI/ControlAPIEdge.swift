public import EdgeSupport
public import HTTPServing

/// The operators' API: JSON under `/v1`, described by `/openapi.json`.
public struct ControlAPIEdge: Sendable {
    let context: EdgeContext
    let node: @Sendable () async -> NodeReport

    /// An API over `context`; `node` reports on the process.
    public init(context: EdgeContext, node: @escaping @Sendable () async -> NodeReport) {
        self.context = context
        self.node = node
    }

    /// One operation of the API.
    struct Operation: Sendable {
        var method: HTTPMethod
        var pattern: String
        var handler: ThrowingHandler
    }

    /// Every operation; the test holds this list and `openapi.json` to each other.
    var operations: [Operation] {
        let room = "/v1/rooms/{room}"
        let participant = "\(room)/participants/{participant}"
        let track = "\(room)/tracks/{track}"
        return [
            get("/v1/node", showNode),
            get("/v1/rooms", listRooms),
            Operation(method: .post, pattern: "/v1/rooms") { (request) async throws(Problem) in
                try await createRoom(request)
            },
            get(room, showRoom),
            Operation(method: .delete, pattern: room) { (request) async throws(Problem) in
                try await deleteRoom(request)
            },
            get("\(room)/stats", showRoomStatistics),
            get("\(room)/participants", listParticipants),
            get(participant, showParticipant),
            Operation(method: .delete, pattern: participant) { (request) async throws(Problem) in
                try await removeParticipant(request)
            },
            get("\(participant)/stats", showParticipantStatistics),
            get("\(participant)/decisions", listDecisions),
            get("\(room)/tracks", listTracks),
            get(track, showTrack),
            get("\(track)/stats", showTrackStatistics),
            Operation(method: .post, pattern: "\(track)/mute") { (request) async throws(Problem) in
                try await muteTrack(request)
            },
            get("\(room)/subscriptions", listSubscriptions),
        ]
    }

    private func get(
        _ pattern: String, _ handler: @escaping @Sendable (HTTPRequest) async throws(Problem) -> HTTPResponse
    ) -> Operation {
        Operation(method: .get, pattern: pattern, handler: handler)
    }

    /// Adds all routes.
    public func register(on router: inout Router) {
        for operation in operations {
            router.route(
                operation.method, operation.pattern, admission: context.gate.admit, operation.handler)
        }
        router.on(.get, "/openapi.json") { _ in
            HTTPResponse(
                status: 200, headers: ["Content-Type": JSONCoding.contentType, "Cache-Control": "no-cache"],
                body: PackageResources.openapi_json)
        }
    }
}
