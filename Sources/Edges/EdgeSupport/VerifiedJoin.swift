public import AccessTokens
public import HTTPServing
import Primitives
import RoomService
public import Rooms

extension EdgeContext {
    /// The claims of a request that leads to a join, and what is known of it: how long the verification of its token took, and its trace.
    public func joinClaims(
        of request: HTTPRequest, room: String? = nil
    ) throws(Problem) -> (claims: AccessClaims, origin: JoinOrigin) {
        let began = now()
        let claims = try gate.claims(of: request, room: room)
        let origin = JoinOrigin(
            receivedAt: rooms.wallClockMilliseconds, verification: now() - began,
            trace: request.headers["traceparent"].flatMap { TraceContext(traceparent: $0) })
        return (claims, origin)
    }
}
