import AccessTokens
import MediaControl
import Primitives
import Rooms
import TestSupport
import Testing

@testable import RoomService

func request(_ identity: String, room: String? = "R", _ change: (inout JoinRequest) -> Void = { _ in }) -> JoinRequest {
    var request = JoinRequest(
        claims: AccessClaims(apiKey: "k", identity: identity, expiresAt: 0, video: .join(nil)), room: room)
    change(&request)
    return request
}

/// Takes `count` events; the stream must bring them.
func take(_ count: Int, from events: SessionEvents) async -> [SequencedEvent] {
    var taken: [SequencedEvent] = []
    var iterator = events.makeAsyncIterator()
    while taken.count < count, let event = await iterator.next() { taken.append(event) }
    return taken
}

/// Takes all events of a stream that has ended.
func rest(of events: SessionEvents) async -> [SequencedEvent] {
    var taken: [SequencedEvent] = []
    for await event in events { taken.append(event) }
    return taken
}

func code(_ body: () async throws -> Void) async -> RoomError.Code? {
    do {
        try await body()
        return nil
    } catch {
        return (error as? RoomError)?.code
    }
}

@Suite("Room service")
struct RoomServiceTests {
    let plane = FakePlane()
    let client = ClientDescriptions()

    @Test("Publish and subscribe: commands reach the worker before the answer returns, the receiver is offered")
    func publishAndSubscribe() async throws {
        let service = RoomHost(media: plane)
        let bob = try await service.join(request("bob"))
        let ada = try await service.join(request("ada"))
        let answer = try await service.offer(
            ada.session, connection: "pub", sdp: client.offer([.audio("0"), .video("1")]))
        #expect(answer.tracks.count == 2)
        #expect(answer.sdp.contains("192.0.2.1 7901 typ host"), "the port of the room's worker")
        let commands = plane.commands
        #expect(commands.contains { if case .addTrack(let track) = $0 { track.kind == .video } else { false } })
        let events = await take(6, from: bob.events)
        #expect(events.map(\.sequence) == Array(1...UInt64(events.count)))
        guard case .offer(let connection, let sdp, let tracks) = events.last?.event else {
            Issue.record("no offer: \(events)")
            return
        }
        #expect(connection == "sub" && Set(tracks.values) == Set(answer.tracks.values))
        try await service.answer(bob.session, connection: "sub", sdp: client.answer(to: sdp))
        let subscriptions = plane.commands.filter { if case .subscribe = $0 { true } else { false } }
        #expect(subscriptions.count == 2)
        let detail = try await service.room(named: "R")
        #expect(
            detail.participants.first { $0.info.identity == "bob" }?.subscriptions.map(\.state) == [.active, .active])
    }

    @Test("C2: fifty first joins at once make exactly one room")
    func oneRoom() async throws {
        let service = RoomHost(media: plane)
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<50 { group.addTask { _ = try? await service.join(request("m\(index)", room: "new")) } }
        }
        #expect(await service.listRooms().map(\.participants) == [50])
        #expect(plane.commands.count { if case .addRoom = $0 { true } else { false } } == 1)
        #expect(await service.statistics().roomsCreated == 1)
    }

    @Test("B4: the room is the token's, the asked, the default or a generated one")
    func roomNames() async throws {
        let service = RoomHost(media: plane)
        func joined(_ granted: String?, _ asked: String?) async throws -> String {
            try await service.join(request("x", room: asked) { $0.claims.video.room = granted }).snapshot.room.name
        }
        #expect(try await joined("R1", "R1") == "R1")
        #expect(await code { _ = try await joined("R1", "R2") } == .roomMismatch)
        #expect(await service.listRooms().map(\.name) == ["R1"], "a refused join makes no room")
        #expect(try await joined(nil, nil) == "Broadcast")
        #expect(try await joined(nil, "").hasPrefix("room-"))
    }

    @Test("A refused join leaves no room behind")
    func refusedJoin() async throws {
        let service = RoomHost(media: plane)
        #expect(await code { _ = try await service.join(request("")) } == .identityRequired)
        #expect(
            await code { _ = try await service.join(request("a", room: String(repeating: "r", count: 300))) }
                == .invalidRequest)
        #expect(await service.listRooms().isEmpty)
        #expect(await service.statistics().refusals == ["identity_required": 1, "invalid_request": 1])
        #expect(plane.commands.contains { if case .removeRoom = $0 { true } else { false } })
    }

    @Test("Admission: rooms, participants, joins a second, draining, rooms made by operators only")
    func admission() async throws {
        var configuration = RoomServiceConfiguration()
        configuration.maxRooms = 1
        configuration.maxParticipants = 3
        let service = RoomHost(configuration: configuration, media: plane)
        for index in 0..<3 { _ = try await service.join(request("\(index)")) }
        #expect(await code { _ = try await service.join(request("4")) } == .overloaded)

        configuration = RoomServiceConfiguration()
        configuration.maxJoinsPerSecond = 2
        configuration.autoCreateRooms = false
        let slow = RoomHost(configuration: configuration, media: plane)
        #expect(await code { _ = try await slow.join(request("0")) } == .roomNotFound)
        _ = try await slow.createRoom(named: "R")
        #expect(await code { _ = try await slow.createRoom(named: "R") } == .roomExists)
        _ = try await slow.join(request("0"))
        #expect(await code { _ = try await slow.join(request("0")) } == .rateLimited)
        plane.pass(.seconds(1))
        _ = try await slow.join(request("0"))
    }

    @Test("K2: a draining server makes no rooms and serves its own; members are notified, without a roster, too")
    func drain() async throws {
        let service = RoomHost(media: plane)
        let ada = try await service.join(request("ada"))
        let alone = try await service.join(request("alone") { $0.wantsRoster = false })
        let notice = DrainNotice(deadline: 1_790_000_600_000)
        await service.setDrain(notice)
        #expect(await code { _ = try await service.join(request("bob", room: "new")) } == .draining)
        #expect(await code { _ = try await service.createRoom(named: "other") } == .draining)
        #expect(try await service.join(request("bob")).snapshot.drain == notice)
        #expect(await service.statistics().isDraining)
        await service.setDrain(nil)
        _ = try await service.join(request("carol", room: "new"))
        #expect(await !service.statistics().isDraining)
        await service.shutDown()
        for member in [ada, alone] {
            var reported: [DrainNotice?] = []
            for await event in member.events {
                if case .drainChanged(let notice) = event.event { reported.append(notice) }
            }
            #expect(reported == [notice, nil])
        }
        #expect(await code { _ = try await service.join(request("dora")) } == .draining)
    }

    @Test("Operators: list, look, mute, remove, delete; members are notified with the reason")
    func operators() async throws {
        let service = RoomHost(media: plane)
        let bob = try await service.join(request("bob"))
        let ada = try await service.join(request("ada"))
        let answer = try await service.offer(ada.session, connection: "pub", sdp: client.offer([.audio("0")]))
        let sid = try #require(answer.tracks["0"])
        #expect(try await service.setMuted(true, track: sid, in: "R").muted)
        #expect(await code { _ = try await service.setMuted(false, track: sid, in: "R") } == .permissionDenied)
        #expect(await code { _ = try await service.setMuted(true, track: "TR_x", in: "R") } == .trackNotFound)
        #expect(try await service.participant("ada", in: "R").info.tracks.first?.muted == true)
        try await service.remove("ada", from: "R")
        #expect(await rest(of: ada.events).last?.event == .ended(.removed, message: nil))
        #expect(await code { _ = try await service.participant("ada", in: "R") } == .participantNotFound)
        try await service.deleteRoom(named: "R")
        #expect(await rest(of: bob.events).last?.event == .ended(.roomDeleted, message: nil))
        #expect(await code { _ = try await service.room(named: "R") } == .roomNotFound)
        #expect(await code { try await service.perform(.wantSpeakers(true), in: bob.session) } == .sessionNotFound)
        let totals = await service.statistics()
        #expect(totals.departures == ["removed": 1, "room_deleted": 1] && totals.participants == 0)
    }

    @Test(
        "4.8: what an operator or a moderator ended stays so for older tokens, for as long as is set; newer ones come in"
    )
    func olderTokens() async throws {
        let second = plane.wallClockMilliseconds() / 1_000
        let service = RoomHost(media: plane)
        func join(_ identity: String, issuedAt: Int64?) async -> RoomError.Code? {
            await code {
                _ = try await service.join(request(identity) { $0.claims.issuedAt = issuedAt })
            }
        }
        #expect(await join("ada", issuedAt: second - 60) == nil)
        let closure = try await service.remove("ada", from: "R")
        #expect(closure == TokenClosure(duration: .seconds(3_600), issuedAfter: second))
        #expect(await join("ada", issuedAt: second - 60) == .participantRemoved)
        #expect(await join("ada", issuedAt: nil) == .participantRemoved)
        #expect(await join("ada", issuedAt: second + 1) == nil)
        #expect(await join("bob", issuedAt: second - 60) == nil)
        let boss = try await service.join(request("boss") { $0.claims.video.roomAdmin = true })
        try await service.perform(.remove(participant: "bob"), in: boss.session)
        #expect(await join("bob", issuedAt: second - 60) == .participantRemoved, "a moderator's word counts as much")

        #expect(try await service.deleteRoom(named: "R") == closure)
        #expect(await join("eve", issuedAt: second) == .roomClosed)
        #expect(
            await code {
                let old = request("cam") { $0.claims.issuedAt = second }
                _ = try await service.joinPublisher(old, offer: client.offer([.audio("0")]))
            } == .roomClosed)
        #expect(await service.listRooms().isEmpty, "nor does it bring the room back without its limits")
        _ = try await service.createRoom(named: "R")
        #expect(await join("eve", issuedAt: second) == nil, "an operator opened it again")
        #expect(await join("bob", issuedAt: second) == .participantRemoved)
        plane.pass(.seconds(3_600))
        #expect(await join("bob", issuedAt: second) == nil)
    }

    @Test("A WHIP publisher that is refused leaves its older session of the same identity as it was")
    func refusedPublisherEndsNothing() async throws {
        let service = RoomHost(media: plane)
        let bob = try await service.join(request("bob"))
        let live = try await service.joinPublisher(request("ada"), offer: client.offer([.video("0")]))
        plane.turnWorkers()
        _ = plane.consumeCommands()
        for offer in ["v=0", client.offer([])] {
            #expect(await code { _ = try await service.joinPublisher(request("ada"), offer: offer) } != nil)
        }
        let there = try await service.room(named: "R").participants.map(\.info.sid)
        #expect(there == [bob.snapshot.participant.sid, live.participant.sid])
        #expect(plane.consumeCommands().isEmpty)
        await service.leave(bob.session)
        let reported = await rest(of: bob.events).map(\.event)
        #expect(reported.contains { if case .participantJoined = $0 { true } else { false } })
        #expect(!reported.contains { if case .participantLeft = $0 { true } else { false } })
    }

    @Test("4.8: with closed_for 0 older tokens are good")
    func olderTokensAccepted() async throws {
        var configuration = RoomServiceConfiguration()
        configuration.closedFor = .zero
        let service = RoomHost(configuration: configuration, media: plane)
        _ = try await service.join(request("ada"))
        try await service.remove("ada", from: "R")
        _ = try await service.join(request("ada"))
        #expect(try await service.deleteRoom(named: "R").duration == .zero)
        _ = try await service.join(request("ada"))
    }

    @Test("Graceful end: every member is notified, every room ends, nobody comes in")
    func shutDown() async throws {
        let service = RoomHost(media: plane)
        let ada = try await service.join(request("ada"))
        let bob = try await service.join(request("bob", room: "other"))
        await service.shutDown()
        #expect(await rest(of: ada.events).last?.event == .ended(.serverShutdown, message: nil))
        #expect(await rest(of: bob.events).last?.event == .ended(.serverShutdown, message: nil))
        #expect(plane.commands.count { if case .removeRoom = $0 { true } else { false } } == 2)
        #expect(await code { _ = try await service.join(request("eve")) } == .draining)
    }

    @Test("Each member of a room that ends learns that, of however many others it is full, and nothing else")
    func endOfLargeRoom() async throws {
        var configuration = RoomServiceConfiguration()
        configuration.maxQueuedEvents = 4
        let service = RoomHost(configuration: configuration, media: plane)
        var members: [JoinedSession] = []
        for index in 0..<8 {
            let joined = try await service.join(request("m\(index)"))
            for member in members { _ = await take(1, from: member.events) }
            members.append(joined)
        }
        try await service.deleteRoom(named: "R")
        for member in members {
            #expect(await rest(of: member.events).map(\.event) == [.ended(.roomDeleted, message: nil)])
        }
        #expect(await service.statistics().slowReaders == 0)
    }

    @Test("The log has what happens, in order")
    func log() async throws {
        let entries = FileRecorder()
        let service = RoomHost(media: plane) { entries.append($0) }
        let ada = try await service.join(request("ada"))
        _ = try await service.offer(ada.session, connection: "pub", sdp: client.offer([.audio("0")]))
        await service.leave(ada.session)
        let kinds = entries.all.map { entry -> String in
            switch entry.event {
            case .roomStarted: "start"
            case .participantJoined: "join"
            case .trackPublished: "publish"
            case .trackUnpublished: "unpublish"
            case .connectionChanged: "connection"
            case .participantLeft: "leave"
            default: "other"
            }
        }
        #expect(kinds == ["start", "join", "publish", "unpublish", "connection", "leave"])
        #expect(entries.all.allSatisfy { $0.room == "R" && $0.at == 1_700_000_000_000 })
    }
}
