import AccessTokens
import MediaControl
import Primitives
import Rooms
import TestSupport
import Testing

@testable import RoomService

func request(_ identity: String, room: String? = "R") -> JoinRequest {
    JoinRequest(
        claims: AccessClaims(apiKey: "k", identity: identity, expiresAt: 0, video: .join(nil)), room: room)
}

/// Takes what waits in a session's stream now; the stream must hold at least `count`.
func take(_ count: Int, from events: SessionEvents) async -> [SequencedEvent] {
    var taken: [SequencedEvent] = []
    var iterator = events.makeAsyncIterator()
    while taken.count < count, let event = await iterator.next() { taken.append(event) }
    return taken
}

@Suite("Room service")
struct RoomServiceTests {
    let plane = FakePlane()
    let client = ClientDescriptions()

    @Test("Publish and subscribe: commands reach the worker before the answer returns, the receiver is offered")
    func publishAndSubscribe() async throws {
        let service = RoomService(media: plane)
        let bob = try await service.join(request("bob"))
        let ada = try await service.join(request("ada"))
        let answer = try await service.offer(
            ada.session, connection: "pub", sdp: client.offer([.audio("0"), .video("1")]))
        #expect(answer.tracks.count == 2)
        #expect(answer.sdp.contains("192.0.2.1 7901 typ host"))
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
}
