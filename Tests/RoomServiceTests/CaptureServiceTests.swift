import AccessTokens
import MediaControl
import Primitives
import Rooms
import TestSupport
import Testing

@testable import RoomService

@Suite("Captures and checks in the room service")
struct CaptureServiceTests {
    let plane = FakePlane()
    let client = ClientDescriptions()
    static let wanted = CaptureRequest(duration: .seconds(10), maxBytes: 100_000, keepsPayload: false, by: "k/operator")

    private func service(allows: Bool = true) -> RoomHost {
        var configuration = RoomServiceConfiguration()
        configuration.allowsCaptures = allows
        return RoomHost(configuration: configuration, media: plane)
    }

    private var captured: [(peer: PeerID, isOn: Bool)] {
        plane.commands.compactMap {
            if case .setCapture(let peer, let settings) = $0 { (peer, settings != nil) } else { nil }
        }
    }

    @Test("No capture without the setting, and none of whoever is not there")
    func refused() async throws {
        let service = service(allows: false)
        _ = try await service.join(request("ada"))
        #expect(await code { _ = try await service.startCapture(of: "ada", in: "R", Self.wanted) } == .permissionDenied)
        let other = self.service()
        #expect(await code { _ = try await other.startCapture(of: "ada", in: "R", Self.wanted) } == .roomNotFound)
        _ = try await other.join(request("ada"))
        #expect(
            await code { _ = try await other.startCapture(of: "bob", in: "R", Self.wanted) } == .participantNotFound)
    }

    @Test("The participant is notified, the log says who asked, new connections are captured too, and time ends it")
    func life() async throws {
        let service = service()
        let ada = try await service.join(request("ada"))
        let info = try await service.startCapture(of: "ada", in: "R", Self.wanted)
        #expect(captured.isEmpty, "there is no connection yet")
        _ = try await service.offer(ada.session, connection: "pub", sdp: client.offer([.audio("0")]))
        #expect(await service.continueCaptures())
        #expect(captured.map(\.isOn) == [true])
        plane.pass(.seconds(11))
        let goesOn = await service.continueCaptures()
        #expect(!goesOn)
        #expect(captured.map(\.isOn) == [true, false] && captured[0].peer == captured[1].peer)
        let ended = try #require(await service.captures(of: "ada", in: "R").first)
        #expect(ended.end == .duration && ended.id == info.id && ended.by == "k/operator")
        let notices = await notices(service)
        #expect(notices.map(\.isActive) == [true, false] && notices.allSatisfy { $0.by == "k/operator" })
        let file = try #require(await service.captureFile(info.id))
        #expect(file.prefix(4) == [0x0a, 0x0d, 0x0d, 0x0a])
        await service.leave(ada.session)
        let reported = await rest(of: ada.events).compactMap {
            if case .captureChanged(let notice) = $0.event { notice.isActive } else { nil }
        }
        #expect(reported == [true, false])
        await service.deleteCapture(info.id)
        #expect(await service.captureFile(info.id) == nil)
    }

    @Test("Whoever leaves ends its capture, which can be fetched then; four are kept at most")
    func left() async throws {
        let service = service()
        let ada = try await service.join(request("ada"))
        _ = try await service.join(request("bob"))
        let first = try await service.startCapture(of: "ada", in: "R", Self.wanted)
        for _ in 0..<3 { _ = try await service.startCapture(of: "bob", in: "R", Self.wanted) }
        #expect(await code { _ = try await service.startCapture(of: "bob", in: "R", Self.wanted) } == .rateLimited)
        await service.leave(ada.session)
        #expect(await service.continueCaptures())
        #expect(await service.captures(of: "ada", in: "R").map(\.end) == [.left])
        await service.deleteCapture(first.id)
        _ = try await service.startCapture(of: "bob", in: "R", Self.wanted)
    }

    @Test("Captures that have ended block others for ten minutes; then the one that ended first makes room")
    func ended() async throws {
        let service = service()
        _ = try await service.join(request("ada"))
        var ids: [String] = []
        for _ in 0..<4 {
            ids.append(try await service.startCapture(of: "ada", in: "R", Self.wanted).id)
            plane.pass(.seconds(11))
            _ = await service.continueCaptures()
        }
        plane.pass(Captures.keptTime - .seconds(34))
        #expect(await code { _ = try await service.startCapture(of: "ada", in: "R", Self.wanted) } == .rateLimited)
        plane.pass(.seconds(1))
        let next = try await service.startCapture(of: "ada", in: "R", Self.wanted)
        #expect(await service.captures(of: "ada", in: "R").map(\.id) == Array(ids.dropFirst()) + [next.id])
        #expect(await service.captureFile(ids[0]) == nil)
        #expect(await code { _ = try await service.startCapture(of: "ada", in: "R", Self.wanted) } == .rateLimited)
    }

    private func notices(_ service: RoomHost) async -> [CaptureNotice] {
        await service.pastEvents(room: "R", after: .beginning, limit: 100).events.compactMap {
            if case .captureChanged(_, let notice) = $0.event { notice } else { nil }
        }
    }

    @Test(
        "The end is reported once where a capture is deleted while its packets are fetched, however many end it",
        .timeLimit(.minutes(1)))
    func deletedWhileFetched() async throws {
        let service = service()
        let ada = try await service.join(request("ada"))
        _ = try await service.offer(ada.session, connection: "pub", sdp: client.offer([.audio("0")]))
        let info = try await service.startCapture(of: "ada", in: "R", Self.wanted)
        plane.setHoldsCaptureReports(true)
        let fetching = Task { await service.continueCaptures() }
        while plane.heldCaptureReports < 1 { try await giveWay() }
        let deletions = (0..<2).map { number in
            Task {
                while plane.heldCaptureReports < 1 + number { try await giveWay() }
                await service.deleteCapture(info.id)
            }
        }
        while plane.heldCaptureReports < 3 { try await giveWay() }
        plane.setHoldsCaptureReports(false)
        // The one that asked last goes on first; what was fetched comes after all else.
        for deletion in deletions.reversed() {
            plane.releaseCaptureReport()
            try await deletion.value
        }
        plane.releaseCaptureReport()
        _ = await fetching.value
        #expect(await notices(service).map(\.isActive) == [true, false])
        #expect(captured.map(\.isOn) == [true, false])
    }

    @Test("The end of a capture is reported after its room has ended, as of that room, though another one has the name")
    func roomEnded() async throws {
        let service = service()
        _ = try await service.join(request("ada"))
        let former = try await service.room(named: "R").info.sid
        _ = try await service.startCapture(of: "ada", in: "R", Self.wanted)
        try await service.deleteRoom(named: "R")
        _ = try await service.createRoom(named: "R")
        _ = await service.continueCaptures()
        let reported = await service.pastEvents(room: "R", after: .beginning, limit: 100).events
        let last = try #require(reported.last)
        #expect(last.event.type == .captureEnded && last.roomSID == former)
        #expect(await notices(service).map(\.isActive) == [true, false])
    }

    @Test("A move ends the captures of the room that is left; the other one has none, and the participant is notified")
    func moved() async throws {
        let service = service()
        let ada = try await service.join(request("ada")), bob = try await service.join(request("bob", room: "Q"))
        _ = try await service.offer(ada.session, connection: "pub", sdp: client.offer([.audio("0")]))
        let info = try await service.startCapture(of: "ada", in: "R", Self.wanted)
        #expect(await service.continueCaptures())
        _ = try await service.move("ada", from: "R", to: "Q")
        #expect(captured.map(\.isOn) == [true, false])
        #expect(await service.captures(of: "ada", in: "R").map(\.end) == [.left])
        #expect(await service.captures(of: info.participant, in: "Q").isEmpty)
        let goesOn = await service.continueCaptures()
        #expect(!goesOn)
        #expect(await notices(service).map(\.isActive) == [true, false])
        let there = await service.pastEvents(room: "Q", after: .beginning, limit: 100).events
        #expect(!there.contains { if case .captureChanged = $0.event { true } else { false } })
        await service.leave(bob.session)
        await service.leave(ada.session)
        let reported = await rest(of: ada.events).compactMap {
            if case .captureChanged(let notice) = $0.event { notice.isActive } else { nil }
        }
        #expect(reported == [true, false])
    }

    @Test("The room of a check is in no list, event or summary, and there are no more than configured")
    func checks() async throws {
        var configuration = RoomServiceConfiguration()
        configuration.maxChecks = 1
        configuration.defaultPolicy.waitingRoom = true
        let service = RoomHost(configuration: configuration, media: plane)
        let room = try await open(service, "ada")
        #expect(await code { _ = try await open(service, "bob") } == .rateLimited)
        let ada = try await service.join(request("sender", room: room))
        #expect(await service.listRooms().isEmpty)
        #expect(await service.listRooms(includesChecks: true).map(\.name) == [room])
        await service.leave(ada.session)
        #expect(await service.pastEvents(room: nil, after: .beginning, limit: 100).events.isEmpty)
        plane.pass(PreCallCheck.duration)
        await service.tick()
        _ = try await open(service, "bob")
    }

    private func open(
        _ service: RoomHost, _ identity: String, from address: String = "192.0.2.1"
    ) async throws(RoomError) -> String {
        try await service.openCheck(request(identity).claims, from: address)
    }

    @Test("No client has more than half of the checks that there may be, however many addresses of its network it has")
    func checksOfOne() async throws {
        var configuration = RoomServiceConfiguration()
        configuration.maxChecks = 6
        let service = RoomHost(configuration: configuration, media: plane)
        for host in 1...3 { _ = try await open(service, "ada", from: "2001:db8::\(host)") }
        #expect(await code { _ = try await open(service, "ada", from: "2001:db8::9") } == .rateLimited)
        _ = try await open(service, "bob", from: "2001:db8::9")
        plane.pass(PreCallCheck.duration)
        await service.tick()
        _ = try await open(service, "ada", from: "2001:db8::9")
    }
}
