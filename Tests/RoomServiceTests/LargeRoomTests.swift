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
        let service = RoomService(media: plane)
        let ada = try await service.join(request("ada") { $0.autoSubscribe = false })
        for index in 0..<150 { _ = try await service.join(request("member \(index)") { $0.wantsRoster = false }) }
        _ = try await service.offer(ada.session, connection: "pub", sdp: client.offer([.audio("0")]))
        #expect(await service.statistics().offersMade < 150)
        await service.tick()
        #expect(await service.statistics().offersMade == 150)
    }
}
