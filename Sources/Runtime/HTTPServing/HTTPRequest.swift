/// One request, complete and within the configured limits.
public struct HTTPRequest: Sendable {
    /// The method.
    public var method: HTTPMethod
    /// The path as on the wire, percent-encoded, with its leading slash and without the query.
    public var path: String
    /// The parts of the path between slashes, percent-decoded. "/" has none; a trailing slash adds an empty part.
    public var segments: [String]
    /// The query's parameters, decoded; if a name appears twice, the first value counts.
    public var query: [String: String]
    /// The header fields.
    public var headers: HTTPHeaders
    /// The body; empty if there is none.
    public var body: [UInt8]
    /// The client's address as text: the connection's, or the one that a trusted proxy reports.
    public var remoteAddress: String
    /// Whether the client is on this machine.
    public var isLoopback: Bool
    /// "http" or "https" as the client sees it.
    public var scheme: String
    /// Host and port as the client names them (the Host field); empty if it names none.
    public var authority: String
    /// The values of the route's path parameters: "room" for "/whip/{room}".
    public var parameters: [String: String]
    /// Whether its head was refused before it was complete: only header fields are known, and perhaps not all. No handler gets such a request.
    public var isUnread = false
    /// Why the server would now refuse a WebSocket of this client, whatever its route decides; nil: it would not. Browsers hide from pages why an upgrade was
    /// refused.
    public var webSocketRefusal: HTTPRefusal?

    /// A request as a test or the server makes it; `target` is path and query.
    ///
    /// nil if the target is not a path or has invalid percent-encoding.
    public init?(
        method: HTTPMethod, target: String, headers: HTTPHeaders = HTTPHeaders(), body: [UInt8] = [],
        remoteAddress: String = "127.0.0.1", isLoopback: Bool = true, scheme: String = "http", authority: String = ""
    ) {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard target.hasPrefix("/"), let segments = PercentCoding.segments(ofPath: parts[0]),
            let query = PercentCoding.query(parts.count > 1 ? parts[1] : "")
        else { return nil }
        self.method = method
        self.path = String(parts[0])
        self.segments = segments
        self.query = query
        self.headers = headers
        self.body = body
        self.remoteAddress = remoteAddress
        self.isLoopback = isLoopback
        self.scheme = scheme
        self.authority = authority
        self.parameters = [:]
    }

    /// The body as text; nil if it is not UTF-8.
    public var text: String? { String(validating: body, as: UTF8.self) }

    /// Whether a browser asks if a page may send another request (a CORS preflight of the Fetch standard).
    public var isPreflight: Bool { method == .options && headers["Access-Control-Request-Method"] != nil }

    /// The media type without parameters, in lower case: "application/sdp". Empty if there is none.
    public var contentType: String {
        let value = headers["Content-Type"] ?? ""
        return value.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }.lowercased()
    }

    /// Scheme and authority, for links that the client can follow: "https://host:7880".
    public var origin: String { "\(scheme)://\(authority)" }
}
