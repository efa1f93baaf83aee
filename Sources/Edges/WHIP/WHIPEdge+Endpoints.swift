import AccessTokens
import EdgeSupport
import HTTPServing
import Logging
import MediaControl
import RoomService
import Rooms

extension WHIPEdge {
    /// Publishes what the offer sends (RFC 9725 section 4.2).
    func publish(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let (claims, origin) = try context.joinClaims(of: request)
        let offer = try Self.offer(of: request)
        var join = JoinRequest(claims: claims, room: request.parameters["room"], from: request)
        join.origin = origin
        join.profile = .publishOnly
        join.autoSubscribe = false
        let session = try await connecting { [join] () async throws(RoomError) in
            try await context.rooms.joinPublisher(join, offer: offer)
        }
        return created(session, .whip, iceServers: iceServers(for: claims, request))
    }

    /// Plays one participant or the dominant speaker.
    func play(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let (claims, origin) = try context.joinClaims(of: request)
        let offer = try Self.offer(of: request)
        var join = JoinRequest(claims: claims, room: try request.parameter("room"), from: request)
        join.origin = origin
        join.profile = .viewer
        let target = request.parameters["identity"].map { FollowTarget.identity($0) } ?? .dominantSpeaker
        let session = try await connecting { [join] () async throws(RoomError) in
            try await context.rooms.joinViewer(join, offer: offer, follow: target)
        }
        return created(session, .whep, iceServers: iceServers(for: claims, request))
    }

    /// The offer in the body. The room decides whether it can be answered.
    private static func offer(of request: HTTPRequest) throws(Problem) -> String {
        guard request.contentType == sdp else {
            throw Problem(
                415, "unsupported_media_type", "The body must be an SDP offer of type application/sdp.",
                headers: ["Accept-Post": sdp])
        }
        guard !request.body.isEmpty else { throw Problem(400, "invalid_sdp", "The body is empty.") }
        guard let text = request.text else { throw Problem(400, "invalid_sdp", "The body is not UTF-8.") }
        return text
    }

    private func connecting(
        _ join: () async throws(RoomError) -> ConnectedSession
    ) async throws(Problem) -> ConnectedSession {
        do throws(RoomError) {
            return try await join()
        } catch {
            // A client may retry as often as it likes; the event log has its first refusal, the metrics count all.
            context.logger.debug("offer refused", ["code": .text(error.code.rawValue)])
            throw Problem(error)
        }
    }

    private func iceServers(for claims: AccessClaims, _ request: HTTPRequest) -> [ICEServer] {
        context.iceServers.servers(
            for: claims, room: request.parameters["room"], origin: request.headers["Origin"])
    }

    /// The warning about its tracks to a client without a signalling socket (RFC 7234 section 5.5; 199 is any warning).
    private static func warning(_ answer: ConnectionAnswer) -> String? {
        let count = answer.tracksBeyondLimit
        guard count > 0 else { return nil }
        let are = count == 1 ? "1 track of the offer is" : "\(count) tracks of the offer are"
        return "199 martlet \"\(are) not published: a participant may publish \(MediaLimits.tracksPerParticipant)\""
    }

    private func created(_ session: ConnectedSession, _ kind: Origin, iceServers: [ICEServer]) -> HTTPResponse {
        var headers: HTTPHeaders = [
            "Content-Type": Self.sdp, "Location": kind.sessionPath + session.session.rawValue,
            "ETag": EntityTag.field(session.answer.iceTag), "Accept-Patch": Self.fragment, "Cache-Control": "no-store",
        ]
        for server in iceServers {
            for value in server.linkValues { headers.add("Link", value) }
        }
        headers["Warning"] = Self.warning(session.answer)
        return HTTPResponse(status: 201, headers: headers, body: Array(session.answer.sdp.utf8))
    }
}

extension JoinRequest {
    /// A join with what the request contains besides its token: the room's password, if it has one.
    fileprivate init(claims: AccessClaims, room: String?, from request: HTTPRequest) {
        self.init(claims: claims, room: room)
        password = request.headers["Room-Password"]
        address = request.remoteAddress
        client = request.clientName
    }
}
