/// The head of a request, parsed strictly (RFC 9112): everything that two implementations could interpret differently is refused, because a proxy
/// in front may have interpreted it the other way.
struct HTTPRequestHead: Sendable, Hashable {
    /// How to find the end of the body (RFC 9112 section 6).
    enum Body: Sendable, Hashable {
        case none
        case length(Int)
        case chunked
    }

    let method: HTTPMethod
    /// Path and query as on the wire.
    let target: String
    let headers: HTTPHeaders
    /// The Host field, or the host of an absolute target (section 3.2.2).
    let authority: String
    let body: Body
    /// Whether the client may send another request on the connection.
    let isPersistent: Bool
    /// Whether the client requests a WebSocket (RFC 6455 section 4.1).
    let asksForWebSocket: Bool
    /// Whether the client waits for "100 Continue" before it sends the body (RFC 9110 section 10.1.1).
    let expectsContinue: Bool

    /// Parses a head: complete lines, each ended by CRLF, without the empty one.
    init(lines bytes: ArraySlice<UInt8>) throws(HTTPRefusal) {
        var rest = bytes
        let line = Self.popLine(&rest)
        let parts = line.split(separator: UInt8(ascii: " "), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, parts[0].allSatisfy(Self.isToken) else {
            throw Self.malformed("The request line must be a method, a target and a version.")
        }
        // A fragment never leaves the client (RFC 9110 section 7.1).
        guard parts[1].allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "#") }), !parts[1].isEmpty else {
            throw Self.malformed("The target contains bytes that must be percent-encoded.")
        }
        let isOld = try Self.isOldVersion(parts[2])
        headers = try Self.fields(&rest)
        method = HTTPMethod(rawValue: String(decoding: parts[0], as: UTF8.self))
        try Self.checkSingle(headers)
        let host = try Self.host(headers, isOld: isOld)
        (target, authority) = try Self.originForm(String(decoding: parts[1], as: UTF8.self), host: host)
        body = try Self.body(headers, isOld: isOld)
        isPersistent = !isOld && !headers.list("Connection", contains: "close")
        // An HTTP/1.0 client cannot upgrade (RFC 9110 section 7.8).
        asksForWebSocket = !isOld && method == .get && headers.list("Upgrade", contains: "websocket")
        expectsContinue = try Self.expectsContinue(headers, isOld: isOld)
    }

    static func malformed(_ detail: String) -> HTTPRefusal {
        HTTPRefusal(status: 400, code: "malformed_request", detail: detail)
    }

    /// The bytes before the next CRLF; both are removed.
    private static func popLine(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let end = rest.firstIndex(of: UInt8(ascii: "\r")) ?? rest.endIndex
        defer { rest = rest[min(end + 2, rest.endIndex)...] }
        return rest[..<end]
    }

    private static func isOldVersion(_ bytes: ArraySlice<UInt8>) throws(HTTPRefusal) -> Bool {
        switch String(decoding: bytes, as: UTF8.self) {
        case "HTTP/1.1": return false
        case "HTTP/1.0": return true
        case let text where text.hasPrefix("HTTP/"):
            throw HTTPRefusal(status: 505, code: "unsupported_version", detail: "This server supports HTTP/1.1.")
        default: throw malformed("The request line must end with a version.")
        }
    }

    /// Browsers send 15 to 25, and proxies add a dozen.
    private static let maximumFields = 100

    /// Section 5: a name right before its colon, no folded lines, no control characters.
    private static func fields(_ rest: inout ArraySlice<UInt8>) throws(HTTPRefusal) -> HTTPHeaders {
        var headers = HTTPHeaders()
        while !rest.isEmpty {
            let line = popLine(&rest)
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
                line[..<colon].allSatisfy(isToken)
            else { throw malformed("A header field must be a name, a colon and a value on one line.") }
            let value = line[(colon + 1)...]
            guard value.allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 }) else {
                throw malformed("A header field contains a control character.")
            }
            guard headers.fields.count < maximumFields else {
                throw HTTPRefusal(
                    status: 431, code: "headers_too_large",
                    detail: "At most \(maximumFields) header fields are allowed.")
            }
            headers.add(
                String(decoding: line[..<colon], as: UTF8.self), String(decoding: trimmed(value), as: UTF8.self))
        }
        return headers
    }

    /// The fields of an incomplete or refused head, as far as complete lines of it arrived; invalid lines are skipped. They only decide how the refusal is
    /// written.
    static func readableFields(_ bytes: ArraySlice<UInt8>) -> HTTPHeaders {
        var headers = HTTPHeaders()
        let newline = UInt8(ascii: "\n")
        let lines = bytes[..<(bytes.lastIndex(of: newline) ?? bytes.startIndex)].split(separator: newline)
        for line in lines.dropFirst().prefix(maximumFields) {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            let value = line[(colon + 1)...].prefix { $0 != UInt8(ascii: "\r") }
            headers.add(
                String(decoding: line[..<colon], as: UTF8.self), String(decoding: trimmed(value), as: UTF8.self))
        }
        return headers
    }

    /// RFC 9110 section 5.6.2.
    static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        case 0x21, 0x23...0x27, 0x2a, 0x2b, 0x2d, 0x2e, 0x5e...0x60, 0x7c, 0x7e: true
        default: false
        }
    }

    /// Fields that are not lists: if there are two, one implementation uses the first and another the last (RFC 9110 section 5.3).
    private static func checkSingle(_ headers: HTTPHeaders) throws(HTTPRefusal) {
        let single = [
            "Host", "Content-Length", "Transfer-Encoding", "Authorization", "Content-Type", "Expect", "Origin",
            "Sec-WebSocket-Key", "Sec-WebSocket-Version",
        ]
        for name in single where headers.values(name).count > 1 {
            throw malformed("The header field \(name) must appear only once.")
        }
    }

    /// Section 3.2: HTTP/1.1 names its host, in a form that has only one interpretation.
    private static func host(_ headers: HTTPHeaders, isOld: Bool) throws(HTTPRefusal) -> String {
        guard let host = headers["Host"] else {
            guard isOld else { throw malformed("The header field Host is missing.") }
            return ""
        }
        guard host.isEmpty || isAuthority(host) else {
            throw malformed("The header field Host must be a host name with an optional port.")
        }
        return host
    }

    /// Whether a text is a host with an optional port, and nothing in which another parser could find more (RFC 3986 section 3.2).
    private static func isAuthority(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty, bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7f && !#"/?#@,\<>"{}|^`"#.utf8.contains($0) })
        else {
            return false
        }
        let end: Int
        if bytes[0] == UInt8(ascii: "[") {
            guard let bracket = bytes.firstIndex(of: UInt8(ascii: "]")) else { return false }
            end = bracket + 1
        } else {
            end = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        }
        let port = bytes[end...]
        return end > 0 && (port.isEmpty || port.first == UInt8(ascii: ":") && port.dropFirst().allSatisfy(isDigit))
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// The path and the authority of an absolute target ("http://host/path"), which replaces Host; any other target is unchanged.
    private static func originForm(
        _ target: String, host: String
    ) throws(HTTPRefusal) -> (target: String, authority: String) {
        for scheme in ["http://", "https://"] where target.lowercased().hasPrefix(scheme) {
            let rest = target.dropFirst(scheme.count)
            let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
            let (path, authority) = (String(rest[end...]), String(rest[..<end]))
            guard isAuthority(authority) else {
                throw malformed("The target's authority must be a host name with an optional port.")
            }
            return (path.hasPrefix("/") ? path : "/" + path, authority)
        }
        return (target, host)
    }

    /// Section 6: one length in digits, or only chunked.
    private static func body(_ headers: HTTPHeaders, isOld: Bool) throws(HTTPRefusal) -> Body {
        let length = headers["Content-Length"]
        if let coding = headers["Transfer-Encoding"] {
            guard length == nil, !isOld else {
                throw malformed("Transfer-Encoding is not allowed with Content-Length or HTTP/1.0.")
            }
            guard coding.lowercased() == "chunked" else {
                throw HTTPRefusal(
                    status: 501, code: "unsupported_transfer_coding",
                    detail: "The only supported transfer coding is chunked.")
            }
            return .chunked
        }
        guard let length else { return .none }
        guard !length.isEmpty, length.utf8.allSatisfy(isDigit) else {
            throw malformed("Content-Length must be one number in decimal digits.")
        }
        // A number that does not fit into an Int is a length that no limit allows.
        let count = Int(length) ?? .max
        return count == 0 ? .none : .length(count)
    }

    private static func expectsContinue(_ headers: HTTPHeaders, isOld: Bool) throws(HTTPRefusal) -> Bool {
        guard let expectation = headers["Expect"], !isOld else { return false }
        guard expectation.lowercased() == "100-continue" else {
            throw HTTPRefusal(
                status: 417, code: "expectation_failed", detail: "The only supported expectation is 100-continue.")
        }
        return true
    }
}
