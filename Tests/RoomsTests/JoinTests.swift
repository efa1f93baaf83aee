import AccessTokens
import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Joining and leaving")
struct JoinTests {
    @Test("B18, B15: the same identity replaces the older session; alice and alice/screen are two")
    func duplicateIdentity() throws {
        var bench = RoomBench()
        let first = try bench.join("alice")
        let screen = try bench.join("alice/screen")
        let second = try bench.join("alice")
        #expect(bench.ended == [first: .duplicateIdentity])
        #expect(bench.room.has(screen) && bench.room.has(second))
        #expect(bench.consumeEvents(first).last == .ended(.duplicateIdentity, message: nil))
        try bench.step { (room, turn) throws(RoomError) in try room.removeParticipant("alice", turn: &turn) }
        #expect(bench.room.has(screen) && !bench.room.has(second))
    }

    @Test("Where several of an identity may be here no longer, the next one takes the place of them all")
    func duplicatesEnd() throws {
        var bench = RoomBench(policy: PolicyTests.policy { $0.duplicateIdentity = .allow })
        let stays = [try bench.join("alice"), try bench.join("alice"), try bench.join("alice")]
        #expect(bench.ended.isEmpty)
        try bench.setPolicy(RoomPolicy())
        let last = try bench.join("alice")
        #expect(bench.room.sessions == [last] && Set(bench.ended.keys) == Set(stays))
    }

    @Test("When the room ends everybody is notified of that, and not that each of the others leaves")
    func roomEnds() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0"), .video("1")])
        var viewers: [SessionID] = []
        for number in 0..<20 { viewers.append(try bench.join("viewer \(number)")) }
        for session in viewers {
            try bench.answerOffers(session)
            _ = bench.consumeEvents(session)
        }
        _ = bench.consumeCommands()
        try bench.step { (room, turn) throws(RoomError) in room.close(reason: .roomDeleted, turn: &turn) }
        for session in viewers {
            let events = bench.consumeEvents(session)
            #expect(events == [.ended(.roomDeleted, message: nil)])
        }
        #expect(bench.consumeEvents(ada).last == .ended(.roomDeleted, message: nil))
        #expect(bench.ended.count == 21 && bench.isOver && bench.leftovers.isEmpty)
        let removed = bench.commands.count { if case .removePeer = $0 { true } else { false } }
        let unsubscribed = bench.commands.count { if case .unsubscribe = $0 { true } else { false } }
        #expect(removed == 21 && unsubscribed == 40)
    }

    @Test("B17: others are notified once that somebody left, and nothing of it stays")
    func leave() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob")
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0"), .video("1")])
        try bench.answerOffers(bob)
        bench.leave(ada)
        bench.leave(ada)
        let left = bench.consumeEvents(bob).filter { if case .participantLeft = $0 { true } else { false } }
        #expect(left.count == 1)
        #expect(bench.room.counts.tracks == 0 && bench.room.counts.subscriptions == 0)
        #expect(bench.consumeEvents(ada).last == .ended(.left, message: nil))
        #expect(bench.room.counts.connections == 1, "bob's receiving connection goes on")
    }

    @Test(
        "B4: the token's room, else the asked one, else the default one; an empty name is generated",
        arguments: [
            ("R1", nil, "R1"), ("R1", "R1", "R1"), ("R1", "", "R1"), (nil, nil, "Broadcast"), ("", nil, "Broadcast"),
            (nil, "R2", "R2"), ("", "R2", "R2"),
        ] as [(String?, String?, String)])
    func roomNames(granted: String?, asked: String?, expected: String) throws {
        var turn = RoomTurn(at: .zero, wallClock: 0, random: RandomSource(seed: 1))
        let resolved = try RoomNames.resolve(granted: granted, asked: asked, defaultRoom: "Broadcast", turn: &turn)
        #expect(resolved == expected)
        let generated = try RoomNames.resolve(granted: nil, asked: "", defaultRoom: "Broadcast", turn: &turn)
        #expect(generated.hasPrefix("room-") && generated.count > 12)
    }

    @Test(
        "B4: a room that is asked for with a token for another one is refused",
        arguments: ["R2", "r1", " R1", "Broadcast"])
    func roomMismatch(asked: String) {
        var turn = RoomTurn(at: .zero, wallClock: 0, random: RandomSource(seed: 1))
        let error = #expect(throws: RoomError.self) {
            try RoomNames.resolve(granted: "R1", asked: asked, defaultRoom: "Broadcast", turn: &turn)
        }
        #expect(error?.code == .roomMismatch)
    }

    @Test("C12: the room is full at its limit; a replacement takes no place, a publish-only member one by policy")
    func roomFull() throws {
        var policy = RoomPolicy()
        policy.maxParticipants = 2
        policy.countsPublishOnly = false
        var bench = RoomBench(policy: policy)
        try bench.join("a")
        try bench.join("b")
        #expect(throws: RoomError(.roomFull, "the room is full")) { try bench.join("c") }
        try bench.join("b")
        try bench.join("h") { $0.claims.video.hidden = true }
        try bench.join("p") { $0.profile = .publishOnly }
        #expect(bench.room.info.participants == 3)
        #expect(throws: RoomError.self) { try bench.join("c") }
        policy.countsPublishOnly = true
        try bench.setPolicy(policy)
        #expect(throws: RoomError(.roomFull, "the room is full")) {
            try bench.join("q") { $0.profile = .publishOnly }
        }
    }

    @Test("C12: where the policy counts hidden members, one takes a place and needs a free one")
    func hiddenMembersCount() throws {
        var policy = RoomPolicy()
        policy.maxParticipants = 2
        policy.countsHidden = true
        var bench = RoomBench(policy: policy)
        try bench.join("a")
        try bench.join("h") { $0.claims.video.hidden = true }
        #expect(throws: RoomError(.roomFull, "the room is full")) { try bench.join("b") }
        #expect(throws: RoomError(.roomFull, "the room is full")) {
            try bench.join("i") { $0.claims.video.hidden = true }
        }
        policy.countsHidden = false
        try bench.setPolicy(policy)
        try bench.join("b")
    }

    @Test("What is too long, nameless or not permitted is refused with its code")
    func refusals() throws {
        var bench = RoomBench()
        func code(_ change: (inout JoinRequest) -> Void) -> RoomError.Code? {
            do throws(RoomError) {
                try bench.join("x", change)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(code { $0.claims.identity = nil } == .identityRequired)
        #expect(code { $0.claims.identity = "" } == .identityRequired)
        #expect(code { $0.claims.video.roomJoin = false } == .permissionDenied)
        #expect(code { $0.claims.identity = String(repeating: "i", count: 257) } == .tooLarge)
        #expect(code { $0.name = String(repeating: "n", count: 257) } == .tooLarge)
        #expect(code { $0.metadata = String(repeating: "m", count: 8_193) } == .tooLarge)
        #expect(code { $0.receivingConnection = String(repeating: "c", count: 65) } == .invalidRequest)
        #expect(
            code {
                $0.profile = .publishOnly
                $0.claims.video.canPublish = false
            } == .permissionDenied)
        #expect(bench.room.isEmpty)
    }

    @Test("B20, B2: a publish-only member gets no roster and nobody's events, until it asks")
    func publishOnlyIsQuiet() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob")
        try bench.offer(bob, [.audio("0")])
        let caster = try bench.join("caster") { $0.profile = .publishOnly }
        let snapshot = try bench.room.snapshot(caster)
        #expect(snapshot.others.isEmpty && snapshot.subscriptions.isEmpty)
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0"), .video("1")])
        bench.media(.speakersChanged(bench.room.id, []))
        #expect(bench.consumeEvents(caster).isEmpty)
        try bench.perform(.requestRoster, caster)
        let roster = bench.consumeEvents(caster)
        #expect(roster.count == 3)
        #expect(roster.first == .roomUpdated(bench.room.info), "it may have changed since it joined")
        try bench.perform(.requestRoster, caster)
        #expect(bench.consumeEvents(caster).isEmpty)
        #expect(throws: RoomError.self) { try bench.perform(.subscribe(track: bench.trackSID(ada, .video)), caster) }
    }

    @Test("Hidden members see all and are seen by none")
    func hidden() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob")
        let spy = try bench.join("spy") { $0.claims.video.hidden = true }
        #expect(bench.consumeEvents(bob).isEmpty)
        #expect(try bench.room.snapshot(bob).others.isEmpty)
        #expect(try bench.room.snapshot(spy).others.map(\.identity) == ["bob"])
        bench.leave(spy)
        #expect(bench.consumeEvents(bob).isEmpty)
    }
}

@Suite("Timers")
struct TimerTests {
    @Test("A7: a room with one participant never runs out")
    func soleParticipant() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        for _ in 0..<60 {
            bench.advance(by: .seconds(10))
            try bench.step { (room, turn) throws(RoomError) in room.touch(ada, turn: &turn) }
        }
        #expect(bench.room.has(ada) && !bench.isOver)
    }

    @Test(
        "D14: the room's size is sent to who stays with the next tick, once for many changes, and never of hidden members"
    )
    func size() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        let bob = try bench.join("bob")
        let carol = try bench.join("carol")
        try bench.offer(bob, [.audio("0")])
        func sizes() -> [[Int]] {
            bench.consumeEvents(ada).compactMap { event in
                guard case .roomUpdated(let room) = event else { return nil }
                return [room.participants, room.publishers]
            }
        }
        #expect(sizes().isEmpty && bench.room.nextDeadline <= bench.now)
        bench.advance(by: .milliseconds(1))
        #expect(sizes() == [[3, 1]])
        bench.leave(bob)
        bench.leave(carol)
        bench.advance(by: .milliseconds(1))
        #expect(sizes() == [[1, 0]])
        try bench.join("ghost") { $0.claims.video.hidden = true }
        bench.advance(by: .milliseconds(1))
        #expect(sizes().isEmpty && bench.room.nextDeadline > bench.now)
    }

    @Test("An unused room ends after its empty timeout, a left one after its departure timeout")
    func emptyRoom() throws {
        var unused = RoomBench()
        unused.advance(by: .seconds(299))
        #expect(!unused.isOver)
        unused.advance(by: .seconds(1))
        #expect(unused.isOver && unused.commands.last == .removeRoom(unused.room.id))

        var left = RoomBench()
        left.leave(try left.join("ada"))
        #expect(left.room.nextDeadline == left.now + .seconds(20))
        left.advance(by: .seconds(19))
        #expect(!left.isOver)
        left.advance(by: .seconds(1))
        #expect(left.isOver)
        #expect(throws: RoomError.self) { try left.join("ada") }
    }

    @Test("D6: without a sign of life a member is removed and others are notified once; with them it stays")
    func keepAlive() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob")
        let ada = try bench.join("ada")
        // A day of pings, each ten seconds after the last.
        for _ in 0..<8_640 {
            bench.advance(by: .seconds(10))
            try bench.step { (room, turn) throws(RoomError) in room.touch(bob, turn: &turn) }
        }
        #expect(bench.room.has(bob) && bench.ended == [ada: .timeout])
        #expect(
            bench.consumeEvents(bob).count { if case .participantLeft(_, "ada", .timeout) = $0 { true } else { false } }
                == 1)
    }

    @Test("A dropped socket waits its window without touching media, and may come back")
    func detach() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0")])
        _ = bench.consumeCommands()
        try bench.step { (room, turn) throws(RoomError) in room.detach(ada, turn: &turn) }
        bench.advance(by: .seconds(29))
        try bench.step { (room, turn) throws(RoomError) in try room.attach(ada, turn: &turn) }
        bench.advance(by: .seconds(29))
        #expect(bench.room.has(ada) && bench.commands.isEmpty)
        try bench.step { (room, turn) throws(RoomError) in room.detach(ada, turn: &turn) }
        bench.advance(by: .seconds(30))
        #expect(bench.ended == [ada: .timeout])
    }

    @Test("WHIP sessions have no socket and need no signs of life; their transport decides")
    func whipKeepAlive() throws {
        var bench = RoomBench()
        let caster = try bench.join("caster", isSignalled: false) { $0.profile = .publishOnly }
        try bench.offer(caster, "main", [.video("0")])
        let peer = try #require(bench.room.connections(of: caster).first?.peer)
        bench.media(.peerConnected(peer))
        bench.advance(by: .seconds(3_600))
        #expect(bench.room.has(caster))
        bench.media(.peerEnded(peer, .consentExpired))
        #expect(bench.ended == [caster: .connectionLost])
    }
}
