import AccessTokens
import EdgeSupport
import EdgeTestSupport
import Foundation
import HTTPServing
import MediaControl
import RoomService
import Rooms
import TestSupport
import Testing

@testable import LiveKit

@Suite("LiveKit's server API")
struct TwirpTests {
    @Test("Tokens that may join, of which every participant has one, do not use up the calls of servers")
    func callLimit() async throws {
        var routes = Router()
        TwirpEdge(context: TestRooms().context, callsPerSecond: Live(5)).register(on: &routes)
        let router = routes
        func status(_ grant: VideoGrant) async throws -> Int {
            let token = try TestTokens.token("ada", grant)
            let list = try request(
                .post, "/twirp/livekit.RoomService/ListRooms", token: token, type: "application/json", body: "{}")
            return await router.handle(list).status
        }
        for _ in 0..<10 { #expect(try await status(.join(nil)) == 401) }
        #expect(try await status(.join(nil)) == 429)
        #expect(try await status(TestTokens.operatorGrant) == 200)
    }

    @Test("A room that is to be recorded by an egress of its own is refused, and not made")
    func roomEgress() async throws {
        let rooms = TestRooms()
        var routes = Router()
        TwirpEdge(context: rooms.context, callsPerSecond: Live(1_000)).register(on: &routes)
        let router = routes
        func status(_ body: String) async throws -> Int {
            let call = try request(
                .post, "/twirp/livekit.RoomService/CreateRoom",
                token: TestTokens.token(nil, TestTokens.operatorGrant), type: "application/json", body: body)
            return await router.handle(call).status
        }
        #expect(try await status(#"{"name":"a","egress":{"tracks":{"filepath":"x"}}}"#) == 501)
        #expect(try await status(#"{"name":"a","egress":{"room":{"layout":"grid"}}}"#) == 501)
        #expect(await rooms.rooms.listRooms().isEmpty)
        #expect(try await status(#"{"name":"a","egress":{}}"#) == 200)
    }

    @Test("A text with a NUL in it, as a called method may return it, is in the response as a whole")
    func textWithNUL() throws {
        func response(_ type: String, _ text: String) throws -> HTTPResponse {
            TwirpBody(request: try request(.post, "/", type: type)).reply("payload", 1, text)
        }
        #expect(try response("application/protobuf", "a\0b").body == [0x0a, 3, 0x61, 0, 0x62])
        #expect(try response("application/protobuf", "").body.isEmpty)
        #expect(try response("application/json", "a\0b").text == #"{"payload":"a\u0000b"}"#)
    }

    @Test("Nobody is in a room that is not there")
    func participantsOfNoRoom() async throws {
        var routes = Router()
        TwirpEdge(context: TestRooms().context, callsPerSecond: Live(1_000)).register(on: &routes)
        let call = try request(
            .post, "/twirp/livekit.RoomService/ListParticipants",
            token: TestTokens.token(nil, TestTokens.operatorGrant), type: "application/json", body: #"{"room":"a"}"#)
        let router = routes
        let response = await router.handle(call)
        #expect(response.status == 200 && response.text == #"{"participants":[]}"#)
    }

    @Test("A track is muted where it is the named participant's, and of another one it is not found")
    func mutedTrack() async throws {
        let rooms = TestRooms()
        var routes = Router()
        TwirpEdge(context: rooms.context, callsPerSecond: Live(1_000)).register(on: &routes)
        let router = routes
        for identity in ["ada", "bob"] {
            let claims = AccessClaims(
                apiKey: TestTokens.key.name, identity: identity, expiresAt: .max, video: .join("r"))
            _ = try await rooms.rooms.joinPublisher(
                JoinRequest(claims: claims), offer: ClientDescriptions().offer([.audio("0")]))
        }
        let track = try #require(try await rooms.rooms.participant("ada", in: "r").info.tracks.first?.sid)
        for (identity, status) in [("bob", 404), ("", 404), ("ada", 200)] {
            let call = try request(
                .post, "/twirp/livekit.RoomService/MutePublishedTrack",
                token: TestTokens.token(nil, TestTokens.operatorGrant), type: "application/json",
                body: #"{"room":"r","identity":"\#(identity)","track_sid":"\#(track)","muted":true}"#)
            #expect(await router.handle(call).status == status)
            let isMuted = try await rooms.rooms.participant("ada", in: "r").info.tracks.first?.muted
            #expect(isMuted == (identity == "ada"))
        }
    }

    @Test("A move to the room in which the participant is is refused")
    func movedNowhere() async throws {
        let rooms = TestRooms()
        var routes = Router()
        TwirpEdge(context: rooms.context, callsPerSecond: Live(1_000)).register(on: &routes)
        let claims = AccessClaims(apiKey: TestTokens.key.name, identity: "ada", expiresAt: .max, video: .join("r"))
        _ = try await rooms.rooms.join(JoinRequest(claims: claims))
        let call = try request(
            .post, "/twirp/livekit.RoomService/MoveParticipant",
            token: TestTokens.token(nil, TestTokens.operatorGrant), type: "application/json",
            body: #"{"room":"r","identity":"ada","destination_room":"r"}"#)
        let router = routes
        let response = await router.handle(call)
        #expect(response.status == 400 && response.text.contains("invalid_argument"))
    }

    @Test("Whose sources are none may not publish, and still may not when what is shown of that is sent back")
    func noSources() async throws {
        let rooms = TestRooms()
        var routes = Router()
        TwirpEdge(context: rooms.context, callsPerSecond: Live(1_000)).register(on: &routes)
        let router = routes
        func call(_ method: String, _ body: String) async throws -> String {
            let call = try request(
                .post, "/twirp/livekit.RoomService/\(method)",
                token: TestTokens.token(nil, TestTokens.operatorGrant), type: "application/json", body: body)
            let response = await router.handle(call)
            #expect(response.status == 200, "\(response.text)")
            return response.text
        }
        var grant = VideoGrant.join("r")
        grant.canPublishSources = []
        let claims = AccessClaims(apiKey: TestTokens.key.name, identity: "bob", expiresAt: .max, video: grant)
        let bob = try await rooms.rooms.join(JoinRequest(claims: claims))
        let shown = try await call("GetParticipant", #"{"room":"r","identity":"bob"}"#)
        let info = try #require(try JSONSerialization.jsonObject(with: Data(shown.utf8)) as? [String: Any])
        let permission = try #require(info["permission"] as? [String: Any])
        #expect(permission["can_publish"] as? Bool == false && permission["can_subscribe"] as? Bool == true)
        let change: [String: Any] = ["room": "r", "identity": "bob", "permission": permission]
        let body = String(decoding: try JSONSerialization.data(withJSONObject: change), as: UTF8.self)
        _ = try await call("UpdateParticipant", body)
        let permissions = try await rooms.rooms.participant(bob.session).permissions
        #expect(TrackSource.allCases.allSatisfy { !permissions.mayPublish($0) })
    }
}
