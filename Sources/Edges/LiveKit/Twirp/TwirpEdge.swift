import AccessTokens
public import EdgeSupport
public import HTTPServing
import Rooms

/// LiveKit's server API: `POST /twirp/livekit.RoomService/…`, in protobuf or JSON.
public struct TwirpEdge: Sendable {
    let context: EdgeContext
    private let limit: CallLimit

    /// An API over `context`, of which each API key may make `callsPerSecond` calls.
    public init(context: EdgeContext, callsPerSecond: Int = 1_000) {
        self.context = context
        limit = CallLimit(perSecond: callsPerSecond)
    }

    /// Adds the route of every service; clients whose URL ends with a slash have two before it.
    public func register(on router: inout Router) {
        for path in ["/twirp/{service}/{method}", "//twirp/{service}/{method}"] {
            let gate = context.gate
            router.on(
                .post, path,
                admission: { request in
                    (try? gate.claims(of: request)) == nil
                        ? .refuse(Self.noToken.response) : .admit(isKnown: true)
                }
            ) { request in
                do throws(TwirpError) {
                    return try await call(request)
                } catch {
                    return error.response
                }
            }
        }
    }

    private static let noToken = TwirpError(.unauthenticated, "the access token is missing or no good")

    /// Services of LiveKit's that are not here.
    private static let absent: Set<String> = [
        "livekit.Egress", "livekit.Ingress", "livekit.SIP", "livekit.AgentDispatchService", "livekit.Connector",
    ]

    private func call(_ request: HTTPRequest) async throws(TwirpError) -> HTTPResponse {
        let (service, method) = (request.parameters["service"] ?? "", request.parameters["method"] ?? "")
        guard let claims = try? context.gate.claims(of: request) else { throw Self.noToken }
        guard limit.take(claims.apiKey, at: context.now()) else {
            throw TwirpError(.resourceExhausted, "the API key makes more calls than it may")
        }
        guard !Self.absent.contains(service) else {
            throw TwirpError(.unimplemented, "\(service) is not available on this server")
        }
        guard service == "livekit.RoomService" else {
            throw TwirpError(.badRoute, "there is no service \(service)")
        }
        return try await RoomServiceCalls(context: context, claims: claims, request: request).perform(method)
    }
}
