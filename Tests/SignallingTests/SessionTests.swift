import AccessTokens
import EdgeSupport
import EdgeTestSupport
import HTTPServing
import Primitives
import RoomService
import Rooms
import TestSupport
import Testing

@testable import Signalling

@Suite("martlet.v1: one socket")
struct SessionTests {
    @Test("C1: connecting and joining are distinct; a refused join has a code and may be tried again")
    func twoSteps() async throws {
        var client = try await Client("ada", to: TestRooms())
        let refused = await client.join("\"metadata\":\"\(String(repeating: "m", count: 100_000))\"")
        #expect(refused?.type == "error" && refused?.code == "too_large")
        #expect(await client.join()?.type == "joined")
        #expect(await client.join()?.code == "already_joined")
    }

    @Test(
        "C11: a socket that was opened while no server had a secret is notified of one whose credentials expire, and of each change after it"
    )
    func newServers() async throws {
        let settings = Live(ICEServers.Settings([ICEServers.Entry(ICEServer(urls: ["stun:stun.example.org"]))]))
        var client = try await Client("ada", to: TestRooms(iceServers: settings))
        var relay = ICEServers.Entry(ICEServer(urls: ["turn:turn.example.org"]))
        relay.secret = "north-south-east-west"
        settings.value = ICEServers.Settings([relay], lifetimeSeconds: 600)
        let reported = try #require(await client.ears.next("iceServers")?.list("iceServers"))
        #expect(reported.count == 1 && reported[0]["urls"] as? [String] == ["turn:turn.example.org"])
        #expect((reported[0]["username"] as? String)?.hasPrefix("600:") == true && reported[0]["credential"] != nil)
        settings.value = ICEServers.Settings([])
        #expect(await client.ears.next("iceServers")?.list("iceServers")?.isEmpty == true)
    }

    @Test("A token that has expired since the socket was opened joins nothing; another of that person and room does")
    func expiredMeanwhile() async throws {
        var guest = try await Client("ada", to: TestRooms(), expiresAt: TestTokens.now - 61)
        #expect(await guest.join()?.code == "token_expired")
        for (identity, code) in [("bob", "permission_denied"), ("ada", nil)] as [(String, String?)] {
            let token = try TestTokens.token(identity, .join(nil))
            #expect(await guest.ask("token", "\"token\":\"\(token)\"")?.code == code)
        }
        #expect(await guest.join()?.type == "joined")
    }

    @Test("B4: a room that the token is not for is refused, in the address before the upgrade, in join by its reply")
    func roomMismatch() async throws {
        let house = TestRooms()
        let edge = SignallingEdge(context: house.context, limits: WebSocketLimits())
        let token = try TestTokens.token("ada", .join("kitchen"))
        var router = Router()
        edge.register(on: &router)
        for (room, status) in [("kitchen", 426), ("", 426), ("board", 403)] {
            let asked = try request(.get, "\(SignallingEdge.path)?room=\(room)", token: token)
            let plain = await router.handle(asked)
            #expect(plain.status == status)
            let isRefused: Bool
            if case .refuse(let response) = await edge.webSocketRoute.decide(asked) {
                isRefused = true
                #expect(response.text == plain.text && response.text.contains("\"code\":\"room_mismatch\""))
            } else {
                isRefused = false
            }
            #expect(isRefused == (status == 403))
        }
        var ada = try await Client("ada", to: house, room: nil, grant: .join("kitchen"))
        #expect(await ada.join("\"room\":\"board\"")?.code == "room_mismatch")
        #expect(await house.rooms.listRooms().isEmpty)
        let joined = await ada.join("\"room\":\"kitchen\"")
        #expect(joined?.object("room")?["name"] as? String == "kitchen")
    }

    @Test("A page whose socket a full server refused learns that by a plain GET, where its token is good")
    func full() async throws {
        let edge = SignallingEdge(context: TestRooms().context, limits: WebSocketLimits())
        var router = Router()
        edge.register(on: &router)
        let good = try TestTokens.token("ada")
        for (token, status) in [(good, 503), ("wrong", 401)] {
            var asked = try request(.get, SignallingEdge.path, token: token)
            asked.webSocketRefusal = HTTPRefusal(status: 503, code: "overloaded", detail: "full")
            let answer = await router.handle(asked)
            #expect(answer.status == status)
            #expect((answer.headers["Retry-After"] == "10") == (status == 503))
        }
    }

    @Test("D1: the reply to join is the roster; events go on from its number without a gap (C17)")
    func rosterAndSequence() async throws {
        let house = TestRooms()
        var ada = try await Client("ada", to: house)
        await ada.join()
        var bob = try await Client("bob", to: house)
        let joined = try #require(await bob.join())
        #expect(joined.list("participants")?.map { $0["identity"] as? String } == ["ada"])
        let start = try #require(joined.seq)
        var carol = try await Client("carol", to: house)
        await carol.join()
        _ = await carol.ask("leave")
        var expected = start
        while let event = await bob.ears.next() {
            expected += 1
            #expect(event.seq == expected)
            if event.type == "participantLeft" { break }
        }
        #expect(expected >= start + 2)
    }

    @Test("D2: unknown types and garbage are answered, and the socket stays open")
    func garbage() async throws {
        let house = TestRooms()
        var client = try await Client("ada", to: house)
        #expect(await client.ask("dance")?.code == "unknown_type")
        client.socket.deliver("]")
        #expect(await client.ears.next()?.code == "malformed_message")
        #expect(await client.ask("mute", "\"track\":\"TR_1\",\"muted\":true")?.code == "not_joined")
        #expect(await client.join()?.type == "joined")
        #expect(await client.ask("ping")?.type == "pong")
        #expect(await client.ask("mute", "\"track\":\"TR_none\",\"muted\":true")?.code == "track_not_found")
    }

    @Test("A binary frame closes with 1003")
    func binary() async throws {
        var client = try await Client("ada", to: TestRooms())
        client.socket.deliver(binary: [1])
        #expect(await client.ears.closeCode() == 1003)
    }

    @Test("Requests without end are refused, then the socket is closed with 1008")
    func flood() async throws {
        let house = TestRooms()
        var client = try await Client("ada", to: house)
        // On a busy machine so many requests take longer than a client has to join.
        #expect(await client.join()?.type == "joined")
        for _ in 0..<(RequestBudget.burst + RequestBudget.patience + 1) {
            client.socket.deliver("{\"type\":\"ping\",\"id\":1}")
        }
        #expect(await client.ears.next("error")?.code == "too_many_requests")
        #expect(await client.ears.closeCode() == 1008)
    }

    @Test("leave is confirmed, ended has the reason, the socket closes with 1000, others are notified once")
    func leaving() async throws {
        let house = TestRooms()
        var ada = try await Client("ada", to: house)
        await ada.join()
        var bob = try await Client("bob", to: house)
        await bob.join()
        #expect(await bob.ask("leave")?.type == "ok")
        #expect(await bob.ears.next("ended")?.text("reason") == "left")
        #expect(await bob.ears.closeCode() == 1000)
        let left = await ada.ears.next("participantLeft")
        #expect(left?.text("identity") == "bob")
        await bob.server.value
        #expect(await house.rooms.statistics().participants == 1)
    }

    @Test("D5: bye ends one connection, not the member")
    func bye() async throws {
        let house = TestRooms()
        var ada = try await Client("ada", to: house)
        await ada.join()
        let offer = ClientDescriptions(ufrag: "adaa").offer([.audio("0")])
        let answer = await ada.offer("pub", offer)
        #expect(answer?.type == "answer")
        let second = await ada.offer("screen", ClientDescriptions(ufrag: "adab").offer([.video("0")]))
        #expect(second?.type == "answer")
        #expect(await ada.ask("bye", "\"connection\":\"pub\"")?.type == "ok")
        #expect(await ada.ask("bye", "\"connection\":\"pub\"")?.code == "connection_not_found")
        let snapshot = await ada.ask("snapshot")
        let tracks = snapshot?.object("participant")?["tracks"] as? [[String: Any]]
        #expect(tracks?.map { $0["kind"] as? String } == ["video"])
    }

    @Test("C6: a mute is announced to the others; C13: the roster's flags follow")
    func muting() async throws {
        let house = TestRooms()
        var ada = try await Client("ada", to: house)
        await ada.join()
        var bob = try await Client("bob", to: house)
        await bob.join()
        let answer = try #require(await ada.offer("pub", ClientDescriptions(ufrag: "adaa").offer([.audio("0")])))
        let track = try #require(answer.object("tracks")?["0"] as? String)
        #expect(await bob.ears.next("trackPublished")?.object("track")?["sid"] as? String == track)
        #expect(await ada.ask("mute", "\"track\":\"\(track)\",\"muted\":true")?.type == "ok")
        let updated = await bob.ears.next("trackUpdated")
        #expect(updated?.object("track")?["muted"] as? Bool == true)
        let snapshot = await bob.ask("snapshot")
        let flags = snapshot?.list("participants")?.first?["resources"] as? [String: Bool]
        #expect(flags == ["audio": false, "video": false, "screen": false])
    }

    @Test("D4, F3: candidates before the offer, of every kind, and malformed do no harm")
    func candidates() async throws {
        var client = try await Client("ada", to: TestRooms())
        await client.join()
        for candidate in [
            "\"candidate:1 1 udp 2122260223 192.0.2.7 50123 typ host\"",
            "\"candidate:1 1 udp 2122260223 4f7a.local 50123 typ host\"", "\"nonsense\"", "null", "\"\"",
        ] {
            let reply = await client.ask("ice", "\"connection\":\"pub\",\"candidate\":\(candidate)")
            #expect(reply?.type == "ok", "\(candidate)")
        }
        let long = await client.ask(
            "ice", "\"connection\":\"pub\",\"candidate\":\"\(String(repeating: "c", count: 1_025))\"")
        #expect(long?.code == "too_large")
        let offer = ClientDescriptions(ufrag: "adaa").offer([.audio("0")])
        #expect(await client.offer("pub", offer)?.type == "answer")
    }
}
