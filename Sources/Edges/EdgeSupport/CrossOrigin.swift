public import HTTPServing

/// Which web pages may talk to the server (the Fetch standard's CORS protocol).
///
/// Access is by bearer token, never by cookie, so any origin is harmless by default and credentials are not allowed.
public struct CrossOrigin: Sendable, Hashable {
    /// Origins such as "https://app.example.org"; "*" stands for any.
    public var allowedOrigins: [String]

    /// A policy for these origins.
    public init(allowedOrigins: [String] = ["*"]) { self.allowedOrigins = allowedOrigins }

    /// Fields that scripts may read: what WHIP clients need, what explains a refusal, and which part of a recording came.
    static let exposed =
        "Location, ETag, Link, Warning, Accept-Post, Accept-Patch, Allow, Retry-After, WWW-Authenticate, "
        + "Accept-Ranges, Content-Range, Content-Disposition"
    /// Fields that scripts may send: those of the API, WHIP and WHEP, the trace that a join belongs to, and which part of a recording is wanted.
    static let requestable =
        "Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID, Room-Password, traceparent, Range, If-Range"

    /// What the response to `origin` says; nil when the origin is not allowed.
    public func allows(_ origin: String) -> String? {
        if allowedOrigins.contains("*") { return "*" }
        return allowedOrigins.contains(origin) ? origin : nil
    }

    /// Adds the fields to a response: the router's `finish` hook.
    public func apply(_ request: HTTPRequest, _ response: inout HTTPResponse) {
        // A head that was refused before it was read may have named an origin all the same; to "*" it does not matter which.
        guard let origin = request.headers["Origin"] ?? (request.isUnread ? "" : nil) else { return }
        response.headers.add("Vary", "Origin")
        guard let allowed = allows(origin) else { return }
        response.headers["Access-Control-Allow-Origin"] = allowed
        response.headers["Access-Control-Expose-Headers"] = Self.exposed
        guard request.isPreflight else { return }
        response.headers["Access-Control-Allow-Methods"] = response.headers["Allow"] ?? "GET, OPTIONS"
        response.headers["Access-Control-Allow-Headers"] = Self.requestable
        response.headers["Access-Control-Max-Age"] = "86400"
    }
}
