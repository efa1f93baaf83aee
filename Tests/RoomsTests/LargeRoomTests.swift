import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Large rooms")
struct LargeRoomTests {
    @Test("What somebody publishes is offered to a bounded number of members in one step, and to each of them once")
    func offers() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada") { $0.autoSubscribe = false }
        let members = try (0..<150).map { try bench.join("member \($0)") { $0.wantsRoster = false } }
        for member in members { _ = bench.takeEvents(member) }
        func offered() -> [Int] {
            members.map { member in
                (bench.events[member] ?? []).count { if case .offer = $0.event { true } else { false } }
            }
        }
        try bench.offer(ada, [.audio("0")])
        #expect(offered() == Array(repeating: 1, count: Room.offersPerStep) + Array(repeating: 0, count: 86))
        #expect(bench.room.owesOffers && bench.room.nextDeadline <= bench.now)
        // Whoever leaves is offered nothing.
        bench.leave(members[149])
        #expect(offered().reduce(0, +) == 2 * Room.offersPerStep, "any step goes on with them")
        bench.advance(by: .zero)
        #expect(offered() == Array(repeating: 1, count: 149) + [0])
        #expect(!bench.room.owesOffers && !bench.room.hasNews)
        for member in members.dropLast() { #expect(try bench.answerOffers(member) == 1) }
        #expect(bench.room.subscriptions(of: members[148]).map(\.state) == [.active])
    }

    @Test("No offers are owed in a room that has ended")
    func ended() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada") { $0.autoSubscribe = false }
        for number in 0..<100 { try bench.join("member \(number)") { $0.wantsRoster = false } }
        try bench.offer(ada, [.audio("0")])
        try bench.step { (room, turn) throws(RoomError) in room.close(reason: .roomDeleted, turn: &turn) }
        #expect(bench.isOver && !bench.room.owesOffers && bench.leftovers.isEmpty)
    }
}
