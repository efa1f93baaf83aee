/// One request, complete and within the configured limits.
public struct HTTPRequest: Sendable {
    /// What is asked for.
    public var method: HTTPMethod
    /// The path as on the wire, percent-encoded, with its leading slash and without the query.
    public var path: String
    /// The parts of the path between slashes, percent-decoded. "/" has none; a trailing slash adds an empty one.
    public var segments: [String]
    /// The query's parameters, decoded; of a name that comes twice the first value counts.
    public var query: [String: String]
    /// The header fields.
    public var headers: HTTPHeaders
    /// The body; empty when there is none.
    public var body: [UInt8]
    /// The client's address in text form: the connection's, or what a trusted proxy says.
    public var remoteAddress: String
    /// Whether the client is on this machine.
    public var isLoopback: Bool
    /// "http" or "https" as the client sees it.
    public var scheme: String
    /// Host and port as the client names them (the Host field); empty when it gave none.
    public var authority: String
    /// What the router found in the path: "room" for "/whip/{room}".
    public var parameters: [String: String]
    /// Whether its head was refused before it was read: header fields alone are known, and perhaps not all. No handler gets such a request.
    public var isUnread = false
    /// What the server would refuse a WebSocket of this client for now, whatever its route decides; nil: nothing. Browsers hide from pages why an upgrade was refused.
    public var webSocketRefusal: HTTPRefusal?

    /// A request as a test or the server builds it; `target` is path and query.
    ///
    /// nil when the target is not a path or has broken percent-encoding.
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

    /// The body as text; nil when it is not UTF-8.
    public var text: String? { String(validating: body, as: UTF8.self) }

    /// Whether a browser asks if a page may send another request (a CORS preflight of the Fetch standard).
    public var isPreflight: Bool { method == .options && headers["Access-Control-Request-Method"] != nil }

    /// The media type without parameters, in lower case: "application/sdp". Empty when there is none.
    public var contentType: String {
        let value = headers["Content-Type"] ?? ""
        return value.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }.lowercased()
    }

    /// Scheme and authority, for links that the client can follow: "https://host:7880".
    public var origin: String { "\(scheme)://\(authority)" }
}
