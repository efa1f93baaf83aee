import EdgeSupport
import HTTPServing
import RoomService

/// What a feed of events needs of a WebSocket; tests replace it with a script.
protocol EventSocket: Sendable {
    /// What the client sends; ends when the socket closes.
    var messages: AsyncStream<WebSocketMessage> { get }
    /// Sends a message and waits while the client is behind; false when the socket has closed.
    func sendAndDrain(_ text: String) async -> Bool
    /// Sends what is queued, then a close frame. The first call wins.
    func close(code: UInt16, reason: String)
}

extension WebSocketConnection: EventSocket {}

/// Events to one WebSocket: a text message for each, the JSON that server-sent events have as data.
///
/// A client that does not read delays the feed. If more events wait than the feed's bound, the feed ends, and the socket is closed with 1013: the client
/// continues from the id of the last event that it has, as after a lost connection. If the reader's token is no longer valid, the socket is closed with 1008.
enum EventSocketFeed {
    /// The subprotocol's name.
    static let subprotocol = "martlet.events.v1"
    /// The first message to a client if events after its cursor are no longer kept.
    static let missed = #"{"type":"eventsMissed"}"#

    /// Sends until the feed or the socket ends. `isPermitted`: whether the client's token is still valid.
    static func run(
        _ feed: EventFeed, on socket: some EventSocket, isPermitted: @escaping @Sendable () -> Bool = { true }
    ) async {
        let sending = Task {
            if feed.missesEvents { guard await socket.sendAndDrain(missed) else { return } }
            for await entry in feed.events {
                guard await socket.sendAndDrain(JSONCoding.encodeText(EventModel(entry))) else { return }
            }
            if isPermitted() {
                socket.close(code: 1013, reason: "connect again with the id of the last event as `after`")
            } else {
                socket.close(code: 1008, reason: "the access token has expired or was revoked; connect with another")
            }
        }
        for await _ in socket.messages {
            socket.close(code: 1003, reason: "events only go to the client")
            break
        }
        sending.cancel()
        await sending.value
    }
}
