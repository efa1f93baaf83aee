/// What goes back to the client.
public struct HTTPResponse: Sendable {
    /// The status code, 200 to 599.
    public var status: Int
    /// The header fields; Content-Length, Date and Connection are the server's.
    public var headers: HTTPHeaders
    /// The body.
    public var body: [UInt8]
    /// In place of `body`: one that goes on.
    public var stream: HTTPStream?

    /// A response with these parts.
    public init(status: Int, headers: HTTPHeaders = HTTPHeaders(), body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// A response whose body goes on.
    public init(status: Int = 200, headers: HTTPHeaders, stream: HTTPStream) {
        self.init(status: status, headers: headers)
        self.stream = stream
    }

    /// Bytes of the body; nil where nobody knows.
    var length: Int64? { stream.map(\.length) ?? Int64(body.count) }

    /// A response with a text body of the given media type.
    public init(status: Int = 200, text: String, contentType: String = "text/plain; charset=utf-8") {
        self.init(status: status, headers: ["Content-Type": contentType], body: Array(text.utf8))
    }
}

/// Answers one request.
public typealias HTTPHandler = @Sendable (HTTPRequest) async -> HTTPResponse

/// What the head of a request decides about its body.
public enum HTTPVerdict: Sendable {
    /// The body is not read: this is the answer.
    case refuse(HTTPResponse)
    /// The body is read. The body of a client that has shown who it is makes no room for those of clients that have not.
    case admit(isKnown: Bool)
}

/// Looks at the head of a request that has a body before the body is read. Runs on the HTTP thread, so it takes microseconds and waits for nothing.
public typealias HTTPAdmission = @Sendable (HTTPRequest) -> HTTPVerdict

/// A request that the server or the router answers by itself, before or instead of a handler.
public struct HTTPRefusal: Error, Sendable, Hashable {
    /// The status code of the answer.
    public var status: Int
    /// A stable word for programs, for example `body_too_large`.
    public var code: String
    /// A sentence for people.
    public var detail: String

    /// A refusal with these parts.
    public init(status: Int, code: String, detail: String) {
        self.status = status
        self.code = code
        self.detail = detail
    }

    /// The plain form, where nobody asked for a better one.
    public var plainResponse: HTTPResponse { HTTPResponse(status: status, text: "\(code): \(detail)\n") }
}

/// Words for a refusal: the edges turn it into a problem document.
public typealias HTTPRefusalWriter = @Sendable (HTTPRefusal) -> HTTPResponse
