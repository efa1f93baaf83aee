import AccessTokens
import MediaControl
import Primitives
import Rooms
import TestSupport
import Testing

@testable import RoomService

@Suite("Locks and passwords")
struct LockTests {
    private let plane = FakePlane()

    private func joining(_ identity: String, password: String? = nil, address: String = "192.0.2.1") -> JoinRequest {
        request(identity) {
            $0.password = password
            $0.address = address
        }
    }

    @Test("C3: without a password, with a wrong one, with the right one; moderators need none, WHIP and WHEP do")
    func password() async throws {
        let service = RoomHost(media: plane)
        let ada = try await service.join(request("ada"))
        #expect(try await service.lock(room: "R", password: "correct horse").lock == .password)
        #expect(await code { _ = try await service.join(joining("bob")) } == .passwordRequired)
        #expect(await code { _ = try await service.join(joining("bob", password: "correct")) } == .passwordWrong)
        #expect(await code { _ = try await service.join(joining("bob", password: "")) } == .passwordWrong)
        let offer = ClientDescriptions(ufrag: "clnt").offer([.audio("0")])
        #expect(await code { _ = try await service.joinPublisher(joining("enc"), offer: offer) } == .passwordRequired)
        let viewing = joining("tv", password: "x")
        #expect(
            await code { _ = try await service.joinViewer(viewing, offer: offer, follow: .dominantSpeaker) }
                == .passwordWrong)
        _ = try await service.join(joining("bob", password: "correct horse"))
        _ = try await service.joinPublisher(joining("enc", password: "correct horse"), offer: offer)
        _ = try await service.join(request("mod") { $0.claims.video.roomAdmin = true })
        #expect(
            try await service.participant("ada", in: "R").info.sid == ada.snapshot.participant.sid, "who is in stays")
        let refusals = await service.statistics().refusals
        #expect(refusals["password_wrong"] == 3 && refusals["password_required"] == 2)
        #expect(try await service.unlock(room: "R").lock == .open)
        _ = try await service.join(joining("carol"))
    }

    @Test("C3: the addresses of one IPv6 /64 are one client's; another /64 is another's")
    func networks() async throws {
        let service = RoomHost(media: plane)
        try await service.createRooms(["R"])
        try await service.lock(room: "R", password: "right")
        for guess in 0..<10 {
            let guessing = joining("bob", password: "\(guess)", address: "2001:db8:0:1::\(guess)")
            #expect(await code { _ = try await service.join(guessing) } == .passwordWrong)
        }
        let neighbour = joining("bob", password: "right", address: "2001:db8:0:1:ffff::1")
        #expect(await code { _ = try await service.join(neighbour) } == .tooManyAttempts)
        _ = try await service.join(joining("bob", password: "right", address: "2001:db8:0:2::1"))
    }

    @Test(
        "C3: after ten wrong passwords within ten seconds an address is not heard in this room for a while, and others are"
    )
    func guesses() async throws {
        let service = RoomHost(media: plane)
        try await service.createRooms(["R", "S"])
        try await service.lock(room: "R", password: "right")
        try await service.lock(room: "S", password: "right")
        for guess in 0..<10 {
            #expect(await code { _ = try await service.join(joining("bob", password: "\(guess)")) } == .passwordWrong)
            plane.pass(.milliseconds(100))
        }
        do throws(RoomError) {
            _ = try await service.join(joining("bob", password: "right"))
            Issue.record("heard")
        } catch {
            #expect(error.code == .tooManyAttempts && error.retryAfter == .seconds(9))
        }
        _ = try await service.join(joining("carol", password: "right", address: "192.0.2.2"))
        var elsewhere = joining("dora", password: "right")
        elsewhere.room = "S"
        _ = try await service.join(elsewhere)
        plane.pass(.seconds(9))
        _ = try await service.join(joining("bob", password: "right"))
    }

    @Test("Guesses at once are no way around: of 30 from one address ten are heard")
    func burst() async throws {
        let service = RoomHost(media: plane)
        try await service.createRooms(["R"])
        try await service.lock(room: "R", password: "right")
        let codes = await withTaskGroup(of: RoomError.Code?.self) { group in
            for guess in 0..<30 {
                let request = joining("p\(guess)", password: "\(guess)")
                group.addTask { await code { _ = try await service.join(request) } }
            }
            return await group.reduce(into: [RoomError.Code?: Int]()) { $0[$1, default: 0] += 1 }
        }
        #expect(codes == [.passwordWrong: 10, .tooManyAttempts: 20])
    }

    @Test("Many who know the password come in at once from one address")
    func classroom() async throws {
        let service = RoomHost(media: plane)
        try await service.createRooms(["R"])
        try await service.lock(room: "R", password: "right")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for pupil in 0..<30 {
                let request = joining("p\(pupil)", password: "right")
                group.addTask { _ = try await service.join(request) }
            }
            try await group.waitForAll()
        }
        #expect(try await service.room(named: "R").participants.count == 30)
    }

    @Test("A closed room lets nobody in but moderators, with whatever password")
    func closed() async throws {
        let service = RoomHost(media: plane)
        try await service.createRooms(["R"])
        #expect(try await service.lock(room: "R", password: nil).lock == .closed)
        #expect(await code { _ = try await service.join(joining("bob", password: "x")) } == .roomLocked)
        _ = try await service.join(request("mod") { $0.claims.video.roomAdmin = true })
        #expect(await code { try await service.lock(room: "R", password: "") } == .invalidRequest)
        let long = String(repeating: "x", count: 257)
        #expect(await code { try await service.lock(room: "R", password: long) } == .invalidRequest)
        #expect(try await service.room(named: "R").info.lock == .closed, "a refused lock changes nothing")
    }

    @Test("A lock keeps newcomers out: who is in or has just left connects anew, for a minute, not after a removal")
    func returns() async throws {
        let service = RoomHost(media: plane)
        let ada = try await service.join(request("ada")), bob = try await service.join(request("bob"))
        _ = try await service.join(request("eve"))
        _ = try await service.join(request("host"))
        try await service.lock(room: "R", password: nil)
        _ = try await service.join(joining("ada"))
        await service.leave(bob.session)
        try await service.checkJoin(joining("bob"))
        let back = try await service.join(joining("bob"))
        await service.leave(back.session)
        plane.pass(.seconds(60))
        #expect(await code { _ = try await service.join(joining("bob")) } == .roomLocked)
        #expect(await code { try await service.checkJoin(joining("bob")) } == .roomLocked)
        _ = try await service.remove("eve", from: "R")
        let newer = request("eve") { $0.claims.issuedAt = 1_700_000_001 }
        #expect(await code { _ = try await service.join(newer) } == .roomLocked)
        #expect(await code { _ = try await service.join(joining("carol")) } == .roomLocked)
        #expect(await rest(of: ada.events).last?.event == .ended(.duplicateIdentity, message: nil))
    }

    @Test("Of those who left a while ago, as many are remembered as the room may have participants")
    func remembered() {
        var members = RecentMembers()
        let start = MonotonicTime(milliseconds: 0)
        for (second, identity) in ["a", "b", "a", "c"].enumerated() {
            members.add(identity, at: start + .seconds(Int64(second)), limit: 3)
        }
        func known(at seconds: Int64) -> [String] {
            ["a", "b", "c"].filter { members.contains($0, at: start + .seconds(seconds)) }
        }
        #expect(known(at: 3) == ["a", "b", "c"])
        members.add("d", at: start + .seconds(4), limit: 3)
        #expect(known(at: 4) == ["a", "c"], "the oldest made room")
        #expect(known(at: 62) == ["c"])
        members.remove("c")
        #expect(known(at: 62).isEmpty)
    }

    @Test("C4: members get each change of the lock with the next tick, which comes within 100 ms")
    func announced() async throws {
        let service = RoomHost(media: plane)
        let ada = try await service.join(request("ada"))
        await service.tick()
        try await service.lock(room: "R", password: "x")
        await service.tick()
        try await service.unlock(room: "R")
        await service.tick()
        let locks = await take(3, from: ada.events).compactMap {
            if case .roomUpdated(let info) = $0.event { info.lock } else { nil }
        }
        #expect(locks == [.open, .password, .open])
        #expect(RoomHost.tickInterval == .milliseconds(100))
    }

    @Test(
        "C5: who may lock is policy",
        arguments: [
            (.operators, [false, false]), (.moderators, [false, true]), (.members, [true, true]),
        ] as [(RoomPolicy.LockRight, [Bool])])
    func right(_ right: RoomPolicy.LockRight, may: [Bool]) async throws {
        let service = RoomHost(media: plane)
        var document = PolicyDocument()
        document.lockRight = right
        _ = try await service.createRoom(named: "R", policy: document)
        let ada = try await service.join(request("ada")).session
        let mod = try await service.join(request("mod") { $0.claims.video.roomAdmin = true }).session
        for (session, may) in zip([ada, mod], may) {
            let lock = await code { try await service.lock(room: "R", password: "x", by: session) }
            #expect(lock == (may ? nil : .permissionDenied))
            let unlock = await code { try await service.unlock(room: "R", by: session) }
            #expect(unlock == (may ? nil : .permissionDenied))
        }
        try await service.lock(room: "R", password: "x")
        #expect(try await service.room(named: "R").info.lock == .password, "operators always may")
    }
}

extension RoomHost {
    fileprivate func createRooms(_ names: [String]) async throws {
        for name in names { _ = try await createRoom(named: name) }
    }
}
