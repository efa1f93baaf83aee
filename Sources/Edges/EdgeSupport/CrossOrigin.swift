public import HTTPServing

/// Which web pages may talk to the server (the Fetch standard's CORS protocol).
///
/// Access is by bearer token, never by cookie, so any origin is harmless by default and credentials are not allowed.
public struct CrossOrigin: Sendable, Hashable {
    /// Origins such as "https://app.example.org"; "*" stands for any.
    public var allowedOrigins: [String]

    /// A policy for these origins.
    public init(allowedOrigins: [String] = ["*"]) { self.allowedOrigins = allowedOrigins }

    /// Fields that scripts may read: what WHIP clients need and what explains a refusal.
    static let exposed =
        "Location, ETag, Link, Warning, Accept-Post, Accept-Patch, Allow, Retry-After, WWW-Authenticate"
    /// Fields that scripts may send: those of the API, WHIP and WHEP, and the trace that a join belongs to.
    static let requestable =
        "Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID, Room-Password, traceparent"

    /// What the response to `origin` says; nil when the origin is not allowed.
    public func allows(_ origin: String) -> String? {
        if allowedOrigins.contains("*") { return "*" }
        return allowedOrigins.contains(origin) ? origin : nil
    }

    /// Adds the fields to a response: the router's `finish` hook.
    public func apply(_ request: HTTPRequest, _ response: inout HTTPResponse) {
        guard let origin = request.headers["Origin"] else { return }
        response.headers.add("Vary", "Origin")
        guard let allowed = allows(origin) else { return }
        response.headers["Access-Control-Allow-Origin"] = allowed
        response.headers["Access-Control-Expose-Headers"] = Self.exposed
        guard request.method == .options, request.headers["Access-Control-Request-Method"] != nil else { return }
        response.headers["Access-Control-Allow-Methods"] = response.headers["Allow"] ?? "GET, OPTIONS"
        response.headers["Access-Control-Allow-Headers"] = Self.requestable
        response.headers["Access-Control-Max-Age"] = "86400"
    }
}
