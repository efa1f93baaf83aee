import MediaControl
import Primitives
import Rooms
import TestSupport
import Testing

@testable import RoomService

@Suite("Capacity")
struct CapacityTests {
    let plane = FakePlane()
    let client = ClientDescriptions()

    private func service(connections: Int) -> RoomHost {
        var configuration = RoomServiceConfiguration()
        configuration.maxConnections = connections
        return RoomHost(configuration: configuration, media: plane)
    }

    @Test("A join for whose connections there is no memory is refused before anything of it is made, over all rooms")
    func refused() async throws {
        let service = service(connections: 4)
        let bob = try await service.join(request("bob", room: "A"))
        let offer = client.offer([.video("0")])
        let caster = try await service.joinPublisher(request("caster", room: "B"), offer: offer)
        #expect(await code { _ = try await service.join(request("eve", room: "A")) } == .overloaded)
        _ = plane.consumeCommands()
        #expect(await code { _ = try await service.join(request("eve", room: "new")) } == .overloaded)
        #expect(plane.consumeCommands() == [.addRoom(RoomID(3)), .removeRoom(RoomID(3))], "the room is not kept")
        _ = try await service.joinPublisher(request("last", room: "B"), offer: offer)
        let refusal = await code { _ = try await service.joinPublisher(request("one more", room: "B"), offer: offer) }
        #expect(refusal == .overloaded)
        #expect(await service.listRooms().map(\.participants) == [1, 2])
        #expect(await service.statistics().reservedConnections == 4)
        #expect(await service.statistics().refusals == ["overloaded": 3])
        // What was promised with the join is kept, whatever came since; one more is not.
        for name in ["pub", "sub"] { _ = try await service.offer(bob.session, connection: name, sdp: offer) }
        #expect(await code { _ = try await service.offer(bob.session, connection: "3", sdp: offer) } == .overloaded)
        // The same person again takes the place of its older session.
        _ = try await service.join(request("bob", room: "A"))
        await service.leave(caster.session)
        _ = try await service.joinPublisher(request("one more", room: "B"), offer: offer)
    }

    @Test("Joins and requests to a worker that hangs are refused with media_unavailable, and change nothing")
    func hungWorker() async throws {
        let service = service(connections: 100)
        let bob = try await service.join(request("bob"))
        plane.hangAtNextCommand()
        // The worker stops with the very commands of this one, which has joined by then.
        let offer = client.offer([.video("0")])
        #expect(await code { _ = try await service.joinPublisher(request("ada"), offer: offer) } == .mediaUnavailable)
        #expect(await service.listRooms().map(\.participants) == [1], "it has left again")
        _ = plane.consumeCommands()
        #expect(await code { _ = try await service.join(request("eve")) } == .mediaUnavailable)
        let refusal = await code { _ = try await service.offer(bob.session, connection: "pub", sdp: offer) }
        #expect(refusal == .mediaUnavailable)
        #expect(await code { _ = try await service.report(onRoom: "R") } == .mediaUnavailable)
        #expect(plane.consumeCommands().isEmpty)
        plane.setHangs(false)
        _ = try await service.offer(bob.session, connection: "pub", sdp: offer)
        await service.leave(bob.session)
        #expect(await service.statistics().reservedConnections == 0)
    }

    @Test("A room that was made on a worker that begins to hang goes away again: the next try makes it elsewhere")
    func hungNewRoom() async throws {
        let service = service(connections: 100)
        plane.hangAtNextCommand()
        #expect(await code { _ = try await service.createRoom(named: "R") } == .mediaUnavailable)
        #expect(await service.listRooms().isEmpty)
        plane.setHangs(false)
        _ = try await service.createRoom(named: "R")
        plane.hangAtNextCommand()
        #expect(await code { _ = try await service.join(request("ada", room: "S")) } == .mediaUnavailable)
        #expect(await service.listRooms().map(\.name) == ["R"])
        plane.setHangs(false)
        _ = try await service.join(request("ada", room: "S"))
    }

    @Test("K3: a guest who asks again and again while nobody lets them in is no load; whoever comes in is")
    func waitingGuests() async throws {
        let gate = LoadGate(workers: 2)
        var worker = LoadSample.Worker()
        worker.peers = 2
        for second in 0..<60 {
            worker.busyTime = .milliseconds(Int64(400 * second))
            let sample = LoadSample(workers: [worker, worker])
            gate.apply(sample, at: MonotonicTime(milliseconds: Int64(1_000 * second)))
        }
        let service = RoomHost(configuration: RoomServiceConfiguration(), media: plane, load: gate)
        var policy = PolicyDocument()
        policy.waitingRoom = true
        _ = try await service.createRoom(named: "closed", policy: policy)
        for _ in 0..<100 {
            #expect(await code { _ = try await service.join(request("eve", room: "closed")) } == .approvalRequired)
        }
        // Two peers take 40 %, so three more are more than 85 %.
        for name in ["ada", "bob", "cyd"] { _ = try await service.join(request(name, room: "open")) }
        #expect(await code { _ = try await service.join(request("dan", room: "open")) } == .overloaded)
    }

    /// A server of two workers, of which each may still take three participants.
    private func loadedService() -> RoomHost {
        let gate = LoadGate(workers: 2)
        var worker = LoadSample.Worker()
        worker.peers = 2
        for second in 0..<60 {
            worker.busyTime = .milliseconds(Int64(400 * second))
            let sample = LoadSample(workers: [worker, worker])
            gate.apply(sample, at: MonotonicTime(milliseconds: Int64(1_000 * second)))
        }
        return RoomHost(configuration: RoomServiceConfiguration(), media: plane, load: gate)
    }

    @Test("K3: a server that takes nobody more takes whoever has just left, once for each departure")
    func returns() async throws {
        let service = loadedService()
        var sessions: [SessionID] = []
        for name in ["ada", "bob", "cyd"] { sessions.append(try await service.join(request(name)).session) }
        #expect(await code { _ = try await service.join(request("dan")) } == .overloaded)
        await service.leave(sessions[0])
        #expect(await code { try await service.checkJoin(request("dan")) } == .overloaded)
        try await service.checkJoin(request("ada"))
        _ = try await service.join(request("ada"))
        await service.leave(sessions[1])
        plane.pass(.seconds(60))
        #expect(await code { _ = try await service.join(request("bob")) } == .overloaded)
    }

    @Test("K3: where an identity may be in a room more than once, each further join of it is load")
    func sharedIdentity() async throws {
        let service = loadedService()
        var policy = PolicyDocument()
        policy.duplicateIdentity = .allow
        _ = try await service.createRoom(named: "R", policy: policy)
        for _ in 0..<3 { _ = try await service.join(request("ada")) }
        #expect(await code { _ = try await service.join(request("ada")) } == .overloaded)
        #expect(await code { try await service.checkJoin(request("ada")) } == .overloaded)
    }

    @Test("Whoever asks to join again and again, with a description that is none, uses up no joins of others")
    func oneClient() async throws {
        var configuration = RoomServiceConfiguration()
        configuration.maxJoinsPerSecond = 120
        let service = RoomHost(configuration: configuration, media: plane)
        func attempt(from address: String, room: String = "R") async -> RoomError.Code? {
            let join = request("eve", room: room) { $0.address = address }
            return await code { _ = try await service.joinPublisher(join, offer: "v=0") }
        }
        for _ in 0..<ClientJoins.burst { #expect(await attempt(from: "2001:db8::1") != .rateLimited) }
        // Nor does it help to name a room that nobody has, where the token names none.
        for index in 0..<50 {
            #expect(await attempt(from: "2001:db8::\(index + 2)", room: "R \(index % 2)") == .rateLimited)
        }
        #expect(await attempt(from: "192.0.2.1") != .rateLimited, "the identity is not alone to count")
        _ = try await service.join(request("bob"))
        plane.pass(.seconds(1))
        #expect(await attempt(from: "2001:db8::1") != .rateLimited)
    }

    @Test("Guests who ask again use up no joins of others; on a full server whoever is in it connects anew")
    func guestsAndReturns() async throws {
        var configuration = RoomServiceConfiguration()
        (configuration.maxJoinsPerSecond, configuration.maxParticipants) = (4, 2)
        let service = RoomHost(configuration: configuration, media: plane)
        var policy = PolicyDocument()
        policy.waitingRoom = true
        _ = try await service.createRoom(named: "closed", policy: policy)
        for _ in 0..<50 {
            #expect(await code { _ = try await service.join(request("eve", room: "closed")) } == .approvalRequired)
        }
        for name in ["ada", "bob"] { _ = try await service.join(request(name, room: "open")) }
        #expect(await code { _ = try await service.join(request("cyd", room: "open")) } == .overloaded)
        _ = try await service.join(request("bob", room: "open"))
        #expect(await service.listRooms().first { $0.name == "open" }?.participants == 2)
    }

    @Test("What is reserved goes back to nothing, however connections come and go")
    func balanced() async throws {
        let service = service(connections: 20)
        let offer = client.offer([.audio("0"), .video("1")])
        for _ in 0..<3 {
            let ada = try await service.join(request("ada"))
            let bob = try await service.join(request("bob"))
            for name in ["a", "b", "c"] { _ = try await service.offer(ada.session, connection: name, sdp: offer) }
            #expect(await service.statistics().reservedConnections == 5)
            try await service.bye(ada.session, connection: "b")
            #expect(await service.statistics().reservedConnections == 4)
            await service.leave(ada.session)
            await service.leave(bob.session)
            #expect(await service.statistics().reservedConnections == 0)
        }
    }

    @Test("A mesh room's members take none of the server's connections")
    func mesh() async throws {
        let service = service(connections: 0)
        var policy = PolicyDocument()
        policy.topology = .peerToPeer
        _ = try await service.createRoom(named: "mesh", policy: policy)
        _ = try await service.join(request("ada", room: "mesh"))
        #expect(await service.statistics().reservedConnections == 0)
    }

    @Test(
        "The default follows from the memory that there is",
        arguments: [(0, 16), (256, 335), (512, 1_006), (16_384, 42_614)])
    func fitting(mebibytes: Int, connections: Int) {
        #expect(RoomServiceConfiguration.connections(fittingInto: UInt64(mebibytes) << 20) == connections)
    }
}
