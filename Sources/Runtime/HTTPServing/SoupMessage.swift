import CSoup

/// Reads and writes libsoup's server message. Belongs to the loop's thread.
///
/// Kept as a number, because pointers may not be carried into the actor; whoever holds one sees to it that the message lives.
struct SoupMessage {
    /// Names the message while it lives.
    let key: UInt

    init(_ pointer: OpaquePointer?) { key = UInt(bitPattern: pointer) }

    var pointer: OpaquePointer? { OpaquePointer(bitPattern: key) }

    var method: String { soup_server_message_get_method(pointer).map { String(cString: $0) } ?? "" }

    /// A status other than 0 means that libsoup has already refused the request.
    var status: UInt32 { soup_server_message_get_status(pointer) }

    /// Path and query as on the wire.
    var target: String {
        guard let uri = soup_server_message_get_uri(pointer) else { return "" }
        let path = g_uri_get_path(uri).map { String(cString: $0) } ?? ""
        let query = g_uri_get_query(uri).map { "?" + String(cString: $0) } ?? ""
        return (path.isEmpty ? "/" : path) + query
    }

    /// The request's header fields in order.
    var headers: HTTPHeaders {
        var headers = HTTPHeaders()
        var iterator = SoupMessageHeadersIter()
        soup_message_headers_iter_init(&iterator, soup_server_message_get_request_headers(pointer))
        var name: UnsafePointer<CChar>?
        var value: UnsafePointer<CChar>?
        while soup_message_headers_iter_next(&iterator, &name, &value) != 0 {
            guard let name, let value else { continue }
            headers.add(String(cString: name), String(cString: value))
        }
        return headers
    }

    /// Bytes announced by Content-Length; 0 without one.
    var announcedLength: Int64 {
        Int64(soup_message_headers_get_content_length(soup_server_message_get_request_headers(pointer)))
    }

    /// The peer's address in text form; IPv4 without the mapped prefix. Empty when unknown.
    var remoteAddress: String {
        guard let address = csoup_inet_address(soup_server_message_get_remote_address(pointer)),
            let text = g_inet_address_to_string(address)
        else { return "" }
        defer { g_free(text) }
        let host = String(cString: text)
        return host.hasPrefix("::ffff:") ? String(host.dropFirst(7)) : host
    }

    /// The connection's socket; nil once it is closed.
    var socket: UnsafeMutablePointer<GSocket>? { soup_server_message_get_socket(pointer) }

    /// Keeps the body out of libsoup's own buffer: the exchange collects it under its limit.
    func doNotAccumulate() { soup_message_body_set_accumulate(soup_server_message_get_request_body(pointer), 0) }

    /// Puts a response into the message; it leaves when the message runs on, and the connection closes behind it: libsoup
    /// before 3.4 would never notice that the client of a kept connection is gone.
    func write(_ response: HTTPResponse) {
        let status = (200...599).contains(response.status) ? response.status : 500
        soup_server_message_set_status(pointer, guint(status), nil)
        let headers = soup_server_message_get_response_headers(pointer)
        for field in response.headers.fields where Self.mayWrite(field) {
            soup_message_headers_append(headers, field.name, field.value)
        }
        soup_message_headers_replace(headers, "Connection", "close")
        soup_message_headers_set_content_length(headers, goffset(response.body.count))
        guard !response.body.isEmpty else { return }
        let body = soup_server_message_get_response_body(pointer)
        response.body.withUnsafeBytes { bytes in
            soup_message_body_append(
                body, SOUP_MEMORY_COPY, bytes.baseAddress, gsize(bytes.count))
        }
    }

    /// A field whose name and value are single lines and which is not the server's own business.
    private static func mayWrite(_ field: HTTPHeaders.Field) -> Bool {
        let own = ["content-length", "transfer-encoding", "connection", "date"]
        guard !field.name.isEmpty, !own.contains(field.name.lowercased()) else { return false }
        let isToken = field.name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: ":") }
        return isToken && !field.value.utf8.contains { $0 == 0 || $0 == 0x0a || $0 == 0x0d }
    }
}
