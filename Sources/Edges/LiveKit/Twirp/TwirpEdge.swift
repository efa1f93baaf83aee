import AccessTokens
public import EdgeSupport
public import HTTPServing
public import Recorder
import Rooms

/// LiveKit's server API: `POST /twirp/livekit.RoomService/…` and `…/livekit.Egress/…`, in protobuf or JSON.
public struct TwirpEdge: Sendable {
    let context: EdgeContext
    private let recorder: FileRecorder?
    private let limit: CallLimit

    /// An API over `context`, of which each API key may make `callsPerSecond` calls; `recorder` writes recordings (nil: there are none).
    public init(context: EdgeContext, recorder: FileRecorder? = nil, callsPerSecond: Live<Int>) {
        self.context = context
        self.recorder = recorder
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

    /// LiveKit's services that are not implemented here.
    private static let absent: Set<String> = [
        "livekit.Ingress", "livekit.SIP", "livekit.AgentDispatchService", "livekit.Connector",
    ]

    private func call(_ request: HTTPRequest) async throws(TwirpError) -> HTTPResponse {
        let (service, method) = (request.parameters["service"] ?? "", request.parameters["method"] ?? "")
        guard let claims = try? context.gate.claims(of: request) else { throw Self.noToken }
        // Every participant has a token of the key: those without a grant of this API must not use up the calls of servers.
        let budget = claims.video.isForServers ? claims.callBudget : "without a grant: \(claims.apiKey)"
        guard limit.accept(budget, at: context.now()) else {
            throw TwirpError(.resourceExhausted, "the API key makes more calls than it may")
        }
        guard !Self.absent.contains(service) else {
            throw TwirpError(.unimplemented, "\(service) is not available on this server")
        }
        switch service {
        case "livekit.RoomService":
            return try await RoomServiceCalls(context: context, claims: claims, request: request).perform(method)
        case "livekit.Egress":
            guard let recorder else {
                throw TwirpError(.unimplemented, "the server has no folder for recordings: set recording.directory")
            }
            return try await EgressCalls(context: context, recorder: recorder, claims: claims, request: request)
                .perform(method)
        default: throw TwirpError(.badRoute, "there is no service \(service)")
        }
    }
}

extension VideoGrant {
    /// Whether some call of the API is permitted.
    fileprivate var isForServers: Bool { roomAdmin || roomCreate || roomList || roomRecord || recorder }
}
