import AccessTokens
import EdgeTestSupport
import Primitives
import RoomService
import TestSupport
import Testing

@testable import Signalling

@Suite("martlet.v1: resume")
struct ResumeTests {
    @Test("A dropped socket is resumed with the events that it missed, and nobody noticed")
    func missedEvents() async throws {
        let house = TestRooms()
        var ada = try await Client("ada", to: house)
        let joined = try #require(await ada.join())
        let session = try #require(joined.text("session"))
        let start = try #require(joined.seq)
        ada.socket.vanish()
        await ada.server.value
        #expect(await house.rooms.statistics().detachedSessions == 1)
        var bob = try await Client("bob", to: house)
        let roster = try #require(await bob.join())
        #expect(roster.list("participants")?.count == 1)
        var again = try await Client("ada", to: house)
        #expect(await again.ask("resume", "\"session\":\"\(session)\",\"seq\":\(start)")?.type == "resumed")
        let missed = await again.ears.next()
        #expect(missed?.seq == start + 1)
        #expect(await house.rooms.statistics().detachedSessions == 0)
        #expect(await again.ask("ping")?.type == "pong")
    }

    @Test("A message that is sent again, because its reply was lost with the socket, is delivered once")
    func messageSentAgain() async throws {
        let house = TestRooms()
        var bob = try await Client("bob", to: house)
        await bob.join()
        var ada = try await Client("ada", to: house)
        let session = try #require(await ada.join()?.text("session"))
        let message = "\"sequence\":1,\"text\":\"Hello\""
        #expect(await ada.ask("data", message)?.type == "ok")
        ada.socket.vanish()
        await ada.server.value
        var again = try await Client("ada", to: house)
        #expect(await again.ask("resume", "\"session\":\"\(session)\",\"seq\":0")?.type == "resumed")
        #expect(await again.ask("data", message)?.type == "ok")
        #expect(await again.ask("data", "\"sequence\":2,\"text\":\"Bye\"")?.type == "ok")
        #expect(await bob.ears.next("data")?.text("text") == "Hello")
        #expect(await bob.ears.next("data")?.text("text") == "Bye")
    }

    @Test("The older socket is closed with 4002, and its end does not detach the newer one")
    func takenOver() async throws {
        let house = TestRooms()
        var old = try await Client("ada", to: house)
        let joined = try #require(await old.join())
        let session = try #require(joined.text("session"))
        var new = try await Client("ada", to: house)
        #expect(await new.ask("resume", "\"session\":\"\(session)\",\"seq\":0")?.type == "resumed")
        #expect(await old.ears.closeCode() == 4002)
        await old.server.value
        let statistics = await house.rooms.statistics()
        #expect(statistics.detachedSessions == 0)
        #expect(statistics.participants == 1)
        #expect(await new.ask("ping")?.type == "pong")
    }

    @Test(
        "A device that wakes after its session has ended does not end the newer one of its identity: it is closed with 4004"
    )
    func replaced() async throws {
        let house = TestRooms()
        // A token that names no room: the client does, where it knows it.
        var old = try await Client("ada", to: house)
        let session = try #require(await old.join()?.text("session"))
        old.socket.vanish()
        await old.server.value
        var new = try await Client("ada", to: house)
        let newer = try #require(await new.join()?.text("session"))
        #expect(newer != session)
        for (query, room) in [("lobby", ""), (nil, ",\"room\":\"lobby\"")] as [(String?, String)] {
            var awake = try await Client("ada", to: house, room: query)
            awake.socket.deliver("{\"type\":\"resume\",\"id\":1,\"session\":\"\(session)\",\"seq\":0\(room)}")
            #expect(await awake.ears.closeCode() == 4004)
        }
        #expect(await new.ask("ping")?.type == "pong")
        #expect(await house.rooms.statistics().participants == 1)
    }

    @Test("Only the identity that joined resumes; unknown sessions and future numbers are refused")
    func refused() async throws {
        let house = TestRooms()
        var ada = try await Client("ada", to: house)
        let session = try #require(await ada.join()?.text("session"))
        var eve = try await Client("eve", to: house)
        #expect(await eve.ask("resume", "\"session\":\"\(session)\",\"seq\":0")?.code == "session_not_found")
        #expect(await eve.ask("resume", "\"session\":\"SE_none\",\"seq\":0")?.code == "session_not_found")
        var elsewhere = try await Client("ada", to: house, room: nil, grant: .join("kitchen"))
        #expect(await elsewhere.ask("resume", "\"session\":\"\(session)\",\"seq\":0")?.code == "room_mismatch")
        var operating = try await Client("ada", to: house, grant: TestTokens.operatorGrant)
        #expect(await operating.ask("resume", "\"session\":\"\(session)\",\"seq\":0")?.code == "permission_denied")
        var listening = VideoGrant.join(nil)
        listening.canPublish = false
        var changed = try await Client("ada", to: house, grant: listening)
        #expect(await changed.ask("resume", "\"session\":\"\(session)\",\"seq\":0")?.code == "grants_changed")
        var again = try await Client("ada", to: house)
        #expect(await again.ask("resume", "\"session\":\"\(session)\",\"seq\":99")?.code == "resume_too_late")
        #expect(await again.ask("resume", "\"session\":\"\(session)\",\"seq\":0")?.type == "resumed")
    }

    @Test("B18: a newer session of the same identity ends the older one with 4004")
    func duplicate() async throws {
        let house = TestRooms()
        var old = try await Client("ada", to: house)
        await old.join()
        var new = try await Client("ada", to: house)
        #expect(await new.join()?.type == "joined")
        #expect(await old.ears.closeCode() == 4004)
        #expect(await house.rooms.statistics().participants == 1)
    }
}
