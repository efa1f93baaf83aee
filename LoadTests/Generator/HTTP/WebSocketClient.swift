import CSoup
import Synchronization

/// One open WebSocket.
final class WebSocketClient: Sendable {
    /// What is sent.
    enum Frame: Sendable {
        case text(String)
        case binary([UInt8])
    }

    /// What the server sends, text or not, until the socket closes.
    let messages: AsyncStream<[UInt8]>
    private let continuation: AsyncStream<[UInt8]>.Continuation
    private let client: SoupClient
    // Used only on the client's thread.
    nonisolated(unsafe) private let connection: OpaquePointer
    private let wasClosed = Atomic<Bool>(false)

    /// The address of a server with `ws` or `wss`.
    static func address(_ base: String) -> String {
        base.replacing("http://", with: "ws://").replacing("https://", with: "wss://")
    }

    var isClosed: Bool { wasClosed.load(ordering: .relaxed) }

    /// Takes over an open connection; called on the client's thread.
    init(_ connection: OpaquePointer, _ client: SoupClient) {
        self.connection = connection
        self.client = client
        (messages, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        soup_websocket_connection_set_max_incoming_payload_size(connection, 4 << 20)
        let context = Unmanaged.passRetained(self).toOpaque()
        connect("message", unsafeBitCast(receiveMessage, to: GCallback.self), context)
        connect("closed", unsafeBitCast(receiveClose, to: GCallback.self), context)
    }

    private func connect(_ signal: String, _ callback: @escaping GCallback, _ context: UnsafeMutableRawPointer) {
        g_signal_connect_data(
            UnsafeMutableRawPointer(connection), signal, callback, context, nil, GConnectFlags(rawValue: 0))
    }

    func send(_ frame: Frame) { client.perform { _ in self.sendNow(frame) } }

    /// Sends the same to many in one hop to their thread.
    static func send(_ frame: Frame, to sockets: [WebSocketClient]) {
        sockets.first?.client.perform { _ in for socket in sockets { socket.sendNow(frame) } }
    }

    private func sendNow(_ frame: Frame) {
        guard soup_websocket_connection_get_state(connection) == SOUP_WEBSOCKET_STATE_OPEN else { return }
        switch frame {
        case .text(let text): soup_websocket_connection_send_text(connection, text)
        case .binary(let bytes): soup_websocket_connection_send_binary(connection, bytes, gsize(bytes.count))
        }
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
        continuation.yield([UInt8](UnsafeRawBufferPointer(start: data, count: Int(count))))
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
