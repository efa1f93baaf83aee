import HTTPServing

/// What a session needs of a WebSocket; tests put a script in its place.
protocol LiveKitSocket: Sendable {
    /// What the client sends, in order; ends when the socket closes.
    var messages: AsyncStream<WebSocketMessage> { get }
    /// Queues a binary message; false when the socket takes no more.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool
    /// Sends what is queued, then a close frame.
    func close(code: UInt16, reason: String)
}

extension WebSocketConnection: LiveKitSocket {}

extension LiveKitSocket {
    func send(_ signal: ServerSignal) { send(signal.frame) }
}
