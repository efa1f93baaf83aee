import HTTPServing

@testable import ControlAPI

/// A WebSocket whose client a test plays.
final class ScriptedEventSocket: EventSocket {
    let messages: AsyncStream<WebSocketMessage>
    /// What was sent to the client.
    let texts: AsyncStream<String>
    /// The codes with which the server closed it.
    let closes: AsyncStream<UInt16>
    private let incoming: AsyncStream<WebSocketMessage>.Continuation
    private let outgoing: AsyncStream<String>.Continuation
    private let closing: AsyncStream<UInt16>.Continuation

    init() {
        (messages, incoming) = AsyncStream.makeStream()
        (texts, outgoing) = AsyncStream.makeStream()
        (closes, closing) = AsyncStream.makeStream()
    }

    func receive(_ text: String) { incoming.yield(.text(text)) }
    func end() { incoming.finish() }

    func sendAndDrain(_ text: String) async -> Bool {
        outgoing.yield(text)
        return true
    }

    func close(code: UInt16, reason: String) { closing.yield(code) }
}
