public import HTTPServing

/// A request as a client would send it.
public func request(
    _ method: HTTPMethod, _ target: String, token: String? = nil, type: String? = nil, headers: HTTPHeaders = [:],
    body: String = "", isLoopback: Bool = true, authority: String = "localhost:7880"
) throws -> HTTPRequest {
    var fields = headers
    if let token { fields["Authorization"] = "Bearer \(token)" }
    if let type { fields["Content-Type"] = type }
    let made = HTTPRequest(
        method: method, target: target, headers: fields, body: Array(body.utf8), isLoopback: isLoopback,
        authority: authority)
    struct BrokenTarget: Error {}
    guard let made else { throw BrokenTarget() }
    return made
}

extension HTTPResponse {
    /// The body as text.
    public var text: String { String(decoding: body, as: UTF8.self) }
}
