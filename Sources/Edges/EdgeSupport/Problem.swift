public import HTTPServing
public import Primitives

/// A refusal as HTTP clients see it: problem details (RFC 9457) with a stable `code`.
///
/// `detail` is a sentence for people. It holds no secrets, addresses or internal texts.
public struct Problem: Error, Sendable, Hashable {
    /// The status of the response.
    public var status: Int
    /// The stable word for programs, for example `room_full`.
    public var code: String
    /// What is wrong this time, for people.
    public var detail: String
    /// The member of a body that it is about; its parts are members next to `detail`.
    public var place: JSONFault?
    /// When trying again makes sense.
    public var retryAfter: TimeSpan?
    /// Further header fields, for example `WWW-Authenticate` or `Accept-Post`.
    public var headers: HTTPHeaders

    /// A refusal with these parts.
    public init(
        _ status: Int, _ code: String, _ detail: String = "", retryAfter: TimeSpan? = nil,
        headers: HTTPHeaders = HTTPHeaders()
    ) {
        self.status = status
        self.code = code
        self.detail = detail
        self.retryAfter = retryAfter
        self.headers = headers
    }

    /// The media type of `response`.
    public static let contentType = "application/problem+json"

    /// The response that carries it.
    public var response: HTTPResponse {
        var headers = responseHeaders
        headers["Content-Type"] = Self.contentType
        return HTTPResponse(status: status, headers: headers, body: JSONCoding.encode(document))
    }

    /// The header fields of the response, whatever form its body has.
    public var responseHeaders: HTTPHeaders {
        var headers = headers
        headers["Cache-Control"] = "no-store"
        if let retryAfter { headers["Retry-After"] = String(max(1, Int(retryAfter.seconds.rounded(.up)))) }
        return headers
    }

    private var document: Document {
        Document(
            title: HTTPStatus.title(of: status), status: status, code: code, detail: detail.isEmpty ? nil : detail,
            pointer: place?.pointer, expected: place?.wanted, found: place?.found, suggestion: place?.suggestion)
    }

    private struct Document: Encodable {
        let type = "about:blank"
        let title: String
        let status: Int
        let code: String
        let detail: String?
        let pointer: String?
        let expected: String?
        let found: String?
        let suggestion: String?
    }
}
