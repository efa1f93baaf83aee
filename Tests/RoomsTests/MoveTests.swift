import AccessTokens
import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

private func code(_ body: () throws(RoomError) -> Void) -> RoomError.Code? {
    do throws(RoomError) {
        try body()
        return nil
    } catch {
        return error.code
    }
}

@Suite("Moves to another room")
struct MoveTests {
    private var hall = RoomBench(seed: 1)
    private var booth = RoomBench(seed: 2, id: RoomID(10), name: "booth")

    @Test(
        "I8: connections and tracks go on, subscriptions are those of the other room on the same connection, all are notified"
    )
    mutating func move() throws {
        let ada = try hall.join("ada"), bob = try hall.join("bob"), carl = try booth.join("carl")
        try hall.offer(ada, [.audio("0"), .video("1")])
        try hall.offer(bob, [.audio("0")])
        try booth.offer(carl, [.video("0")])
        try hall.answerOffers(ada)
        try hall.answerOffers(bob)
        let before = try #require(hall.info(ada))
        let connections = hall.room.connections(of: ada).map(\.peer)
        let last = try #require(hall.events[ada]?.last?.sequence)
        (_, _) = (hall.consumeEvents(bob), booth.consumeEvents(carl))
        (_, _) = (hall.consumeCommands(), booth.consumeCommands())
        let moving = try hall.move("ada", to: &booth)

        #expect(hall.room.sessions == [bob] && booth.room.sessions == [carl, ada])
        let info = try #require(booth.info(ada))
        #expect(info.sid == before.sid && info.tracks.map(\.sid) == before.tracks.map(\.sid))
        #expect(booth.room.connections(of: ada).map(\.peer) == connections)
        #expect(moving.numbers.count == 4 && moving.numbers.allSatisfy { booth.room.owns($0) && !hall.room.owns($0) })
        let left = hall.consumeCommands(), entered = booth.consumeCommands()
        #expect(!left.contains { if case .removePeer = $0 { true } else { false } })
        #expect(!left.contains { if case .removeTrack = $0 { true } else { false } })
        // Bob's of ada's two tracks, and ada's of bob's.
        #expect(left.count { if case .unsubscribe = $0 { true } else { false } } == 3)
        #expect(entered.prefix(2).elementsEqual(connections.map { .movePeer($0, to: RoomID(10)) }))

        let reported = hall.consumeEvents(bob)
        #expect(reported.contains(.participantLeft(participant: info.sid, identity: "ada", reason: .moved)))
        #expect(reported.count { if case .trackUnpublished = $0 { true } else { false } } == 2)
        let heard = booth.consumeEvents(carl)
        let joined = heard.compactMap { if case .participantJoined(let other) = $0 { other } else { nil } }
        #expect(joined.map(\.sid) == [info.sid])
        #expect(heard.count { if case .trackPublished = $0 { true } else { false } } == 2)
        // Readers that count what they are sent of her have the room's number, or they would skip what follows.
        #expect(joined.first.map { $0.version + 2 } == info.version)
        // Her events go on with the next number.
        #expect(booth.events[ada]?.first?.sequence == last + 1)
        guard case .moved(let snapshot)? = booth.events[ada]?.first?.event else {
            Issue.record("\(String(describing: booth.events[ada]?.first))")
            return
        }
        #expect(snapshot.room.name == "booth" && snapshot.sequence == last + 1)
        #expect(snapshot.others.map(\.identity) == ["carl"] && snapshot.participant.tracks.count == 2)
        #expect(snapshot.subscriptions.map(\.kind) == [.video])
        try booth.answerOffers(ada)
        #expect(booth.room.subscriptions(of: ada).map(\.state) == [.active])
        #expect(booth.room.connections(of: ada).map(\.peer) == connections)
        let receiver = try #require(booth.room.state.roster[ada]?.connections.first { $0.id == "sub" })
        // The section of bob's audio is reused where its kind fits; one is added for carl's video.
        #expect(receiver.subscriptionByMid.count == 1)
    }

    @Test(
        "I8: a move to a room of another worker ends connections and tracks here; the client is notified, is offered what is there on another connection, and publishes anew"
    )
    mutating func acrossWorkers() throws {
        let ada = try hall.join("ada"), bob = try hall.join("bob"), carl = try booth.join("carl")
        try hall.offer(ada, [.audio("0"), .video("1")])
        try hall.offer(bob, [.audio("0")])
        try booth.offer(carl, [.video("0")])
        try hall.answerOffers(ada)
        let connections = hall.room.connections(of: ada), tracks = hall.room.state.routing.tracks(of: ada)
        (_, _) = (hall.consumeCommands(), booth.consumeCommands())
        let moving = try hall.move("ada", to: &booth, ofOtherWorker: true)

        let left = hall.consumeCommands(), entered = booth.consumeCommands()
        #expect(connections.count == 2 && connections.allSatisfy { left.contains(.removePeer($0.peer)) })
        #expect(tracks.count == 2 && tracks.allSatisfy { left.contains(.removeTrack($0)) })
        #expect(moving.numbers.isEmpty && booth.info(ada)?.tracks.isEmpty == true)
        #expect(!entered.contains { if case .movePeer = $0 { true } else { false } })
        let words = (booth.events[ada] ?? []).map { entry -> String in
            switch entry.event {
            case .moved(let snapshot): "moved to \(snapshot.room.name)"
            case .connectionChanged(let connection, let state, let reason):
                "\(connection) \(state.rawValue) \(reason ?? "")"
            case .offer(let connection, _, _): "offer of \(connection)"
            default: "other"
            }
        }
        #expect(words.prefix(4) == ["moved to booth", "pub closed moved", "sub closed moved", "offer of sub"])
        // What was under way when she was moved, or is sent again after a resume, changes nothing.
        #expect(
            code { () throws(RoomError) in try booth.offer(ada, [.audio("0"), .video("1")]) } == .connectionNotFound)
        #expect(code { () throws(RoomError) in try booth.answerOffers(ada) } == .connectionNotFound)
        #expect(booth.consumeCommands().isEmpty && booth.info(ada)?.tracks.isEmpty == true)
        // An answer to the first offer of the connection that has ended comes from an unknown side, and names another section.
        let offers = [hall.lastOffer(ada), booth.lastOffer(ada)].compactMap { $0?.sdp }
        #expect(offers.count == 2 && offers[0].contains("a=mid:0") && !offers[1].contains("a=mid:0"))
        try booth.answerOffers(ada, ufrag: "sub2")
        #expect(booth.room.subscriptions(of: ada).map(\.state) == [.active])
        try booth.offer(ada, "pub", [.audio("0"), .video("1")], ufrag: "pub2")
        #expect(booth.info(ada)?.tracks.count == 2)
        #expect(booth.room.connections(of: ada).allSatisfy { other in !connections.contains { $0.peer == other.peer } })
        let added = (entered + booth.consumeCommands()).compactMap {
            if case .addPeer(let peer) = $0 { peer.id } else { nil }
        }
        let connected = booth.room.connections(of: ada).map(\.peer)
        #expect(connected.count == 2 && connected.allSatisfy(added.contains))
    }

    @Test(
        "I8: a client that can make no other connection is not moved to a room of another worker, and nothing changes")
    mutating func fixedToWorker() throws {
        let phone = try hall.join("phone", isSignalled: false)
        try hall.offer(phone, [.video("0")])
        let commands = hall.commands
        #expect(
            code { () throws(RoomError) in try hall.move("phone", to: &booth, ofOtherWorker: true) }
                == .differentWorker)
        #expect(hall.room.sessions == [phone] && booth.room.sessions.isEmpty && hall.commands == commands)
        try hall.move("phone", to: &booth)
        #expect(booth.room.sessions == [phone])
    }

    @Test(
        "I8: a client that makes connections by joining goes on with its join: nothing is offered to it before, the session and what operators decided stay"
    )
    mutating func awaited() throws {
        let joining: (inout JoinRequest) -> Void = {
            ($0.recovery, $0.offering, $0.receivingConnection) = (.byJoining, .serverAtOnce, Room.serverConnection)
        }
        let ada = try hall.join("ada", joining), carl = try booth.join("carl")
        try booth.offer(carl, [.video("0")])
        try hall.answerOffers(ada)
        try hall.offer(ada, "publisher", [.video("0")], ufrag: "old1")
        var permissions = Permissions()
        permissions.canUpdateMetadata = false
        try hall.setPermissions(permissions, "ada")
        let sid = try #require(hall.info(ada)?.sid)
        let request = RoomBench.request("ada", joining)
        #expect(hall.room.awaited(request.claims) == nil)
        #expect(
            code { () throws(RoomError) in
                try hall.step { (room, turn) throws(RoomError) in try room.rejoin(ada, request, turn: &turn) }
            } == .sessionNotFound)
        try hall.move("ada", to: &booth, ofOtherWorker: true)

        let words = (booth.events[ada] ?? []).map { entry -> String in
            switch entry.event {
            case .moved(let snapshot): "moved to \(snapshot.room.name)"
            case .connectionChanged(let connection, let state, let reason):
                "\(connection) \(state.rawValue) \(reason ?? "")"
            default: "\(entry.event)"
            }
        }
        #expect(words == ["moved to booth", "sub closed moved", "publisher closed moved"])
        #expect(booth.room.subscriptions(of: ada).isEmpty && booth.room.connections(of: ada).isEmpty)
        // Its former socket may still bring something, a goodbye too; the operator cannot move it on before it is here.
        booth.leave(ada)
        #expect(
            code { () throws(RoomError) in try booth.offer(ada, "publisher", [.video("0")], ufrag: "new1") }
                == .connectionNotFound)
        #expect(
            code { () throws(RoomError) in try booth.move("ada", to: &hall, ofOtherWorker: true) } == .differentWorker)

        var other = request.claims
        other.identity = "eve"
        #expect(booth.room.awaited(other) == nil)
        var permitted = request.claims
        permitted.video.roomAdmin = true
        #expect(booth.room.awaited(permitted) == nil, "with other grants one joins as a newcomer")
        #expect(booth.room.awaited(request.claims) == ada)
        try booth.step { (room, turn) throws(RoomError) in
            try room.rejoin(ada, request, turn: &turn)
            room.settle(ada, turn: &turn)
        }
        #expect(booth.room.awaited(request.claims) == nil)
        #expect(booth.room.sessions == [carl, ada] && booth.info(ada)?.sid == sid)
        #expect(booth.info(ada)?.permissions == permissions)
        try booth.answerOffers(ada, ufrag: "new2")
        #expect(booth.room.subscriptions(of: ada).map(\.state) == [.active])
        try booth.offer(ada, "publisher", [.video("0")], ufrag: "new3")
        #expect(booth.info(ada)?.tracks.count == 1)
        // A new connection of a new client: its sections begin with the first.
        #expect(booth.lastOffer(ada)?.sdp.contains("a=mid:0") == true)
    }

    @Test(
        "I8: a client that cannot be notified of another room loses its connections on one worker, too, and is awaited")
    mutating func olderClient() throws {
        let ada = try hall.join("ada") { ($0.recovery, $0.understandsMoves) = (.byJoining, false) }
        try hall.offer(ada, [.video("0")])
        let peer = try #require(hall.room.connections(of: ada).first?.peer)
        _ = hall.consumeCommands()
        try hall.move("ada", to: &booth)
        #expect(hall.consumeCommands().contains(.removePeer(peer)) && booth.room.connections(of: ada).isEmpty)
        guard case .moved(let snapshot)? = booth.events[ada]?.first?.event else {
            Issue.record("\(String(describing: booth.events[ada]?.first))")
            return
        }
        #expect(snapshot.isAwaited && booth.room.awaited(RoomBench.request("ada").claims) == ada)
    }

    @Test("I8: whoever does not join the room that it was moved to is out of it after the time of a lost socket")
    mutating func neverJoins() throws {
        let ada = try hall.join("ada") { $0.recovery = .byJoining }
        try hall.offer(ada, [.video("0")])
        try hall.move("ada", to: &booth, ofOtherWorker: true)
        try booth.step { (room, turn) throws(RoomError) in room.detach(ada, turn: &turn) }
        booth.advance(by: RoomLimits().resumeWindow)
        #expect(booth.room.sessions.isEmpty && booth.ended[ada] == .timeout)
    }

    @Test("I8: whoever says goodbye after a move and has not joined 10 s later has left; until then it may join")
    mutating func goodbye() throws {
        for joins in [true, false] {
            let request = RoomBench.request("ada") { $0.recovery = .byJoining }
            let ada = try hall.join("ada") { $0.recovery = .byJoining }
            try hall.offer(ada, [.video("0")])
            try hall.move("ada", to: &booth, ofOtherWorker: true)
            booth.leave(ada)
            try booth.step { (room, turn) throws(RoomError) in room.detach(ada, turn: &turn) }
            booth.advance(by: .seconds(9))
            #expect(booth.room.awaited(request.claims) == ada)
            if joins {
                try booth.step { (room, turn) throws(RoomError) in try room.rejoin(ada, request, turn: &turn) }
            }
            booth.advance(by: .seconds(1))
            #expect(booth.room.sessions == (joins ? [ada] : []) && booth.ended[ada] == (joins ? nil : .left))
            booth.leave(ada)
        }
    }

    @Test("I8: a moderator that was moved goes on with a token that moderates nothing; where it was not, it joins anew")
    mutating func moderator() throws {
        var claims = RoomBench.request("ada").claims
        claims.video.roomAdmin = true
        let ada = try hall.join("ada") { $0.claims = claims }
        claims.video.roomAdmin = false
        #expect(code { () throws(RoomError) in try hall.room.checkResume(ada, claims) } == .grantsChanged)
        try hall.move("ada", to: &booth)
        try booth.room.checkResume(ada, claims)
        claims.video.canPublish = false
        #expect(code { () throws(RoomError) in try booth.room.checkResume(ada, claims) } == .grantsChanged)
    }

    @Test("I8: the token that joined resumes the session in the other room; another participant's does not")
    mutating func resume() throws {
        var claims = RoomBench.request("ada").claims
        claims.video.room = "R"
        let ada = try hall.join("ada") { $0.claims = claims }
        try hall.move("ada", to: &booth)
        try booth.room.checkResume(ada, claims)
        claims.video.room = "booth"
        try booth.room.checkResume(ada, claims)
        claims.video.room = "elsewhere"
        #expect(code { () throws(RoomError) in try booth.room.checkResume(ada, claims) } == .roomMismatch)
        claims.video.room = "booth"
        claims.identity = "eve"
        #expect(code { () throws(RoomError) in try booth.room.checkResume(ada, claims) } == .sessionNotFound)
    }

    @Test(
        "I8: what refuses a join refuses a move, which then changes nothing; a locked room with a waiting room does not"
    )
    mutating func refusals() throws {
        let ada = try hall.join("ada")
        try hall.offer(ada, [.video("0")])
        let cases: [(RoomError.Code, (inout RoomPolicy) -> Void)] = [
            (.roomFull, { $0.maxParticipants = 1 }), (.limitExceeded, { $0.maxPublishers = 1 }),
            (.encryptionRequired, { $0.requiresEncryption = true }), (.notRouted, { $0.topology = .peerToPeer }),
        ]
        for (code, change) in cases {
            var policy = RoomPolicy()
            change(&policy)
            var other = RoomBench(policy: policy, seed: 3, id: RoomID(11), name: "other")
            if code != .encryptionRequired, code != .notRouted {
                try other.offer(try other.join("carl"), [.audio("0")])
            }
            let (commands, sessions) = (hall.commands, other.room.sessions)
            do throws(RoomError) {
                try hall.move("ada", to: &other)
                Issue.record("moved into a room that refuses with \(code)")
            } catch {
                #expect(error.code == code)
            }
            #expect(hall.room.sessions == [ada] && other.room.sessions == sessions && hall.commands == commands)
        }
        #expect(code { () throws(RoomError) in try hall.move("nobody", to: &booth) } == .participantNotFound)
        var policy = RoomPolicy()
        policy.waitingRoom = true
        var other = RoomBench(policy: policy, seed: 4, id: RoomID(12), name: "other")
        try other.step { (room, turn) throws(RoomError) in try room.setLock(.closed, by: nil, turn: &turn) }
        try hall.move("ada", to: &other)
        #expect(other.room.sessions == [ada])
    }

    @Test(
        "I8: the rules of the other room hold at once: a source that it does not allow ends, and its publisher is notified"
    )
    mutating func rules() throws {
        var policy = RoomPolicy()
        policy.publishSources = [.microphone]
        policy.maxVideoBitrate = .kilobitsPerSecond(300)
        var other = RoomBench(policy: policy, seed: 3, id: RoomID(11), name: "other")
        let ada = try hall.join("ada")
        try hall.offer(ada, [.audio("0"), .video("1")])
        let camera = try #require(hall.room.state.routing.tracks(of: ada).last)
        try hall.move("ada", to: &other)
        #expect(other.info(ada)?.tracks.map(\.source) == [.microphone])
        #expect(other.commands.contains(.removeTrack(camera)))
        #expect(
            other.consumeEvents(ada).contains {
                if case .publicationRefused(_, "1", _, .permissionDenied, _) = $0 { true } else { false }
            })
    }

    @Test("I8: a replaced identity makes way; a WHEP session, which follows somebody, stays where it is")
    mutating func identities() throws {
        let ada = try hall.join("ada"), older = try booth.join("ada")
        try hall.move("ada", to: &booth)
        #expect(booth.ended[older] == .duplicateIdentity && booth.room.sessions == [ada])
        let viewer = try hall.join("eve", isSignalled: false, follow: .dominantSpeaker) { $0.profile = .viewer }
        #expect(code { () throws(RoomError) in try hall.move("eve", to: &booth) } == .invalidRequest)
        #expect(hall.room.sessions == [viewer])
        try hall.step { (room, turn) throws(RoomError) in
            let film = PlaybackRequest(identity: "film", name: "Film", formats: [PlaybackFormat(codec: .opus)])
            _ = try room.startPlayback(film, turn: &turn)
        }
        #expect(code { () throws(RoomError) in try hall.move("film", to: &booth) } == .invalidRequest)
    }

    @Test("I8, E: what is recorded of a track ends with the move, and the other room's recording begins")
    mutating func recordings() throws {
        let ada = try hall.join("ada")
        try hall.offer(ada, [.audio("0")])
        for bench in [0, 1] {
            func start(_ bench: inout RoomBench) throws {
                try bench.step { (room, turn) throws(RoomError) in
                    _ = try room.startRecording(RecordingScope(), turn: &turn)
                }
            }
            if bench == 0 { try start(&hall) } else { try start(&booth) }
        }
        try hall.move("ada", to: &booth)
        #expect(hall.commands.contains { if case .endRecording = $0 { true } else { false } })
        #expect(booth.commands.contains { if case .record = $0 { true } else { false } })
    }
}
