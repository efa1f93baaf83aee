import AccessTokens
import Primitives
import Rooms
import Synchronization
import TestSupport
import Testing

@testable import RoomService

/// Writes rules down when it is let.
private final class SlowStore: Sendable {
    private let state = Mutex((kept: [StandingRule](), holds: false, waiting: [CheckedContinuation<Void, Never>]()))

    var kept: [StandingRule] { state.withLock { $0.kept } }
    var isAsked: Bool { state.withLock { !$0.waiting.isEmpty } }

    func hold() { state.withLock { $0.holds = true } }
    func release() {
        let waiting = state.withLock { state in
            defer { (state.holds, state.waiting) = (false, []) }
            return state.waiting
        }
        for one in waiting { one.resume() }
    }
    func keep(_ rule: StandingRule) async {
        await withCheckedContinuation { asked in
            let goesOn = state.withLock { state in
                if state.holds { state.waiting.append(asked) }
                return !state.holds
            }
            if goesOn { asked.resume() }
        }
        state.withLock { $0.kept.append(rule) }
    }
}

@Suite("Revoked tokens, and rules that outlast the process")
struct RevocationTests {
    private let plane = FakePlane()

    private func joining(_ identity: String, token: String? = nil, issuedAt: Int64? = nil) -> JoinRequest {
        request(identity) {
            $0.claims.tokenID = token
            $0.claims.issuedAt = issuedAt
        }
    }

    @Test("Who follows events does so as long as its token is good: until it is revoked, or a minute after its end")
    func feeds() async throws {
        let service = RoomHost(media: plane)
        func claims(_ identity: String, until expiresAt: Int64) -> AccessClaims {
            AccessClaims(apiKey: "k", identity: identity, expiresAt: expiresAt)
        }
        let now: Int64 = 1_700_000_000
        let old = await service.follow(room: "R", after: nil, bearer: claims("old", until: now - 60))
        let mod = await service.follow(room: "R", after: nil, bearer: claims("mod", until: now - 59))
        let other = await service.follow(room: "R", after: nil, bearer: claims("other", until: now + 60))
        _ = try await service.createRoom(named: "R")
        _ = try await service.revoke(.identity("mod"), for: .seconds(60))
        let revoked = await service.follow(room: "R", after: nil, bearer: claims("mod", until: now + 60))
        try await service.deleteRoom(named: "R")
        await service.shutDown()
        var counts: [Int] = []
        for feed in [old, mod, other, revoked] {
            counts.append(await feed.events.reduce(0) { count, _ in count + 1 })
        }
        #expect(counts == [0, 1, 2, 0])
    }

    @Test("Who follows events with a token of a key that is replaced comes to the end; readers of other keys go on")
    func feedsOfKeys() async throws {
        let service = RoomHost(media: plane)
        var feeds: [EventFeed] = []
        for key in ["leaked", "kept"] {
            let claims = AccessClaims(apiKey: key, identity: "mod", expiresAt: .max)
            feeds.append(await service.follow(room: "R", after: nil, bearer: claims))
        }
        _ = try await service.createRoom(named: "R")
        await service.endFeeds(ofKeys: ["leaked", "unknown"])
        try await service.deleteRoom(named: "R")
        await service.shutDown()
        var counts: [Int] = []
        for feed in feeds { counts.append(await feed.events.reduce(0) { count, _ in count + 1 }) }
        #expect(counts == [1, 2])
    }

    @Test("I8: a revoked token ends the stay that it began and begins none; another token of the identity does")
    func byToken() async throws {
        let service = RoomHost(media: plane)
        let ada = try await service.join(joining("ada", token: "t-1"))
        _ = try await service.join(joining("bob", token: "t-2"))
        _ = try await service.revoke(.token("t-1"), for: .seconds(60))
        #expect(try await service.room(named: "R").participants.map(\.info.identity) == ["bob"])
        #expect(await code { _ = try await service.join(joining("ada", token: "t-1")) } == .tokenRevoked)
        #expect(service.revocations.revokes(joining("ada", token: "t-1").claims, now: plane.now()))
        _ = try await service.join(joining("ada", token: "t-3"))
        try await service.endRevocation(of: .token("t-1"))
        _ = try await service.join(joining("ada", token: "t-1"))
        #expect(await code { try await service.endRevocation(of: .token("t-1")) } == .revocationNotFound)
        _ = ada
    }

    @Test("I8: a revoked identity leaves every room; tokens that were issued before are refused, later ones are not")
    func byIdentity() async throws {
        let service = RoomHost(media: plane)
        let second = plane.wallClockMilliseconds() / 1_000
        _ = try await service.join(joining("ada", issuedAt: second))
        _ = try await service.join(request("ada") { $0.room = "S" })
        _ = try await service.revoke(.identity("ada"), for: .seconds(60))
        #expect(await service.statistics().participants == 0)
        #expect(await code { _ = try await service.join(joining("ada", issuedAt: second)) } == .tokenRevoked)
        #expect(await code { _ = try await service.join(joining("ada")) } == .tokenRevoked, "it may be of any age")
        _ = try await service.join(joining("ada", issuedAt: second + 1))
        #expect(await service.listRevocations().map(\.subject) == [.identity("ada")])
    }

    @Test(
        "A resume by a token that ends later prolongs the stay, which ends when that is revoked; an earlier end, a revoked token and one from before a removal do not"
    )
    func resume() async throws {
        var configuration = RoomServiceConfiguration()
        configuration.defaultPolicy.endsStayWithToken = true
        configuration.defaultPolicy.duplicateIdentity = .allow
        let service = RoomHost(configuration: configuration, media: plane)
        let second = plane.wallClockMilliseconds() / 1_000
        func claims(_ identity: String, _ token: String, until end: Int64) -> AccessClaims {
            request(identity) {
                $0.claims.tokenID = token
                $0.claims.issuedAt = second
                $0.claims.expiresAt = second + end
            }.claims
        }
        func join(_ identity: String, _ token: String) async throws -> JoinedSession {
            try await service.join(JoinRequest(claims: claims(identity, token, until: 20), room: "R"))
        }
        let ada = try await join("ada", "t-1"), bob = try await join("bob", "t-2")
        let eve = try await join("eve", "t-3"), twin = try await join("eve", "t-3")
        _ = try await service.revoke(.token("t-4"), for: .seconds(60))
        _ = try await service.remove(eve.snapshot.participant.sid, from: "R")
        for (session, claims) in [
            (ada.session, claims("ada", "t-5", until: 28)), (ada.session, claims("ada", "t-6", until: 10)),
            (bob.session, claims("bob", "t-4", until: 28)), (twin.session, claims("eve", "t-7", until: 28)),
        ] { _ = try await service.resume(session, after: 0, claims: claims) }
        plane.pass(.seconds(21))
        await service.tick()
        #expect(try await service.room(named: "R").participants.map(\.info.identity) == ["ada"])
        for (token, left) in [("t-1", 1), ("t-5", 0)] {
            _ = try await service.revoke(.token(token), for: .seconds(60))
            #expect(await service.statistics().participants == left)
        }
    }

    @Test("A revocation is an event of the server, before the stays that it ends, and its end is one")
    func events() async throws {
        let service = RoomHost(media: plane)
        _ = try await service.join(joining("ada", token: "t-1"))
        let feed = await service.follow(
            room: nil, types: [.revocationStarted, .revocationEnded, .participantLeft], after: .beginning)
        let revocation = try await service.revoke(.token("t-1"), for: .seconds(60), by: "key/op")
        try await service.endRevocation(of: .token("t-1"), by: "key")
        #expect(await code { try await service.endRevocation(of: .token("t-1")) } == .revocationNotFound)
        await service.closeEvents()
        let entries = await feed.events.reduce(into: []) { $0.append($1) }
        #expect(entries.map(\.event.type) == [.revocationStarted, .participantLeft, .revocationEnded])
        guard entries.count == 3 else { return }
        #expect(entries[0].event == .revocationChanged(.token("t-1"), until: revocation.until, by: "key/op"))
        #expect(entries[2].event == .revocationChanged(.token("t-1"), until: nil, by: "key"))
        #expect(entries.map(\.concernsServer) == [true, false, true])
        #expect([entries[0].sequence, entries[2].sequence] == [1, 2])
    }

    @Test(
        "Stays end before their ban or revocation is written down; rules are written in the order of their making",
        .timeLimit(.minutes(1)))
    func slowStore() async throws {
        let store = SlowStore()
        let service = RoomHost(media: plane, keep: { await store.keep($0) })
        _ = try await service.join(request("ada"))
        _ = try await service.join(joining("bob", token: "t-1"))
        store.hold()
        let banning = Task { try await service.ban("ada", from: "R", for: .seconds(60), reason: "") }
        while !store.isAsked { try await giveWay() }
        try #require(await service.room(named: "R").participants.map(\.info.identity) == ["bob"])
        let revoking = Task { try await service.revoke(.token("t-1"), for: .seconds(60)) }
        while await service.statistics().participants > 0 { try await giveWay() }
        let ending = Task {
            try await service.endRevocation(of: .token("t-1"))
        }
        while await !service.listRevocations().isEmpty { try await giveWay() }
        let lifting = Task { try await service.endBan(of: "ada", in: "R") }
        while await !service.bans(ofRoom: "R").isEmpty { try await giveWay() }
        #expect(store.kept.isEmpty)
        store.release()
        _ = try await (banning.value, revoking.value)
        _ = try await (ending.value, lifting.value)
        // Who was banned also needs a newer token.
        let kept = store.kept.filter { if case .closure = $0 { false } else { true } }
        try #require(kept.count == 4)
        guard case .ban("ada", "R", .some) = kept[0], case .revocation(.token("t-1"), .some) = kept[1] else {
            Issue.record("\(kept)")
            return
        }
        #expect(Array(kept[2...]) == [.revocation(.token("t-1"), nil), .ban(identity: "ada", room: "R", nil)])
    }

    @Test("A token that is revoked during a stay cannot prolong it")
    func refresh() async throws {
        let service = RoomHost(media: plane)
        let ada = try await service.join(joining("ada", token: "t-1"))
        _ = try await service.revoke(.token("t-2"), for: .seconds(60))
        let revoked = joining("ada", token: "t-2").claims
        #expect(await code { try await service.refreshToken(revoked, of: ada.session) } == .tokenRevoked)
    }

    @Test("I8: a ban ends every stay of its identity, where a policy lets it be there more than once")
    func banOfTwoStays() async throws {
        let service = RoomHost(media: plane)
        var policy = PolicyDocument()
        policy.duplicateIdentity = .allow
        _ = try await service.createRoom(named: "R", policy: policy)
        for identity in ["ada", "ada", "bob"] { _ = try await service.join(request(identity)) }
        #expect(try await service.room(named: "R").participants.count == 3)
        _ = try await service.remove("ada", from: "R", ban: .seconds(60))
        #expect(try await service.room(named: "R").participants.map(\.info.identity) == ["bob"])
        let later = plane.wallClockMilliseconds() / 1_000 + 1
        #expect(await code { _ = try await service.join(joining("ada", issuedAt: later)) } == .banned)
    }

    @Test("I8: a ban is kept, and ends the stay, also while the room's media worker hangs")
    func banWhileWorkerHangs() async throws {
        let kept = Mutex<[StandingRule]>([])
        let service = RoomHost(media: plane, keep: { rule in kept.withLock { $0.append(rule) } })
        _ = try await service.join(request("eve"))
        _ = try await service.join(request("bob"))
        plane.setHangs(true)
        _ = try await service.remove("eve", from: "R", message: "spam", ban: .seconds(60))
        #expect(await service.listRooms().map(\.participants) == [1])
        let bans = kept.withLock { $0.filter { if case .ban("eve", "R", _?) = $0 { true } else { false } } }
        #expect(bans.count == 1)
    }

    @Test("Presets, bans, revocations and closed rooms hold in the next life of the service; what was ended does not")
    func restore() async throws {
        let kept = Mutex<[StandingRule]>([])
        let first = RoomHost(media: plane, keep: { rule in kept.withLock { $0.append(rule) } })
        var document = PolicyDocument()
        document.maxParticipants = 1
        #expect(try await first.setPreset(document, named: "small"))
        #expect(try await first.setPreset(document, named: "gone"))
        try await first.deletePreset(named: "gone")
        _ = try await first.join(request("eve"))
        _ = try await first.remove("eve", from: "R", message: "spam", ban: .seconds(60))
        _ = try await first.revoke(.token("t-1"), for: .seconds(60))
        _ = try await first.revoke(.token("t-2"), for: .seconds(60))
        try await first.endRevocation(of: .token("t-2"))
        let rules = kept.withLock { $0 }
        let second = RoomHost(media: plane)
        await second.restore(
            rules.filter { rule in
                // What a store gives back: the last word about each.
                if case .preset("gone", _?) = rule { return false }
                if case .revocation(.token("t-2"), _?) = rule { return false }
                return true
            })
        #expect(await second.listPresets().map(\.name) == ["small"])
        #expect(await code { _ = try await second.join(request("eve")) } == .participantRemoved)
        let later = plane.wallClockMilliseconds() / 1_000 + 1
        #expect(await code { _ = try await second.join(joining("eve", issuedAt: later)) } == .banned)
        #expect(await second.bans(ofRoom: "R").map(\.reason) == ["spam"])
        #expect(await code { _ = try await second.join(joining("ada", token: "t-1")) } == .tokenRevoked)
        _ = try await second.join(joining("ada", token: "t-2"))
    }
}
