import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Large rooms")
struct LargeRoomTests {
    @Test(
        "On a connection that publishes, too, the server offers as many tracks as its description has sections for, and announces how many wait"
    )
    func sectionsBesideOwn() throws {
        var bench = RoomBench()
        for number in 0..<8 {
            let publisher = try bench.join("publisher \(number)") { $0.autoSubscribe = false }
            try bench.offer(publisher, (0..<31).map { .audio("\($0)") })
        }
        let bob = try bench.join("bob") { $0.receivingConnection = "main" }
        /// How many offers were answered, how many tracks wait, and how many are received.
        func answered() throws -> [[Int]] {
            let offers = try bench.answerOffers(bob)
            let waiting: [Int] = bench.consumeEvents(bob).compactMap {
                if case .subscriptionsWaiting(_, let waiting) = $0 { waiting } else { nil }
            }
            return [[offers], waiting, [bench.room.subscriptions(of: bob).count { $0.state == .active }]]
        }
        try bench.offer(bob, "main", (0..<10).map { .audio("\($0)") })
        var found = try answered()
        #expect(found == [[1], [2], [246]], "248 tracks, 256 sections")
        let tracks = bench.room.subscriptions(of: bob)
        let ending = [tracks.first { $0.connection == nil }?.track, tracks.first?.track]
        for (track, expected) in zip(ending, [[[0], [1], [246]], [[1], [0], [246]]]) {
            let sid = try #require(track)
            let publisher = try #require(bench.room.state.routing.track(sid: sid)?.publisher)
            try bench.perform(.unpublish(track: sid), publisher)
            found = try answered()
            #expect(found == expected)
        }
    }

    @Test("What somebody publishes is offered to a bounded number of members in one step, and to each of them once")
    func offers() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada") { $0.autoSubscribe = false }
        let members = try (0..<150).map { try bench.join("member \($0)") { $0.wantsRoster = false } }
        for member in members { _ = bench.consumeEvents(member) }
        func offered() -> [Int] {
            members.map { member in
                (bench.events[member] ?? []).count { if case .offer = $0.event { true } else { false } }
            }
        }
        try bench.offer(ada, [.audio("0")])
        #expect(offered() == Array(repeating: 1, count: Room.offersPerStep) + Array(repeating: 0, count: 86))
        #expect(bench.room.owesOffers && bench.room.nextDeadline <= bench.now)
        // Whoever leaves is offered nothing.
        bench.leave(members[149])
        #expect(offered().reduce(0, +) == 2 * Room.offersPerStep, "any step goes on with them")
        bench.advance(by: .zero)
        #expect(offered() == Array(repeating: 1, count: 149) + [0])
        #expect(!bench.room.owesOffers && !bench.room.hasNews)
        for member in members.dropLast() { #expect(try bench.answerOffers(member) == 1) }
        #expect(bench.room.subscriptions(of: members[148]).map(\.state) == [.active])
    }

    @Test("Steps for offers that are owed make these alone: what is to be announced waits for the deadline")
    func owedOffers() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada") { $0.autoSubscribe = false }
        let members = try (0..<100).map { try bench.join("member \($0)") { $0.wantsRoster = false } }
        try bench.offer(ada, [.audio("0")])
        for member in members { _ = bench.consumeEvents(member) }
        try bench.step { (room, turn) throws(RoomError) in room.makeOwedOffers(turn: &turn) }
        let last = members.map { bench.consumeEvents($0) }.suffix(100 - Room.offersPerStep)
        let offered = last.count { events in events.contains { if case .offer = $0 { true } else { false } } }
        #expect(offered == 100 - Room.offersPerStep)
        #expect(!bench.room.owesOffers && bench.room.hasNews)
        bench.advance(by: .zero)
        #expect(!bench.room.hasNews)
    }

    @Test("Microphones that are always heard are commanded in the order in which their participants joined")
    func alwaysHeard() throws {
        var bench = RoomBench()
        for number in 0..<30 {
            let session = try bench.join("member \(number)") { $0.autoSubscribe = false }
            try bench.offer(session, [.audio("0")])
        }
        let tracks = bench.consumeCommands().compactMap { if case .addTrack(let track) = $0 { track.id } else { nil } }
        var policy = RoomPolicy()
        policy.alwaysHeard = ["member 3"]
        try bench.setPolicy(policy)
        let commanded = bench.consumeCommands().compactMap {
            if case .setTrackAlwaysForwarded(let track, _) = $0 { track } else { nil }
        }
        #expect(tracks.count == 30 && commanded == tracks)
    }

    @Test("No offers are owed in a room that has ended")
    func ended() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada") { $0.autoSubscribe = false }
        for number in 0..<100 { try bench.join("member \(number)") { $0.wantsRoster = false } }
        try bench.offer(ada, [.audio("0")])
        try bench.step { (room, turn) throws(RoomError) in room.close(reason: .roomDeleted, turn: &turn) }
        #expect(bench.isOver && !bench.room.owesOffers && bench.leftovers.isEmpty)
    }

    @Test("The end of a room notifies nobody of the recordings that end with each of the others")
    func endsWithRecordings() throws {
        var bench = RoomBench()
        var sessions: [SessionID] = []
        for number in 0..<20 {
            let session = try bench.join("member \(number)") { $0.autoSubscribe = false }
            try bench.offer(session, [.audio("0")])
            let sid = try #require(bench.info(session)).sid
            _ = try bench.step { (room, turn) throws(RoomError) in
                try room.startRecording(RecordingScope(participant: sid), turn: &turn)
            }
            sessions.append(session)
        }
        for session in sessions { _ = bench.consumeEvents(session) }
        try bench.step { (room, turn) throws(RoomError) in room.close(reason: .roomDeleted, turn: &turn) }
        for session in sessions {
            let events = bench.consumeEvents(session)
            #expect(events.last == .ended(.roomDeleted, message: nil))
            #expect(!events.contains { if case .roomUpdated = $0 { true } else { false } })
        }
    }

    @Test("Another dominant speaker is announced once to each with a roster, and turns followers without an offer")
    func dominantSpeaker() throws {
        var bench = RoomBench()
        var speakers: [SessionID] = []
        for name in ["ada", "bob"] {
            let session = try bench.join(name) { $0.autoSubscribe = false }
            try bench.offer(session, [.audio("0"), .video("1")])
            speakers.append(session)
        }
        func join(_ name: String, _ change: (inout JoinRequest) -> Void) throws(RoomError) -> [SessionID] {
            var sessions: [SessionID] = []
            for number in 0..<50 {
                sessions.append(
                    try bench.join("\(name) \(number)") { request in
                        request.autoSubscribe = false
                        change(&request)
                    })
            }
            return sessions
        }
        let knowing = try join("knowing") { $0.wantsRoster = true }
        let unknowing = try join("unknowing") { $0.wantsRoster = false }
        for number in 0..<20 {
            let viewer = try bench.join("viewer \(number)", isSignalled: false, follow: .dominantSpeaker) {
                $0.profile = .viewer
            }
            try bench.offer(viewer, "main", [.audio("0", "recvonly"), .video("1", "recvonly")])
        }
        let voices = try speakers.map { session in
            try #require(bench.room.state.routing.tracks(of: session).first)
        }
        bench.media(.dominantSpeakerChanged(bench.room.id, voices[0]))
        bench.events = [:]
        _ = bench.consumeCommands()
        for _ in 0..<2 { bench.media(.dominantSpeakerChanged(bench.room.id, voices[1])) }
        let bob = try #require(bench.info(speakers[1])).sid
        for session in speakers + knowing {
            #expect(bench.consumeEvents(session) == [.dominantSpeakerChanged(participant: bob)])
        }
        for session in unknowing { #expect(bench.consumeEvents(session).isEmpty) }
        let commands = bench.consumeCommands()
        #expect(commands.count == 40)
        #expect(commands.allSatisfy { if case .switchSubscription(_, to: _?) = $0 { true } else { false } })
    }
}
