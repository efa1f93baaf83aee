import CSoup
import Synchronization

/// One open WebSocket of text messages.
final class WebSocketClient: Sendable {
    /// What the server sends, until the socket closes.
    let messages: AsyncStream<String>
    private let continuation: AsyncStream<String>.Continuation
    private let client: SoupClient
    // Touched on the client's thread only.
    nonisolated(unsafe) private let connection: OpaquePointer
    private let wasClosed = Atomic<Bool>(false)

    var isClosed: Bool { wasClosed.load(ordering: .relaxed) }

    /// Takes over an open connection; on the client's thread.
    init(_ connection: OpaquePointer, _ client: SoupClient) {
        self.connection = connection
        self.client = client
        (messages, continuation) = AsyncStream.makeStream(of: String.self)
        soup_websocket_connection_set_max_incoming_payload_size(connection, 4 << 20)
        let context = Unmanaged.passRetained(self).toOpaque()
        connect("message", unsafeBitCast(receiveMessage, to: GCallback.self), context)
        connect("closed", unsafeBitCast(receiveClose, to: GCallback.self), context)
    }

    private func connect(_ signal: String, _ callback: @escaping GCallback, _ context: UnsafeMutableRawPointer) {
        g_signal_connect_data(
            UnsafeMutableRawPointer(connection), signal, callback, context, nil, GConnectFlags(rawValue: 0))
    }

    func send(_ text: String) { client.perform { _ in self.sendNow(text) } }

    /// Sends the same to many in one hop to their thread.
    static func send(_ text: String, to sockets: [WebSocketClient]) {
        sockets.first?.client.perform { _ in for socket in sockets { socket.sendNow(text) } }
    }

    private func sendNow(_ text: String) {
        guard soup_websocket_connection_get_state(connection) == SOUP_WEBSOCKET_STATE_OPEN else { return }
        soup_websocket_connection_send_text(connection, text)
    }

    func close() {
        client.perform { _ in
            guard soup_websocket_connection_get_state(self.connection) == SOUP_WEBSOCKET_STATE_OPEN else { return }
            soup_websocket_connection_close(self.connection, 1_000, nil)
        }
    }

    fileprivate func receive(_ bytes: OpaquePointer) {
        var count: gsize = 0
        let data = g_bytes_get_data(bytes, &count)
        continuation.yield(String(decoding: UnsafeRawBufferPointer(start: data, count: Int(count)), as: UTF8.self))
    }

    fileprivate func finish() {
        wasClosed.store(true, ordering: .relaxed)
        continuation.finish()
    }
}

private let receiveMessage: @convention(c) (OpaquePointer?, gint, OpaquePointer?, UnsafeMutableRawPointer?) -> Void = {
    _, _, bytes, context in
    guard let context, let bytes else { return }
    Unmanaged<WebSocketClient>.fromOpaque(context).takeUnretainedValue().receive(bytes)
}

private let receiveClose: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Void = { _, context in
    guard let context else { return }
    Unmanaged<WebSocketClient>.fromOpaque(context).takeRetainedValue().finish()
}
