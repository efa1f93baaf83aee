import AccessTokens
import EdgeTestSupport
import HTTPServing
import RoomService
import Rooms
import Testing

@testable import ControlAPI

@Suite("Control API: messages")
struct MessageTests {
    private let api = TestAPI()

    @Test("A message reaches the members of a room, with a reason where it cannot")
    func send() async throws {
        let claims = AccessClaims(
            apiKey: TestTokens.key.name, identity: "ada", expiresAt: .max, video: .join("hall"))
        let ada = try await api.rooms.rooms.join(JoinRequest(claims: claims, room: "hall"))
        let path = "/v1/rooms/hall/messages"
        #expect(try await api.ask(.post, path, #"{"topic":"t","text":"hi","to":["ada"]}"#).status == 204)
        #expect(try await api.ask(.post, path, #"{"topic":"t","bytes":"AQI=","reliable":false}"#).status == 204)
        var received: [RoomMessage] = []
        for await event in ada.events {
            if case .messageReceived(let message) = event.event { received.append(message) }
            if received.count == 2 { break }
        }
        #expect(received.map(\.content) == [.text("hi"), .binary([1, 2])])
        #expect(received.allSatisfy { $0.identity == nil })
        #expect(try await api.ask(.post, path, #"{"text":"hi","to":["eve"]}"#).code == "participant_not_found")
        #expect(try await api.ask(.post, "/v1/rooms/none/messages", #"{"text":"hi"}"#).code == "room_not_found")
        for body in ["{}", #"{"text":"a","bytes":"AQ=="}"#, #"{"bytes":"*"}"#, #"{"text":1}"#, #"{"texts":"a"}"#] {
            #expect(try await api.ask(.post, path, body).status == 400, "\(body)")
        }
    }
}
