public import HTTPServing

/// Which web pages may call the server (the Fetch standard's CORS protocol).
///
/// Access is by bearer token, never by cookie, so any origin is harmless by default and credentials are not allowed.
public struct CrossOrigin: Sendable, Hashable {
    /// Origins such as "https://app.example.org"; "*" stands for any.
    public var allowedOrigins: [String]

    /// A policy for these origins.
    public init(allowedOrigins: [String] = ["*"]) { self.allowedOrigins = allowedOrigins }

    /// Fields that scripts may read: those that WHIP clients need, that explain a refusal, and that say which part of a recording was sent.
    static let exposed =
        "Location, ETag, Link, Warning, Accept-Post, Accept-Patch, Allow, Retry-After, WWW-Authenticate, "
        + "Accept-Ranges, Content-Range, Content-Disposition"
    /// Fields that scripts may send: those of the API, WHIP and WHEP, the trace that a join belongs to, and the requested part of a recording.
    static let requestable =
        "Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID, Room-Password, traceparent, Range, If-Range"

    /// The value of `Access-Control-Allow-Origin` for `origin`; nil if the origin is not allowed.
    public func allows(_ origin: String) -> String? {
        if allowedOrigins.contains("*") { return "*" }
        return allowedOrigins.contains(origin) ? origin : nil
    }

    /// Adds the fields to a response: the router's `finish` hook.
    public func apply(_ request: HTTPRequest, _ response: inout HTTPResponse) {
        // A request whose head was refused before it was read may still have named an origin; for "*" it does not matter which.
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
