import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

/// What a client knows from its snapshot and its events alone.
private struct ClientView {
    var participants: [String: ParticipantInfo] = [:]
    var lastSequence: UInt64

    init(_ snapshot: SessionSnapshot) {
        lastSequence = snapshot.sequence
        for info in snapshot.others + [snapshot.participant] { participants[info.sid] = info }
    }

    mutating func apply(_ event: SequencedEvent) {
        #expect(event.sequence == lastSequence + 1, "a gap")
        lastSequence = event.sequence
        switch event.event {
        case .participantJoined(let info), .participantUpdated(let info): participants[info.sid] = info
        case .participantLeft(let sid, _, _): participants[sid] = nil
        case .trackPublished(let track): participants[track.participant]?.tracks.append(track)
        case .trackUpdated(let track):
            if let index = participants[track.participant]?.tracks.firstIndex(where: { $0.sid == track.sid }) {
                participants[track.participant]?.tracks[index] = track
            }
        case .trackUnpublished(let participant, let track):
            participants[participant]?.tracks.removeAll { $0.sid == track }
        case .moved(let snapshot):
            #expect(snapshot.sequence == event.sequence)
            self = ClientView(snapshot)
        default: break
        }
    }

    /// Without versions, which count changes that a view may learn of in one piece.
    func isEqual(to roster: [ParticipantInfo]) -> Bool {
        func plain(_ info: ParticipantInfo) -> ParticipantInfo {
            var info = info
            info.version = 0
            return info
        }
        return participants.mapValues(plain) == Dictionary(uniqueKeysWithValues: roster.map { ($0.sid, plain($0)) })
    }
}

@Suite("Churn")
struct ChurnTests {
    @Test(
        "C9, C17: after 200 random steps every client's view is the server's roster",
        arguments: 1...5 as ClosedRange<UInt64>)
    func views(seed: UInt64) throws {
        var bench = RoomBench(seed: seed)
        var dice = RandomSource(seed: seed &* 77)
        var views: [SessionID: ClientView] = [:]
        for step in 0..<200 {
            try randomStep(&bench, &dice, step, &views)
            for session in bench.room.sessions {
                try bench.answerOffers(session)
                for event in bench.events[session] ?? [] { views[session]?.apply(event) }
                bench.events[session] = []
            }
            let roster = bench.room.sessions.compactMap { bench.room.participant($0) }
            for session in bench.room.sessions {
                #expect(views[session]?.isEqual(to: roster) == true, "seed \(seed) step \(step)")
            }
        }
        for session in bench.room.sessions { bench.leave(session) }
        #expect(bench.leftovers.isEmpty, "\(bench.leftovers)")
    }

    @Test(
        "I8, C9, C17: members are moved between two rooms at random: every view is its room's roster, and nothing is left at the end",
        arguments: 1...5 as ClosedRange<UInt64>)
    func moves(seed: UInt64) throws {
        var benches = [RoomBench(seed: seed), RoomBench(seed: seed + 100, id: RoomID(10), name: "booth")]
        var dice = RandomSource(seed: seed &* 91)
        var views: [SessionID: ClientView] = [:]
        var moves = 0
        // How often a member's connections ended by a move: it makes others, with ICE user names of their own.
        var ends: [SessionID: Int] = [:]
        for step in 0..<200 {
            let here = Int(dice.next() % 2)
            let people = benches[here].room.sessions
            if dice.next() % 3 == 0, let someone = people.randomElement(using: &dice) {
                // A member whose answers the server awaits moves as well.
                var (from, to) = (benches[here], benches[1 - here])
                let isElsewhere =
                    dice.next() % 3 == 0 && from.room.state.roster[someone]?.options.recovery == .inSession
                try from.move(try #require(from.info(someone)).sid, to: &to, ofOtherWorker: isElsewhere)
                for event in from.events[someone] ?? [] { views[someone]?.apply(event) }
                from.events[someone] = nil
                (benches[here], benches[1 - here]) = (from, to)
                if isElsewhere { ends[someone, default: 0] += 1 }
                moves += 1
            } else {
                try randomStep(&benches[here], &dice, step, &views, ends)
            }
            for index in benches.indices {
                for session in benches[index].room.sessions {
                    // Now and then an offer stays unanswered for a while.
                    if dice.next() % 4 != 0 {
                        try benches[index].answerOffers(session, ufrag: "ansr\(ends[session] ?? 0)")
                    }
                    for event in benches[index].events[session] ?? [] { views[session]?.apply(event) }
                    benches[index].events[session] = []
                }
                let roster = benches[index].room.sessions.compactMap { benches[index].room.participant($0) }
                for session in benches[index].room.sessions {
                    #expect(views[session]?.isEqual(to: roster) == true, "seed \(seed) step \(step)")
                }
            }
        }
        #expect(moves > 20, "\(moves)")
        for index in benches.indices {
            for session in benches[index].room.sessions { benches[index].leave(session) }
            #expect(benches[index].leftovers.isEmpty, "\(benches[index].leftovers)")
        }
    }

    private func randomStep(
        _ bench: inout RoomBench, _ dice: inout RandomSource, _ step: Int, _ views: inout [SessionID: ClientView],
        _ ends: [SessionID: Int] = [:]
    ) throws {
        let sessions = bench.room.sessions
        let someone = sessions.isEmpty ? nil : sessions[Int(dice.next() % UInt64(sessions.count))]
        switch (dice.next() % 8, someone) {
        case (0, _), (1, _), (_, nil):
            let identity = "m\(dice.next() % 10)"
            let session = try bench.step { (room, turn) throws(RoomError) in
                try room.join(RoomBench.request(identity), isSignalled: true, turn: &turn)
            }
            views[session] = ClientView(try bench.room.snapshot(session))
            try bench.step { (room, turn) throws(RoomError) in room.settle(session, turn: &turn) }
        case (2, let session?): bench.leave(session)
        case (3, let session?), (4, let session?):
            let directions = (0..<3).map { _ in dice.next() % 2 == 0 ? "sendonly" : "inactive" }
            try bench.offer(
                session, "pub", [.audio("0", directions[0]), .video("1", directions[1]), .video("2", directions[2])],
                ufrag: "clnt\(ends[session] ?? 0)")
        case (5, let session?):
            if let track = bench.info(session)?.tracks.first {
                try bench.perform(.setMuted(track: track.sid, !track.muted), session)
            }
        case (6, let session?): try bench.perform(.setMetadata(name: nil, metadata: "\(step)"), session)
        case (_, let session?):
            if let track = bench.room.state.routing.tracks(of: session).first {
                bench.media(.trackStarted(track, .opus))
            }
        }
    }

    @Test("D8: 10 members churn 1,000 times; everything made is taken away again, on both planes")
    func baseline() throws {
        var bench = RoomBench(seed: 3)
        var dice = RandomSource(seed: 5)
        try bench.join("keeper") { $0.autoSubscribe = false }
        for _ in 0..<1_000 {
            let identity = "m\(dice.next() % 10)"
            if let session = bench.room.find(identity) {
                bench.leave(session)
            } else {
                // Three in ten receive, so that the test takes seconds.
                let receives = ["m0", "m1", "m2"].contains(identity)
                try bench.offer(try bench.join(identity) { $0.autoSubscribe = receives }, [.audio("0")])
            }
            for session in bench.room.sessions {
                try bench.answerOffers(session)
                bench.events[session] = []
            }
            bench.now = bench.now + .milliseconds(1)
        }
        for session in bench.room.sessions { bench.leave(session) }
        #expect(bench.leftovers.isEmpty, "\(bench.leftovers)")
        var (peers, tracks, subscriptions) = (Set<PeerID>(), Set<TrackID>(), Set<SubscriptionID>())
        for command in bench.commands {
            switch command {
            case .addPeer(let peer): #expect(peers.insert(peer.id).inserted)
            case .removePeer(let peer): #expect(peers.remove(peer) != nil)
            case .addTrack(let track): #expect(tracks.insert(track.id).inserted && peers.contains(track.peer))
            case .removeTrack(let track): #expect(tracks.remove(track) != nil)
            case .subscribe(let one):
                #expect(subscriptions.insert(one.id).inserted && one.track.map(tracks.contains) == true)
            case .unsubscribe(let one): #expect(subscriptions.remove(one) != nil)
            default: break
            }
        }
        #expect(peers.isEmpty && tracks.isEmpty && subscriptions.isEmpty)
    }

    @Test("The same seed gives the same effects")
    func determinism() throws {
        func run() throws -> [MediaCommand] {
            var bench = RoomBench(seed: 11)
            var dice = RandomSource(seed: 12)
            var views: [SessionID: ClientView] = [:]
            for step in 0..<100 { try randomStep(&bench, &dice, step, &views) }
            return bench.commands
        }
        #expect(try run() == run())
    }
}
