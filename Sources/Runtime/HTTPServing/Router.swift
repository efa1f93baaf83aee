/// Finds the handler of a request by method and path.
///
/// A pattern is a path whose parts may be "{name}": "/whip/{room}" matches "/whip/Broadcast" with `parameters["room"]`
/// set to "Broadcast". A literal part wins over a parameter. An unknown path is 404, a known path with another method 405 with `Allow`;
/// OPTIONS is answered with `Allow` (RFC 9110 section 9.3.7) and HEAD by the GET handler unless routed.
public struct Router: Sendable {
    /// Changes every response before it leaves, also 404s and OPTIONS: the place for CORS fields.
    public typealias ResponseHook = @Sendable (HTTPRequest, inout HTTPResponse) -> Void

    private struct Route: Sendable {
        let pattern: [String]
        var handlers: [(method: HTTPMethod, handler: HTTPHandler)]
    }

    private var routes: [Route] = []
    private let refuse: HTTPRefusalWriter
    private let finish: ResponseHook

    /// A router without routes. `refuse` writes 404 and 405; `finish` sees every response.
    public init(
        refuse: @escaping HTTPRefusalWriter = { $0.plainResponse }, finish: @escaping ResponseHook = { _, _ in }
    ) {
        self.refuse = refuse
        self.finish = finish
    }

    /// Adds a route. The last one given for the same method and pattern wins.
    public mutating func on(_ method: HTTPMethod, _ pattern: String, _ handler: @escaping HTTPHandler) {
        precondition(pattern.hasPrefix("/"), "a route's pattern begins with a slash")
        let parts = pattern.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        let segments = parts == [""] ? [] : parts
        if let index = routes.firstIndex(where: { $0.pattern == segments }) {
            routes[index].handlers.removeAll { $0.method == method }
            routes[index].handlers.append((method, handler))
        } else {
            routes.append(Route(pattern: segments, handlers: [(method, handler)]))
        }
    }

    /// Answers a request.
    public func handle(_ request: HTTPRequest) async -> HTTPResponse {
        var response = await answer(request)
        finish(request, &response)
        return response
    }

    private func answer(_ request: HTTPRequest) async -> HTTPResponse {
        let matches = routes.filter { Self.matches($0.pattern, request.segments) }
            .sorted { Self.isMoreSpecific($0.pattern, than: $1.pattern) }
        guard !matches.isEmpty else {
            return refuse(HTTPRefusal(status: 404, code: "not_found", detail: "There is nothing at this path."))
        }
        for method in request.method == .head ? [.head, .get] : [request.method] {
            for route in matches {
                guard let handler = route.handlers.first(where: { $0.method == method })?.handler else { continue }
                var request = request
                request.parameters = Self.parameters(route.pattern, request.segments)
                return await handler(request)
            }
        }
        return withoutHandler(request, matches)
    }

    private func withoutHandler(_ request: HTTPRequest, _ matches: [Route]) -> HTTPResponse {
        var methods = Set(matches.flatMap { $0.handlers.map(\.method) })
        if methods.contains(.get) { methods.insert(.head) }
        methods.insert(.options)
        let allow = methods.map(\.rawValue).sorted().joined(separator: ", ")
        if request.method == .options { return HTTPResponse(status: 204, headers: ["Allow": allow]) }
        var response = refuse(
            HTTPRefusal(status: 405, code: "method_not_allowed", detail: "This path answers \(allow)."))
        response.headers["Allow"] = allow
        return response
    }

    private static func matches(_ pattern: [String], _ segments: [String]) -> Bool {
        pattern.count == segments.count
            && zip(pattern, segments).allSatisfy { isParameter($0) ? !$1.isEmpty : $0 == $1 }
    }

    private static func isMoreSpecific(_ a: [String], than b: [String]) -> Bool {
        for (x, y) in zip(a, b) where isParameter(x) != isParameter(y) { return isParameter(y) }
        return false
    }

    private static func parameters(_ pattern: [String], _ segments: [String]) -> [String: String] {
        var result: [String: String] = [:]
        for (part, segment) in zip(pattern, segments) where isParameter(part) {
            result[String(part.dropFirst().dropLast())] = segment
        }
        return result
    }

    private static func isParameter(_ part: String) -> Bool { part.hasPrefix("{") && part.hasSuffix("}") }
}
