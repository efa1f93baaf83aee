import AccessTokens
import MediaControl
import Primitives
import Rooms
import Synchronization
import TestSupport
import Testing

@testable import RoomService

@Suite("Moves between rooms")
struct MoveTests {
    let plane = FakePlane()
    let client = ClientDescriptions()

    @Test(
        "I8: the worker moves the peers, what it reports of them reaches the new room, and both rooms' logs have the stay"
    )
    func move() async throws {
        let log = FileRecorder()
        let service = RoomHost(media: plane, log: { log.append($0) })
        let ada = try await service.join(request("ada")), carl = try await service.join(request("carl", room: "Q"))
        _ = try await service.offer(ada.session, connection: "pub", sdp: client.offer([.video("0")]))
        let peer = try #require(
            plane.consumeCommands().lazy.compactMap { if case .addPeer(let peer) = $0 { peer.id } else { nil } }.first)
        await service.receive([.peerConnected(peer)])
        let moved = try await service.move("ada", from: "R", to: "Q")
        #expect(moved.info.tracks.count == 1 && moved.connections.map(\.state) == [.connected])
        #expect(plane.consumeCommands().contains { if case .movePeer(peer, _) = $0 { true } else { false } })
        #expect(try await service.room(named: "R").participants.isEmpty)
        #expect(await service.roomName(of: ada.session) == "Q")

        // The high half of the peer's number is still the first room's.
        await service.receive([.peerMoved(peer)])
        let events = await take(4, from: ada.events).map(\.event)
        #expect(events.contains { if case .moved(let snapshot) = $0 { snapshot.room.name == "Q" } else { false } })
        #expect(events.last == .connectionChanged(connection: "pub", state: .moved, reason: nil))
        #expect(
            await take(2, from: carl.events).contains {
                if case .participantJoined(let info) = $0.event { info.identity == "ada" } else { false }
            })
        let stays = log.all.compactMap { entry -> String? in
            switch entry.event {
            case .participantJoined(let info): "\(entry.room) + \(info.identity)"
            case .participantLeft(let info, let reason, _, _): "\(entry.room) - \(info.identity) \(reason.rawValue)"
            default: nil
            }
        }
        #expect(stays == ["R + ada", "Q + carl", "R - ada moved", "Q + ada"])
        await service.receive([.peerEnded(peer, .closedByPeer)])
        #expect(try await service.participant("ada", in: "Q").connections.isEmpty)
        await service.tick()
        #expect(await service.hasForgottenMoves)
        await service.leave(ada.session)
        #expect(try await service.room(named: "Q").participants.map(\.info.identity) == ["carl"])
    }

    @Test(
        "I8: a room that is not there is made beside the first, or not where joins make none; refusals change nothing")
    func rooms() async throws {
        let service = RoomHost(media: plane)
        _ = try await service.join(request("ada"))
        let phone = try await service.joinPublisher(request("phone"), offer: client.offer([.video("0")]))
        plane.turnWorkers()
        _ = try await service.join(request("carl", room: "far"))
        #expect(await code { _ = try await service.move("phone", from: "R", to: "far") } == .differentWorker)
        await service.leave(phone.session)
        #expect(try await service.move("ada", from: "R", to: "R").info.identity == "ada", "who is there stays there")
        #expect(await code { _ = try await service.move("eve", from: "R", to: "Q") } == .participantNotFound)
        #expect(
            await service.listRooms().map(\.name) == ["R", "far"], "a room that was made for a refused move has ended")
        #expect(await code { _ = try await service.move("ada", from: "nowhere", to: "R") } == .roomNotFound)
        #expect(try await service.participant("ada", in: "R").info.identity == "ada")
        #expect(try await service.move("ada", from: "R", to: "Q").info.identity == "ada")
        _ = try await service.createRoom(named: "near", beside: "Q")
        #expect(try await service.move("ada", from: "Q", to: "near").info.identity == "ada")
        #expect(await code { _ = try await service.createRoom(named: "x", beside: "nowhere") } == .roomNotFound)
        var configuration = RoomServiceConfiguration()
        configuration.autoCreateRooms = false
        await service.set(configuration)
        #expect(await code { _ = try await service.move("ada", from: "near", to: "new") } == .roomNotFound)
    }

    @Test(
        "I8: to a room of another worker the peers of the first end there, and the client's next offer makes one on the other"
    )
    func acrossWorkers() async throws {
        let service = RoomHost(media: plane)
        let ada = try await service.join(request("ada"))
        _ = try await service.offer(ada.session, connection: "pub", sdp: client.offer([.video("0")]))
        plane.turnWorkers()
        _ = try await service.join(request("carl", room: "far"))
        let peer = try #require(
            plane.commands(of: 1).lazy.compactMap { if case .addPeer(let peer) = $0 { peer.id } else { nil } }.first)
        let moved = try await service.move("ada", from: "R", to: "far")
        #expect(moved.info.tracks.isEmpty && moved.connections.isEmpty)
        #expect(plane.commands(of: 1).contains(.removePeer(peer)))
        #expect(await service.roomName(of: ada.session) == "far")
        #expect(await service.hasForgottenMoves)
        let fresh = ClientDescriptions(ufrag: "new1").offer([.video("0")])
        let answer = try await service.offer(ada.session, connection: "pub", sdp: fresh)
        #expect(answer.sdp.contains(" 7900 typ host"), "the other worker's port")
        #expect(plane.commands(of: 0).contains { if case .addPeer = $0 { true } else { false } })
        #expect(try await service.participant("ada", in: "far").info.tracks.count == 1)
        // What the first worker says of the peer's end concerns nobody any more.
        await service.receive([.peerEnded(peer, .removed)])
        #expect(try await service.participant("ada", in: "far").connections.count == 1)
    }

    @Test(
        "I8: one that makes connections by joining takes its place by a join, through lock, waiting room and taken identity; its former socket's events end, and what that says late counts no more"
    )
    func byJoining() async throws {
        let service = RoomHost(media: plane)
        let ada = try await service.join(request("ada") { $0.recovery = .byJoining })
        _ = try await service.offer(ada.session, connection: "main", sdp: client.offer([.video("0")]))
        plane.turnWorkers()
        var policy = PolicyDocument()
        (policy.waitingRoom, policy.duplicateIdentity) = (true, .refuse)
        _ = try await service.createRoom(named: "far", policy: policy)
        try await service.lock(room: "far", password: "secret")
        #expect(await code { _ = try await service.join(request("eve", room: "far")) } == .passwordRequired)
        let moved = try await service.move("ada", from: "R", to: "far")
        #expect(moved.info.sid == ada.snapshot.participant.sid)
        // The identity alone is not enough, and neither is the name of the room outside of the token.
        #expect(await code { _ = try await service.join(request("eve") { $0.claims.video.room = "far" }) } != nil)
        #expect(await code { _ = try await service.join(request("ada", room: "far")) } == .identityTaken)
        let again = request("ada") {
            $0.claims.video.room = "far"
            $0.recovery = .byJoining
        }
        #expect(
            await code { _ = try await service.resume(participant: moved.info.sid, claims: again.claims) }
                == .sessionNotFound)
        // A socket that did not open after all leaves the place free for the next.
        let first = try await service.join(again)
        #expect(first.start == .rejoined && first.session == ada.session)
        await service.abandon(first.session, attachment: first.attachment, start: first.start)
        let joined = try await service.join(again)
        #expect(joined.session == ada.session && joined.snapshot.participant.sid == moved.info.sid)
        let events = await take(8, from: ada.events).map(\.event)
        #expect(events.last == .connectionChanged(connection: "main", state: .closed, reason: "moved"))
        #expect(await service.detach(ada.session, attachment: ada.attachment) == false)
        let fresh = ClientDescriptions(ufrag: "new1").offer([.video("0")])
        let answer = try await service.offer(joined.session, connection: "main", sdp: fresh)
        #expect(answer.sdp.contains(" 7900 typ host"), "the other worker's port")
        #expect(try await service.participant("ada", in: "far").info.tracks.count == 1)
        // LiveKit's SDKs say goodbye on the old socket; the new one may be served first.
        #expect(await service.keepAlive(ada.session, attachment: ada.attachment) == false)
        await service.leave(ada.session, attachment: ada.attachment)
        #expect(try await service.room(named: "far").participants.map(\.info.identity) == ["ada"])
        #expect(await service.keepAlive(joined.session, attachment: joined.attachment))
        await service.leave(joined.session, attachment: joined.attachment)
        #expect(try await service.room(named: "far").participants.isEmpty)
    }

    @Test(
        "I8: a client whose socket was down during a move resumes in the new room, with a token of any room that it was in and of no other"
    )
    func awayMeanwhile() async throws {
        let service = RoomHost(media: plane)
        func from(_ room: String, _ identity: String = "ada") -> JoinRequest {
            request(identity) {
                $0.claims.video.room = room
                $0.recovery = .byJoining
                $0.understandsMoves = true
            }
        }
        let ada = try await service.join(from("R"))
        let sid = ada.snapshot.participant.sid
        _ = await service.detach(ada.session, attachment: ada.attachment)
        for (room, next) in [("R", "Q"), ("Q", "S")] { _ = try await service.move("ada", from: room, to: next) }
        for other in [from("T"), from("R", "eve")] {
            #expect(await code { _ = try await service.resume(participant: sid, claims: other.claims) } != nil)
        }
        // It may have been notified of the second and not of the third.
        for room in ["R", "Q", "S"] {
            let back = try await service.resume(participant: sid, claims: from(room).claims)
            #expect(back.session == ada.session && back.snapshot.room.name == "S")
            _ = await service.detach(ada.session, attachment: back.attachment)
        }
        // Back in the first.
        _ = try await service.move("ada", from: "S", to: "R")
        #expect(try await service.resume(participant: sid, claims: from("Q").claims).snapshot.room.name == "R")
        await service.leave(ada.session)
        #expect(
            await code { _ = try await service.resume(participant: sid, claims: from("R").claims) } == .sessionNotFound)
    }

    @Test("I8: a client whose socket was down during a move that ended its connections joins the new room")
    func joinsWhereItIs() async throws {
        let service = RoomHost(media: plane)
        let first = request("ada") {
            $0.claims.video.room = "R"
            ($0.recovery, $0.understandsMoves) = (.byJoining, false)
        }
        let ada = try await service.join(first)
        _ = try await service.join(request("bob"))
        _ = await service.detach(ada.session, attachment: ada.attachment)
        // A room that was deleted is closed to older tokens, but whom an operator moves there comes back.
        _ = try await service.createRoom(named: "Q")
        try await service.deleteRoom(named: "Q")
        #expect(await code { _ = try await service.join(request("eve", room: "Q")) } == .roomClosed)
        _ = try await service.move("ada", from: "R", to: "Q")
        let sid = ada.snapshot.participant.sid
        #expect(
            await code { _ = try await service.resume(participant: sid, claims: first.claims) } == .sessionNotFound,
            "there is nothing to go on with but by a join")
        try await service.checkJoin(first)
        let joined = try await service.join(first)
        #expect(joined.start == .rejoined && joined.session == ada.session && joined.snapshot.room.name == "Q")
        #expect(try await service.room(named: "R").participants.map(\.info.identity) == ["bob"])
        await service.leave(joined.session, attachment: joined.attachment)
        // Its place is kept no longer.
        #expect(try await service.join(first).snapshot.room.name == "R")
    }

    @Test(
        "I8: a client that joins where it was moved to is offered a connection, also when its first socket did not open, or the worker did not answer",
        arguments: [false, true])
    func joinsOnceMore(hangs: Bool) async throws {
        let service = RoomHost(media: plane)
        func joining(_ room: String) -> JoinRequest {
            request("ada", room: room) {
                $0.claims.video.room = room
                ($0.recovery, $0.offering, $0.receivingConnection) = (.byJoining, .serverAtOnce, Room.serverConnection)
            }
        }
        let ada = try await service.join(joining("R"))
        plane.turnWorkers()
        let carl = try await service.join(request("carl", room: "far"))
        _ = try await service.offer(carl.session, connection: "pub", sdp: client.offer([.video("0")]))
        _ = try await service.move("ada", from: "R", to: "far")
        if hangs {
            plane.hangAtNextCommand()
            #expect(await code { _ = try await service.join(joining("far")) } == .mediaUnavailable)
            plane.setHangs(false)
        } else {
            let first = try await service.join(joining("far"))
            await service.abandon(first.session, attachment: first.attachment, start: first.start)
        }
        let joined = try await service.join(joining("far"))
        #expect(joined.start == .rejoined && joined.session == ada.session)
        #expect(joined.snapshot.subscriptions.count == 1)
        #expect(try await service.participant("ada", in: "far").connections.count == 1)
        await service.leave(joined.session)
        let offered = await rest(of: joined.events).compactMap { entry -> Int? in
            if case .offer(Room.serverConnection, _, let tracks) = entry.event { tracks.count } else { nil }
        }
        #expect(offered == [1])
    }

    @Test("I8: the summary of a stay names the tracks that came with a participant from another room")
    func trackNames() async throws {
        let summaries = Mutex<[StaySummary]>([])
        let service = RoomHost(media: plane, stayEnded: { summary in summaries.withLock { $0.append(summary) } })
        let ada = try await service.join(request("ada"))
        let carl = try await service.join(request("carl", room: "Q") { $0.autoSubscribe = false })
        _ = try await service.offer(ada.session, connection: "pub", sdp: client.offer([.video("0")]))
        let added = plane.consumeCommands().compactMap { if case .addTrack(let track) = $0 { track.id } else { nil } }
        let track = try #require(added.first)
        _ = try await service.offer(carl.session, connection: "pub", sdp: client.offer([.audio("0")]))
        let peer = try #require(
            plane.consumeCommands().lazy.compactMap { if case .addPeer(let peer) = $0 { peer.id } else { nil } }.first)
        let moved = try await service.move("ada", from: "R", to: "Q")
        await service.leave(carl.session)
        var last = EndedPeer(bytesReceived: 1, bytesSent: 1)
        last.decisions = [
            DecisionRecord(
                time: .zero, subscription: SubscriptionID(1), track: track, layer: nil, estimate: nil, reason: .best)
        ]
        await service.receive([.peerMeasured(peer, last), .peerEnded(peer, .removed)])
        let summary = try #require(summaries.withLock { $0.first { $0.info.identity == "carl" } })
        #expect(summary.history.decisions.map(\.track) == [moved.info.tracks.first?.sid])
    }

    @Test("I8: whoever was moved past a waiting room need not wait when it comes back")
    func waitingRoom() async throws {
        let service = RoomHost(media: plane)
        let ada = try await service.join(request("ada"))
        var policy = PolicyDocument()
        policy.waitingRoom = true
        _ = try await service.createRoom(named: "far", policy: policy)
        #expect(await code { _ = try await service.join(request("eve", room: "far")) } == .approvalRequired)
        _ = try await service.move("ada", from: "R", to: "far")
        await service.leave(ada.session)
        #expect(try await service.room(named: "far").participants.isEmpty)
        _ = try await service.join(request("ada", room: "far"))
    }

    @Test(
        "I8: a banned identity is not moved into the room; a session that was moved is resumed with the token that joined"
    )
    func bansAndResume() async throws {
        let service = RoomHost(media: plane)
        let ada = try await service.join(request("ada") { $0.claims.video.room = "R" })
        _ = try await service.join(request("ada", room: "Q"))
        _ = try await service.remove("ada", from: "Q", ban: .seconds(60))
        _ = try await service.join(request("carl", room: "Q"))
        #expect(await code { _ = try await service.move("ada", from: "R", to: "Q") } == .banned)
        _ = try await service.move("ada", from: "R", to: "S")
        let resumed = try await service.resume(
            ada.session, after: 0, claims: request("ada") { $0.claims.video.room = "R" }.claims)
        #expect(
            await take(1, from: resumed.events).contains { if case .moved = $0.event { true } else { false } })
    }
}

extension RoomHost {
    fileprivate var hasForgottenMoves: Bool { rooms.moved.isEmpty }
}
