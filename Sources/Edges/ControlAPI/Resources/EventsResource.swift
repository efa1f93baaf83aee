import AccessTokens
import EdgeSupport
import HTTPServing
import RoomService
import Rooms

/// Events of rooms: past ones, and new ones as they happen.
struct EventsResource: Resource {
    let access: APIAccess

    var operations: [Operation] {
        [
            .get("/v1/rooms/{room}/events", listRoomEvents),
            .get("/v1/events", listAllEvents),
        ]
    }

    func listRoomEvents(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try await events(request, for: try oneRoom(request))
    }

    func listAllEvents(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try await events(request, for: try allRooms(request))
    }

    /// A reader, and the room whose events it reads; nil: those of all.
    private struct Reader: Sendable {
        var room: String?
        var claims: AccessClaims
    }

    /// The same events to WebSockets, for `HTTPServer.start`.
    var webSocketRoutes: [WebSocketRoute] {
        [
            webSocketRoute("/v1/rooms/{room}/events") { (request) throws(Problem) in try oneRoom(request) },
            webSocketRoute("/v1/events") { (request) throws(Problem) in try allRooms(request) },
        ]
    }

    private func webSocketRoute(
        _ pattern: String, _ reader: @escaping @Sendable (HTTPRequest) throws(Problem) -> Reader
    ) -> WebSocketRoute {
        let rooms = context.rooms
        return WebSocketRoute(pattern, protocols: [EventSocketFeed.subprotocol]) { request in
            do throws(Problem) {
                let reader = try reader(request)
                let (cursor, types) = (try request.eventCursor(), try request.eventTypes())
                // Before the client knows that its socket is open, so that it gets every event from then on.
                let feed = await rooms.follow(room: reader.room, types: types, after: cursor, bearer: reader.claims)
                return .accept { connection in
                    await EventSocketFeed.run(feed, on: connection) { rooms.isGood(reader.claims) }
                }
            } catch {
                return .refuse(error.response)
            }
        }
    }

    /// A reader of the room in the path, if its token may see that room's events.
    private func oneRoom(_ request: HTTPRequest) throws(Problem) -> Reader {
        let room = try request.parameter("room")
        let claims = try authorize(request, room: room) { $0.roomAdmin }
        // The room need not exist now, but its name must be a possible one.
        try checkName(room)
        return Reader(room: room, claims: claims)
    }

    /// A reader of all rooms, if its token may see the events of all.
    private func allRooms(_ request: HTTPRequest) throws(Problem) -> Reader {
        let claims = try authorize(request) { $0.roomAdmin }
        // A moderator of one room may not see the events of all.
        guard (claims.video.room ?? "").isEmpty else { throw Problem(AccessTokenError.notPermitted) }
        return Reader(room: nil, claims: claims)
    }

    /// Past events as JSON for a client that accepts only that; otherwise server-sent events, past and future.
    private func events(_ request: HTTPRequest, for reader: Reader) async throws(Problem) -> HTTPResponse {
        let (cursor, wanted) = (try request.eventCursor(), try request.eventTypes())
        let types = request.headers["Accept"]?.lowercased() ?? "*/*"
        guard types.contains("application/json"), !types.contains(ServerSentEvents.contentType) else {
            return ServerSentEvents.response(
                await context.rooms.follow(room: reader.room, types: wanted, after: cursor, bearer: reader.claims))
        }
        let limit = try request.number("limit", in: 1...1_000) ?? 100
        let page = await context.rooms.pastEvents(
            room: reader.room, types: wanted, after: cursor ?? .beginning, limit: limit)
        return .json(
            EventPageModel(
                events: page.events.map(EventModel.init), next: page.next.text, missesEvents: page.missesEvents))
    }
}

/// Some past events as JSON shows them.
struct EventPageModel: Encodable {
    var events: [EventModel]
    /// The `after` of the next request.
    var next: String
    /// Whether events before the first are no longer kept.
    var missesEvents: Bool
}

/// Events in the form of the HTML standard, section 9.2.
enum ServerSentEvents {
    static let contentType = "text/event-stream"
    /// How long a client waits before it connects again.
    private static let retryMilliseconds = 2_000

    static func response(_ feed: EventFeed) -> HTTPResponse {
        // With an id: otherwise a client that loses its connection before the first event would return without one, and miss events meanwhile.
        let beginning =
            "retry: \(retryMilliseconds)\nid: \(feed.start.text)\n"
            + (feed.missesEvents ? "event: eventsMissed\ndata: {}\n\n" : "\n")
        return HTTPResponse(
            // Some proxies buffer responses.
            headers: ["Content-Type": contentType, "Cache-Control": "no-store", "X-Accel-Buffering": "no"],
            stream: HTTPStream(Pieces(first: beginning, feed: feed), keepAlive: Array(":\n\n".utf8)))
    }

    private static func piece(_ entry: RoomLogEntry) -> [UInt8] {
        let model = EventModel(entry)
        return Array("id: \(model.id)\nevent: \(model.type)\ndata: \(JSONCoding.encodeText(model))\n\n".utf8)
    }

    /// The beginning, then one piece per event.
    private struct Pieces: AsyncSequence, Sendable {
        let first: String
        let feed: EventFeed

        struct AsyncIterator: AsyncIteratorProtocol {
            var first: String?
            var events: AsyncStream<RoomLogEntry>.Iterator

            mutating func next(isolation actor: isolated (any Actor)?) async -> [UInt8]? {
                if let first {
                    self.first = nil
                    return Array(first.utf8)
                }
                return await events.next(isolation: actor).map { ServerSentEvents.piece($0) }
            }
        }

        func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(first: first, events: feed.events.makeAsyncIterator())
        }
    }
}

extension HTTPRequest {
    /// Which types of events a reader wants: those that the query's `type` names, separated by commas; nil without it: all.
    fileprivate func eventTypes() throws(Problem) -> Set<RoomLogEventType>? {
        guard let text = query["type"] else { return nil }
        let words = text.split(separator: ",", omittingEmptySubsequences: false)
        let types = words.compactMap { RoomLogEventType(rawValue: String($0)) }
        guard types.count == words.count else {
            throw Problem(400, "invalid_request", "The query's type must be types of events, separated by commas.")
        }
        return Set(types)
    }

    /// The position from which a reader of events continues: `Last-Event-ID`, which a browser sends by itself, or else the query's `after`.
    fileprivate func eventCursor() throws(Problem) -> EventCursor? {
        guard let text = headers["Last-Event-ID"] ?? query["after"] else { return nil }
        guard let cursor = EventCursor(text: text) else {
            throw Problem(
                400, "invalid_request", "The cursor must be the id of an event, or 0 for all events that are kept.")
        }
        return cursor
    }
}
