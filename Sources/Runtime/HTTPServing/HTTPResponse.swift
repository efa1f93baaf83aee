/// The response to a request.
public struct HTTPResponse: Sendable {
    /// The status code, 200 to 599.
    public var status: Int
    /// The header fields; the server sets Content-Length, Date and Connection.
    public var headers: HTTPHeaders
    /// The body.
    public var body: [UInt8]
    /// Instead of `body`: a streamed one.
    public var stream: HTTPStream?

    /// A response with these parts.
    public init(status: Int, headers: HTTPHeaders = HTTPHeaders(), body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// A response with a streamed body.
    public init(status: Int = 200, headers: HTTPHeaders, stream: HTTPStream) {
        self.init(status: status, headers: headers)
        self.stream = stream
    }

    /// The length of the body in bytes; nil if unknown.
    var length: Int64? { stream.map(\.length) ?? Int64(body.count) }

    /// A response with a text body of the given media type.
    public init(status: Int = 200, text: String, contentType: String = "text/plain; charset=utf-8") {
        self.init(status: status, headers: ["Content-Type": contentType], body: Array(text.utf8))
    }
}

/// Answers one request.
public typealias HTTPHandler = @Sendable (HTTPRequest) async -> HTTPResponse

/// The decision about a body, based on the head of its request.
public enum HTTPVerdict: Sendable {
    /// The body is not read: this is the response.
    case refuse(HTTPResponse)
    /// The body is read. The bodies of authenticated clients are never cut off to make room for those of others.
    case admit(isKnown: Bool)
}

/// Decides about a request with a body before the body is read. Runs on the HTTP thread, so it takes microseconds and never waits.
public typealias HTTPAdmission = @Sendable (HTTPRequest) -> HTTPVerdict

/// A refusal by the server or the router itself, before or instead of a handler.
public struct HTTPRefusal: Error, Sendable, Hashable {
    /// The status code of the response.
    public var status: Int
    /// A stable word for programs, for example `body_too_large`.
    public var code: String
    /// A sentence for readers.
    public var detail: String

    /// A refusal with these parts.
    public init(status: Int, code: String, detail: String) {
        self.status = status
        self.code = code
        self.detail = detail
    }

    /// The plain form, used unless the edges configure another one.
    public var plainResponse: HTTPResponse { HTTPResponse(status: status, text: "\(code): \(detail)\n") }
}

/// Formats a refusal: the edges make a problem document from it.
public typealias HTTPRefusalWriter = @Sendable (HTTPRefusal) -> HTTPResponse
