import AccessTokens
import EdgeSupport
import HTTPServing
import RoomService
import Rooms

/// Guests who wait to be let into a room.
struct GuestsResource: Resource {
    let access: APIAccess

    var operations: [Operation] {
        let guest = "/v1/rooms/{room}/guests/{identity}"
        return [
            .get("/v1/rooms/{room}/guests", listGuests),
            .post(guest, letGuestIn),
            .delete(guest, turnGuestAway),
        ]
    }

    /// Lists the guests who wait.
    func listGuests(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        let guests = try await asking { () async throws(RoomError) in try await context.rooms.guests(ofRoom: room) }
        return try ListPage(of: guests, request) { "\(String(sortableMoment: $0.since))-\($0.identity)" }
            .response("guests") { GuestModel($0) }
    }

    func letGuestIn(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try await decide(request, letsIn: true)
    }

    func turnGuestAway(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try await decide(request, letsIn: false)
    }

    private func decide(_ request: HTTPRequest, letsIn: Bool) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        let identity = try request.parameter("identity")
        try await asking { () async throws(RoomError) in
            try await context.rooms.decide(onGuest: identity, in: room, letsIn: letsIn)
        }
        return HTTPResponse(status: 204)
    }
}
