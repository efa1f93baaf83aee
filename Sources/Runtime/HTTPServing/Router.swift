/// Finds the handler of a request by method and path.
///
/// A pattern is a path whose parts may be "{name}": "/whip/{room}" matches "/whip/Broadcast" with `parameters["room"]`
/// set to "Broadcast". A literal part takes precedence over a parameter. An unknown path is answered with 404, a known path with another method with 405 and
/// `Allow`; OPTIONS is answered with `Allow` (RFC 9110 section 9.3.7) and HEAD by the GET handler unless routed.
public struct Router: Sendable {
    /// Changes every response before it is sent, also 404s and OPTIONS: the place for CORS fields.
    public typealias ResponseHook = @Sendable (HTTPRequest, inout HTTPResponse) -> Void

    private struct Route: Sendable {
        let pattern: PathPattern
        var handlers: [(method: HTTPMethod, admission: HTTPAdmission?, handler: HTTPHandler)]
    }

    private typealias Match = (route: Route, parameters: [String: String])

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

    /// Adds a route. The last one for the same method and pattern wins. `admission` may refuse a request before its body is read: routes that need a token
    /// check it there, so that clients without one cannot send a body.
    public mutating func on(
        _ method: HTTPMethod, _ pattern: String, admission: HTTPAdmission? = nil, _ handler: @escaping HTTPHandler
    ) {
        let pattern = PathPattern(pattern)
        if let index = routes.firstIndex(where: { $0.pattern == pattern }) {
            routes[index].handlers.removeAll { $0.method == method }
            routes[index].handlers.append((method, admission, handler))
        } else {
            routes.append(Route(pattern: pattern, handlers: [(method, admission, handler)]))
        }
    }

    /// Decides about a request whose body has not been read: for `HTTPServer.start`. A request without a handler is answered at once.
    public func admit(_ request: HTTPRequest) -> HTTPVerdict {
        let verdict: HTTPVerdict =
            switch find(request) {
            case .success(let found): found.admission?(found.request) ?? .admit(isKnown: false)
            case .failure(let miss): .refuse(miss.response)
            }
        guard case .refuse(var response) = verdict else { return verdict }
        finish(request, &response)
        return .refuse(response)
    }

    /// Answers a request.
    public func handle(_ request: HTTPRequest) async -> HTTPResponse {
        var response = await answer(request)
        finish(request, &response)
        return response
    }

    private func answer(_ request: HTTPRequest) async -> HTTPResponse {
        switch find(request) {
        case .success(let found): await found.handler(found.request)
        case .failure(let miss): miss.response
        }
    }

    /// A request with its handler, and the parameters that its pattern found in the path.
    private struct Found {
        var request: HTTPRequest
        var admission: HTTPAdmission?
        var handler: HTTPHandler
    }

    /// The response to a request without a handler.
    private struct Miss: Error { var response: HTTPResponse }

    private func find(_ request: HTTPRequest) -> Result<Found, Miss> {
        let matches: [Match] = routes.compactMap { route in
            route.pattern.match(request.segments).map { (route, $0) }
        }.sorted { $0.route.pattern.isMoreSpecific(than: $1.route.pattern) }
        guard !matches.isEmpty else {
            let refusal = HTTPRefusal(status: 404, code: "not_found", detail: "There is no resource at this path.")
            return .failure(Miss(response: refuse(refusal)))
        }
        for method in request.method == .head ? [.head, .get] : [request.method] {
            for match in matches {
                guard let entry = match.route.handlers.first(where: { $0.method == method }) else { continue }
                var request = request
                request.parameters = match.parameters
                return .success(Found(request: request, admission: entry.admission, handler: entry.handler))
            }
        }
        return .failure(Miss(response: withoutHandler(request, matches)))
    }

    private func withoutHandler(_ request: HTTPRequest, _ matches: [Match]) -> HTTPResponse {
        var methods = Set(matches.flatMap { $0.route.handlers.map(\.method) })
        if methods.contains(.get) { methods.insert(.head) }
        methods.insert(.options)
        let allow = methods.map(\.rawValue).sorted().joined(separator: ", ")
        if request.method == .options { return HTTPResponse(status: 204, headers: ["Allow": allow]) }
        var response = refuse(
            HTTPRefusal(status: 405, code: "method_not_allowed", detail: "This path supports \(allow)."))
        response.headers["Allow"] = allow
        return response
    }
}
