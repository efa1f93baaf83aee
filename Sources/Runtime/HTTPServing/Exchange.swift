import CSoup
import Primitives

/// One request on its way through the server. Belongs to the loop's thread.
final class Exchange {
    /// Where it stands.
    enum Phase {
        /// The body is coming in, up to the limit.
        case reading
        /// It will be answered with this once the client has stopped sending; what comes in is thrown away.
        case refused(HTTPRefusal)
        /// A handler works on it; the message is paused.
        case waiting(Task<Void, Never>)
        /// The handshake of a WebSocket is being written.
        case upgrading(WebSocketUpgrade)
        /// The response is being written.
        case answered
    }

    /// Names it in calls that come back from other threads; pointers are used again by the allocator.
    let id: UInt64
    let message: SoupMessage
    let head: HTTPRequestHead
    var body: [UInt8] = []
    /// Bytes of the body that were thrown away.
    var discarded = 0
    var phase = Phase.reading
    /// Gives up reading, then waiting.
    var timer: GLibSource?

    init(id: UInt64, message: SoupMessage, head: HTTPRequestHead) {
        self.id = id
        self.message = message
        self.head = head
        g_object_ref(UnsafeMutableRawPointer(bitPattern: message.key))
    }

    deinit { g_object_unref(UnsafeMutableRawPointer(bitPattern: message.key)) }
}

/// What a request says before its body.
struct HTTPRequestHead {
    let method: HTTPMethod
    let target: String
    let headers: HTTPHeaders
    let remoteAddress: String
    let scheme: String
    let authority: String

    /// Reads a message; what a proxy says counts only where it is trusted.
    init(_ message: SoupMessage, isSecure: Bool, trustsForwardedFields: Bool) {
        method = HTTPMethod(rawValue: message.method)
        target = message.target
        headers = message.headers
        // The last entry is the one that the proxy in front wrote; those before it are the client's own words.
        let forwarded = { [headers] (name: String) -> String? in
            guard trustsForwardedFields, let value = headers.values(name).last else { return nil }
            let last = value.split(separator: ",").last.map { trimmed(String($0)) }
            return last.flatMap { $0.isEmpty ? nil : $0 }
        }
        remoteAddress = forwarded("X-Forwarded-For") ?? message.remoteAddress
        scheme = forwarded("X-Forwarded-Proto")?.lowercased() == "https" || isSecure ? "https" : "http"
        authority = forwarded("X-Forwarded-Host") ?? headers["Host"] ?? ""
    }

    /// Whether the client is on this machine.
    var isLoopback: Bool { remoteAddress.hasPrefix("127.") || remoteAddress == "::1" }

    /// Bytes of all field lines.
    var headerBytes: Int { headers.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 } }

    /// Whether the client asks for a WebSocket (RFC 6455 section 4.1).
    var asksForWebSocket: Bool {
        method == .get && headers.values("Upgrade").contains { $0.lowercased().contains("websocket") }
    }

    /// The whole request; nil when its target is broken.
    func request(body: [UInt8]) -> HTTPRequest? {
        HTTPRequest(
            method: method, target: target, headers: headers, body: body, remoteAddress: remoteAddress,
            isLoopback: isLoopback, scheme: scheme, authority: authority)
    }
}

/// Text without spaces and tabs at its ends.
func trimmed(_ text: String) -> String {
    let isBlank = { (character: Character) in character == " " || character == "\t" }
    return String(text.drop(while: isBlank).reversed().drop(while: isBlank).reversed())
}
