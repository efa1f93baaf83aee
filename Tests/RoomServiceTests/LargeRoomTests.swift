import Primitives
import Rooms
import TestSupport
import Testing

@testable import RoomService

@Suite("Large rooms in the room service")
struct LargeRoomTests {
    let plane = FakePlane()
    let client = ClientDescriptions()

    @Test("The offers that the step of a publication leaves over are made with the next tick")
    func offers() async throws {
        let service = RoomHost(media: plane)
        let ada = try await service.join(request("ada") { $0.autoSubscribe = false })
        for index in 0..<150 { _ = try await service.join(request("member \(index)") { $0.wantsRoster = false }) }
        _ = try await service.offer(ada.session, connection: "pub", sdp: client.offer([.audio("0")]))
        #expect(await service.statistics().offersMade < 150)
        await service.tick()
        #expect(await service.statistics().offersMade == 150)
    }

    @Test("Twice the roster of a full room may wait for whoever asked for it", arguments: [1, 2_000, 2_001, 100_000])
    func rosterFits(participants: Int) {
        var configuration = RoomServiceConfiguration()
        configuration.maxParticipantsPerRoom = participants
        #expect(configuration.queuedEvents >= 2 * participants)
    }

    @Test(
        "A roster is one event for the room and one for each other: whoever asks keeps its stream where so many may wait, and no longer"
    )
    func roster() async throws {
        for (limit, slow) in [(31, 0 as UInt64), (30, 1)] {
            var configuration = RoomServiceConfiguration()
            configuration.maxQueuedEvents = limit
            let service = RoomHost(configuration: configuration, media: plane)
            for index in 0..<30 { _ = try await service.join(request("member \(index)") { $0.wantsRoster = false }) }
            let eve = try await service.join(request("eve") { $0.wantsRoster = false })
            #expect(eve.snapshot.others.isEmpty)
            try await service.perform(.requestRoster, in: eve.session)
            #expect(await service.statistics().slowReaders == slow)
            await service.shutDown()
        }
    }
}
