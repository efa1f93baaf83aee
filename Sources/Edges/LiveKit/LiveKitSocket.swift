import HTTPServing

/// What a session needs of a WebSocket; tests replace it with a script.
protocol LiveKitSocket: Sendable {
    /// What the client sends, in order; ends when the socket closes.
    var messages: AsyncStream<WebSocketMessage> { get }
    /// Queues a binary message; false if the socket accepts no more.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool
    /// Sends what is queued, then a close frame.
    func close(code: UInt16, reason: String)
}

extension WebSocketConnection: LiveKitSocket {}

extension LiveKitSocket {
    func send(_ signal: ServerSignal) { send(signal.frame) }
}
