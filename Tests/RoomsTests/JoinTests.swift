import AccessTokens
import MediaControl
import Primitives
import Testing

@testable import Rooms

@Suite("Joining")
struct JoinTests {
    @Test("B18, B15: the same identity replaces the older session; alice and alice/screen are two")
    func duplicateIdentity() throws {
        var bench = RoomBench()
        let first = try bench.join("alice")
        let screen = try bench.join("alice/screen")
        let second = try bench.join("alice")
        #expect(bench.ended == [first: .duplicateIdentity])
        #expect(bench.room.has(screen) && bench.room.has(second))
        #expect(bench.takeEvents(first).last == .ended(.duplicateIdentity))
        try bench.step { (room, turn) throws(RoomError) in try room.removeParticipant("alice", turn: &turn) }
        #expect(bench.room.has(screen) && !bench.room.has(second))
    }
}
