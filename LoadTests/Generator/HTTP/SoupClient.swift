import CSoup
import Synchronization

/// An HTTP and WebSocket client: libsoup on its own GLib thread.
///
/// libsoup is used only on that thread; calls are sent to it, and continuations resume with the results.
final class SoupClient: Sendable {
    /// What a server answered.
    struct Reply: Sendable {
        var status: Int
        var location: String?
        var body: String
    }

    // GMainContext may be used from any thread; the session is used only on the loop's thread.
    nonisolated(unsafe) private let context: OpaquePointer
    nonisolated(unsafe) private let session: UnsafeMutablePointer<SoupSession>
    nonisolated(unsafe) private let loop: OpaquePointer

    /// Starts the thread. The client lives as long as the process.
    init() {
        context = g_main_context_new()
        loop = g_main_loop_new(context, 0)
        session = csoup_session_new(100_000, 100_000)
        let thread = g_thread_new(
            "http",
            { argument in
                guard let argument else { return nil }
                let client = Unmanaged<SoupClient>.fromOpaque(argument).takeRetainedValue()
                g_main_context_push_thread_default(client.context)
                g_main_loop_run(client.loop)
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        g_thread_unref(thread)
    }

    /// Runs `call` on the thread soon.
    func perform(_ call: @escaping @Sendable (SoupClient) -> Void) {
        let box = Unmanaged.passRetained(Call(client: self, body: call))
        g_main_context_invoke_full(
            context, G_PRIORITY_DEFAULT,
            { argument in
                guard let argument else { return 0 }
                let call = Unmanaged<Call>.fromOpaque(argument).takeUnretainedValue()
                call.body(call.client)
                return 0
            }, box.toOpaque(),
            { argument in
                if let argument { Unmanaged<Call>.fromOpaque(argument).release() }
            })
    }

    private final class Call: Sendable {
        let client: SoupClient
        let body: @Sendable (SoupClient) -> Void
        init(client: SoupClient, body: @escaping @Sendable (SoupClient) -> Void) {
            self.client = client
            self.body = body
        }
    }

    /// Sends one request and waits for the whole answer.
    func send(
        _ method: String, _ url: String, type: String? = nil, token: String? = nil, body: String = ""
    ) async throws(LoadError) -> Reply {
        let reply = await withCheckedContinuation { (continuation: CheckedContinuation<Reply?, Never>) in
            perform { client in
                guard let message = client.message(method, url, token) else {
                    return continuation.resume(returning: nil)
                }
                if let type {
                    let bytes = Array(body.utf8)
                    let copy = g_bytes_new(bytes, gsize(bytes.count))
                    soup_message_set_request_body_from_bytes(message, type, copy)
                    g_bytes_unref(copy)
                }
                let exchange = Exchange(message: message, continuation: continuation)
                soup_session_send_and_read_async(
                    client.session, message, G_PRIORITY_DEFAULT, nil, finishExchange,
                    Unmanaged.passRetained(exchange).toOpaque())
            }
        }
        guard let reply else { throw .signalling("\(method) \(url): no response") }
        return reply
    }

    private func message(_ method: String, _ url: String, _ token: String?) -> OpaquePointer? {
        guard let message = soup_message_new(method, url) else { return nil }
        if let token {
            soup_message_headers_append(
                soup_message_get_request_headers(message), "Authorization", "Bearer \(token)")
        }
        return message
    }

    /// Opens a WebSocket, with a subprotocol if the server has one.
    func webSocket(_ url: String, subprotocol: String? = nil, token: String?) async throws(LoadError) -> WebSocketClient
    {
        let result = await withCheckedContinuation { (continuation: CheckedContinuation<WebSocketClient?, Never>) in
            perform { client in
                guard let message = client.message("GET", url, token) else {
                    return continuation.resume(returning: nil)
                }
                let opening = Opening(client: client, continuation: continuation)
                (subprotocol ?? "").withCString { name in
                    let only = subprotocol == nil ? nil : UnsafeMutablePointer(mutating: name)
                    var names: [UnsafeMutablePointer<CChar>?] = [only, nil]
                    soup_session_websocket_connect_async(
                        client.session, message, nil, &names, G_PRIORITY_DEFAULT, nil, finishOpening,
                        Unmanaged.passRetained(opening).toOpaque())
                }
                g_object_unref(UnsafeMutableRawPointer(message))
            }
        }
        guard let result else { throw .signalling("\(url): the WebSocket was refused") }
        return result
    }
}

private final class Exchange {
    let message: OpaquePointer
    let continuation: CheckedContinuation<SoupClient.Reply?, Never>
    init(message: OpaquePointer, continuation: CheckedContinuation<SoupClient.Reply?, Never>) {
        self.message = message
        self.continuation = continuation
    }
}

private final class Opening {
    let client: SoupClient
    let continuation: CheckedContinuation<WebSocketClient?, Never>
    init(client: SoupClient, continuation: CheckedContinuation<WebSocketClient?, Never>) {
        self.client = client
        self.continuation = continuation
    }
}

private func finishExchange(
    _ source: UnsafeMutablePointer<GObject>?, _ result: OpaquePointer?, _ context: UnsafeMutableRawPointer?
) {
    guard let context, let source, let result else { return }
    let exchange = Unmanaged<Exchange>.fromOpaque(context).takeRetainedValue()
    defer { g_object_unref(UnsafeMutableRawPointer(exchange.message)) }
    let session = UnsafeMutableRawPointer(source).assumingMemoryBound(to: SoupSession.self)
    guard let bytes = soup_session_send_and_read_finish(session, result, nil) else {
        return exchange.continuation.resume(returning: nil)
    }
    var count: gsize = 0
    let data = g_bytes_get_data(bytes, &count)
    let body = String(decoding: UnsafeRawBufferPointer(start: data, count: Int(count)), as: UTF8.self)
    g_bytes_unref(bytes)
    let headers = soup_message_get_response_headers(exchange.message)
    let location = soup_message_headers_get_one(headers, "Location").map { String(cString: $0) }
    let status = Int(soup_message_get_status(exchange.message).rawValue)
    exchange.continuation.resume(returning: SoupClient.Reply(status: status, location: location, body: body))
}

private func finishOpening(
    _ source: UnsafeMutablePointer<GObject>?, _ result: OpaquePointer?, _ context: UnsafeMutableRawPointer?
) {
    guard let context, let source, let result else { return }
    let opening = Unmanaged<Opening>.fromOpaque(context).takeRetainedValue()
    let session = UnsafeMutableRawPointer(source).assumingMemoryBound(to: SoupSession.self)
    let connection = soup_session_websocket_connect_finish(session, result, nil)
    opening.continuation.resume(returning: connection.map { WebSocketClient($0, opening.client) })
}
