import AccessTokens
import EdgeSupport
import EdgeTestSupport
import HTTPServing
import RoomService
import Rooms
import TestSupport
import Testing

@testable import WHIP

/// The endpoints of WHIP and WHEP over rooms without media.
struct TestEndpoints {
    let rooms: TestRooms
    let router: Router

    init(iceServers: [ICEServer] = []) {
        rooms = TestRooms(iceServers: iceServers)
        var router = Router(refuse: { Problem($0).response }, finish: { CrossOrigin().apply($0, &$1) })
        WHIPEdge(context: rooms.context).register(on: &router)
        self.router = router
    }

    func post(
        _ target: String, _ offer: String, identity: String = "cam", grant: VideoGrant = .join(nil),
        headers: HTTPHeaders = [:]
    ) async throws -> HTTPResponse {
        await router.handle(
            try request(
                .post, target, token: TestTokens.token(identity, grant), type: "application/sdp", headers: headers,
                body: offer))
    }

    static let offer = ClientDescriptions(ufrag: "clnt").offer([.audio("0"), .video("1")])
    static let viewerOffer = ClientDescriptions(ufrag: "view").offer([.audio("0", "recvonly"), .video("1", "recvonly")])
}

@Suite("WHIP and WHEP: endpoints")
struct PublishTests {
    @Test("An offer is answered with 201, Location, ETag and ICE servers (RFC 9725)")
    func created() async throws {
        let endpoints = TestEndpoints(iceServers: [
            ICEServer(urls: ["stun:a.example"]), ICEServer(urls: ["stun:b.example"]),
        ])
        let response = try await endpoints.post("/whip/studio", TestEndpoints.offer)
        #expect(response.status == 201)
        #expect(response.headers["Content-Type"] == "application/sdp")
        #expect(response.headers["Location"]?.hasPrefix("/whip/session/") == true)
        let tag = try #require(response.headers["ETag"])
        #expect(tag.hasPrefix("\"") && tag.hasSuffix("\"") && tag.count > 2)
        #expect(response.headers.values("Link").count == 2)
        #expect(response.text.contains("a=ice-lite"))
        #expect(response.text.contains("a=candidate:"))
        let room = try await endpoints.rooms.rooms.room(named: "studio")
        #expect(room.participants.map(\.info.profile) == [.publishOnly])
        #expect(room.participants[0].info.tracks.count == 2)
    }

    @Test(
        "Tracks beyond a participant's 32 are refused in the answer, and a Warning field says how many",
        arguments: [0, 1, 2])
    func tracksBeyondLimit(beyond: Int) async throws {
        let endpoints = TestEndpoints()
        let offer = ClientDescriptions(ufrag: "clnt").offer((0..<32 + beyond).map { .audio("\($0)") })
        let response = try await endpoints.post("/whip/studio", offer)
        #expect(response.status == 201)
        #expect(
            response.headers["Warning"]
                == [
                    nil, "199 martlet \"1 track of the offer is not published: a participant may publish 32\"",
                    "199 martlet \"2 tracks of the offer are not published: a participant may publish 32\"",
                ][beyond])
        #expect(try await endpoints.rooms.rooms.room(named: "studio").participants[0].info.tracks.count == 32)
    }

    @Test(
        "Every captured publishing offer is answered",
        arguments: [
            "chromium156_max_bundle_whip", "chromium156_simulcast_h264", "chromium156_sendonly_simulcast_vp8_gathered",
            "firefox153esr_whip.offer", "ffmpeg9_whip_offer", "chromium156_svc_av1_L3T3",
            "chromium156_svc_vp9_L3T3_KEY",
        ])
    func captured(name: String) async throws {
        let response = try await TestEndpoints().post("/whip/studio", Fixtures.offer(name))
        #expect(response.status == 201, "\(name): \(response.text)")
    }

    @Test(
        "B4: the token's room, which the path may name; another one is refused on WHIP and WHEP; without either, the default room"
    )
    func rooms() async throws {
        let endpoints = TestEndpoints()
        for (target, offer) in [
            ("/whip/other", TestEndpoints.offer), ("/whep/other", TestEndpoints.viewerOffer),
            ("/whep/other/cam", TestEndpoints.viewerOffer),
        ] {
            let refused = try await endpoints.post(target, offer, grant: .join("mine"))
            #expect(refused.status == 403 && refused.text.contains("\"code\":\"room_mismatch\""), "\(target)")
        }
        #expect(try await endpoints.post("/whip/mine", TestEndpoints.offer, grant: .join("mine")).status == 201)
        #expect(try await endpoints.post("/whip", TestEndpoints.offer, grant: .join("mine")).status == 201)
        #expect(try await endpoints.post("/whip", TestEndpoints.offer, identity: "second").status == 201)
        #expect(await endpoints.rooms.rooms.listRooms().map(\.name) == ["Broadcast", "mine"])
    }

    @Test(
        "4.2: a room that cannot be part of a path is refused, percent-encoded or not",
        arguments: [".", "..", "%2e%2E", "%20", "a%0a"])
    func unaddressable(part: String) async throws {
        let endpoints = TestEndpoints()
        #expect(try await endpoints.post("/whip/\(part)", TestEndpoints.offer).status == 400)
        #expect(await endpoints.rooms.rooms.listRooms().isEmpty)
    }

    @Test(
        "A malformed offer is refused with a specific error",
        arguments: [
            ("application/json", TestEndpoints.offer, 415, "unsupported_media_type"),
            ("application/sdp", "", 400, "invalid_sdp"),
            ("application/sdp", "hello", 400, "invalid_sdp"),
            ("application/sdp; charset=utf-8", "v=0\r\n", 400, "invalid_sdp"),
        ])
    func malformed(type: String, body: String, status: Int, code: String) async throws {
        let endpoints = TestEndpoints()
        let response = await endpoints.router.handle(
            try request(.post, "/whip/studio", token: TestTokens.token("cam"), type: type, body: body))
        #expect(response.status == status, "\(response.text)")
        #expect(response.headers["Content-Type"] == "application/problem+json")
        #expect(response.text.contains("\"code\":\"\(code)\""), "\(response.text)")
        if status == 415 { #expect(response.headers["Accept-Post"] == "application/sdp") }
        #expect(await endpoints.rooms.rooms.statistics().participants == 0)
    }

    @Test("A token is required, and one without permission to publish is refused")
    func tokens() async throws {
        let endpoints = TestEndpoints()
        let bare = await endpoints.router.handle(
            try request(.post, "/whip/studio", type: "application/sdp", body: TestEndpoints.offer))
        #expect(bare.status == 401)
        #expect(bare.headers["WWW-Authenticate"]?.hasPrefix("Bearer") == true)
        var grant = VideoGrant.join(nil)
        grant.canPublish = false
        #expect(try await endpoints.post("/whip/studio", TestEndpoints.offer, grant: grant).status == 403)
        #expect(try await endpoints.post("/whip/studio", TestEndpoints.offer, grant: VideoGrant()).status == 403)
    }

    @Test("Other methods are 405 with Allow; OPTIONS returns Accept-Post and permits preflights")
    func methods() async throws {
        let endpoints = TestEndpoints()
        for method in [HTTPMethod.get, .put, .delete, .head] {
            let response = await endpoints.router.handle(try request(method, "/whip/studio"))
            #expect(response.status == 405)
            #expect(response.headers["Allow"]?.contains("POST") == true)
        }
        let options = await endpoints.router.handle(
            try request(
                .options, "/whip/studio",
                headers: ["Origin": "https://a.example", "Access-Control-Request-Method": "POST"]))
        #expect(options.status == 204)
        #expect(options.headers["Accept-Post"] == "application/sdp")
        #expect(options.headers["Access-Control-Allow-Methods"]?.contains("POST") == true)
        let created = try await endpoints.post(
            "/whip/studio", TestEndpoints.offer, headers: ["Origin": "https://a.example"])
        #expect(created.headers["Access-Control-Expose-Headers"]?.contains("Location") == true)
    }

    @Test("WHEP plays one participant, or the dominant speaker")
    func playing() async throws {
        let endpoints = TestEndpoints()
        _ = try await endpoints.post("/whip/studio", TestEndpoints.offer)
        let one = try await endpoints.post("/whep/studio/cam", TestEndpoints.viewerOffer, identity: "viewer")
        #expect(one.status == 201, "\(one.text)")
        #expect(one.headers["Location"]?.hasPrefix("/whep/session/") == true)
        #expect(one.text.contains("a=sendonly"))
        let follow = try await endpoints.post("/whep/studio", TestEndpoints.viewerOffer, identity: "follower")
        #expect(follow.status == 201, "\(follow.text)")
        #expect(try await endpoints.rooms.rooms.room(named: "studio").info.publishers == 1)
    }

    @Test("B22: a player's answer has candidates of the server, and no address or ICE credentials of the publisher")
    func addresses() async throws {
        let endpoints = TestEndpoints()
        var voice = ClientDescriptions.Section.audio("0")
        voice.extra = ["a=candidate:1 1 udp 2122260223 203.0.113.77 50123 typ host"]
        var camera = ClientDescriptions(ufrag: "camsfragment")
        camera.password = "camspasswordcamspassword"
        #expect(try await endpoints.post("/whip/studio", camera.offer([voice, .video("1")])).status == 201)
        let answer = try await endpoints.post("/whep/studio/cam", TestEndpoints.viewerOffer, identity: "viewer")
        #expect(answer.status == 201 && answer.text.contains("a=sendonly") && answer.text.contains("a=candidate:"))
        for secret in ["203.0.113.77", "camsfragment", "camspassword", ClientDescriptions.fingerprint] {
            #expect(!answer.text.contains(secret), "\(secret)")
        }
    }

    @Test("A WHEP offer that receives nothing is refused")
    func nothingToPlay() async throws {
        let response = try await TestEndpoints().post(
            "/whep/studio", ClientDescriptions(ufrag: "view").offer([.audio("0", "inactive")]), identity: "viewer")
        #expect((400..<500).contains(response.status))
    }
}
