import AccessTokens
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("The waiting room")
struct WaitingRoomTests {
    /// A room with a waiting room and its moderator.
    private static func house() throws -> (RoomBench, host: SessionID) {
        var policy = RoomPolicy()
        policy.waitingRoom = true
        var bench = RoomBench(policy: policy)
        let host = try bench.join("host") { $0.claims.video.roomAdmin = true }
        _ = bench.consumeEvents(host)
        bench.log = []
        return (bench, host)
    }

    /// A join as the service carries it out; the code of its refusal.
    private static func ask(_ bench: inout RoomBench, _ identity: String) -> RoomError.Code? {
        do {
            try bench.step { (room, turn) throws(RoomError) in
                let request = RoomBench.request(identity)
                do throws(RoomError) {
                    _ = try room.join(request, isSignalled: true, turn: &turn)
                } catch {
                    if error.code == .approvalRequired { room.noteGuest(request, turn: &turn) }
                    throw error
                }
            }
            return nil
        } catch {
            return error.code
        }
    }

    @Test(
        "Somebody waits until a moderator lets it in, once for the life of the room; moderators are notified of who waits"
    )
    func letIn() throws {
        var (bench, host) = try Self.house()
        #expect(Self.ask(&bench, "dora") == .approvalRequired)
        let guest = WaitingGuest(identity: "dora", name: "", since: RoomBench.wallClock)
        #expect(bench.consumeEvents(host) == [.waitingRoomChanged([guest])])
        #expect(bench.log == [.guestWaiting(guest)])
        #expect(Self.ask(&bench, "dora") == .approvalRequired)
        #expect(bench.consumeEvents(host).isEmpty, "asking again is no news")
        try bench.perform(.letIn(identity: "dora"), host)
        #expect(bench.consumeEvents(host) == [.waitingRoomChanged([])])
        #expect(Self.ask(&bench, "dora") == nil)
        let dora = try #require(bench.room.find("dora"))
        try bench.step { (room, turn) throws(RoomError) in room.leave(dora, turn: &turn) }
        #expect(Self.ask(&bench, "dora") == nil, "a lost connection is no reason to wait again")
        try bench.perform(.remove(participant: "dora"), host)
        #expect(Self.ask(&bench, "dora") == .approvalRequired, "whoever was removed must ask again")
    }

    @Test("Whoever was turned away is refused for a minute, and may ask again then")
    func turnAway() throws {
        var (bench, host) = try Self.house()
        #expect(Self.ask(&bench, "dora") == .approvalRequired)
        try bench.perform(.turnAway(identity: "dora"), host)
        #expect(Self.ask(&bench, "dora") == .turnedAway)
        for _ in 0..<6 {
            bench.touch([host])
            bench.advance(by: .seconds(10))
        }
        #expect(Self.ask(&bench, "dora") == .approvalRequired)
    }

    @Test("Whoever stops asking is no longer in the list after 15 s")
    func patience() throws {
        var (bench, host) = try Self.house()
        #expect(Self.ask(&bench, "dora") == .approvalRequired)
        _ = bench.consumeEvents(host)
        bench.touch([host])
        bench.advance(by: .milliseconds(14_999))
        #expect(bench.room.guests.count == 1)
        bench.touch([host])
        bench.advance(by: .milliseconds(1))
        #expect(bench.room.guests.isEmpty && bench.consumeEvents(host).contains(.waitingRoomChanged([])))
    }

    @Test("Only moderators decide, only about those who wait, and a moderator who joins learns of them")
    func rights() throws {
        var (bench, host) = try Self.house()
        #expect(throws: RoomError(.guestNotFound, "nobody waits with this identity")) {
            try bench.perform(.letIn(identity: "dora"), host)
        }
        #expect(Self.ask(&bench, "dora") == .approvalRequired)
        #expect(Self.ask(&bench, "bob") == .approvalRequired)
        try bench.perform(.letIn(identity: "bob"), host)
        let bob = try bench.join("bob")
        #expect(throws: RoomError(.permissionDenied, "only a moderator (roomAdmin) may do this")) {
            try bench.perform(.letIn(identity: "dora"), bob)
        }
        #expect(try bench.room.snapshot(bob).guests.isEmpty)
        #expect(try bench.room.snapshot(host).guests.map(\.identity) == ["dora"])
        // One of the members becomes a moderator, and is none any more.
        var permissions = try #require(bench.info(bob)?.permissions)
        _ = bench.consumeEvents(bob)
        permissions.roomAdmin = true
        try bench.setPermissions(permissions, "bob")
        #expect(bench.consumeEvents(bob).contains(.waitingRoomChanged(bench.room.guests)))
        permissions.roomAdmin = false
        try bench.setPermissions(permissions, "bob")
        #expect(bench.consumeEvents(bob).contains(.waitingRoomChanged([])))
    }

    @Test("Who is in a room when it gets a waiting room may come back; who waits when it loses it is no longer listed")
    func edits() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        var policy = RoomPolicy()
        policy.waitingRoom = true
        try bench.setPolicy(policy)
        try bench.step { (room, turn) throws(RoomError) in room.leave(ada, turn: &turn) }
        #expect(Self.ask(&bench, "ada") == nil)
        #expect(Self.ask(&bench, "dora") == .approvalRequired)
        try bench.setPolicy(RoomPolicy())
        #expect(bench.room.guests.isEmpty && Self.ask(&bench, "dora") == nil)
    }

    @Test("A room that everybody has left does not end while somebody waits to be let in, but when they stop asking")
    func waitsInEmptyRoom() throws {
        var (bench, host) = try Self.house()
        bench.leave(host)
        for _ in 0..<4 {
            #expect(Self.ask(&bench, "dora") == .approvalRequired)
            bench.advance(by: .seconds(10))
            #expect(!bench.isOver && bench.room.nextDeadline > bench.now)
        }
        bench.advance(by: .seconds(5))
        #expect(bench.isOver)
    }

    @Test(
        "A room that everybody has left stays 15 s for whoever was let in last, or need not wait any more",
        arguments: [true, false])
    func waitsForArrival(_ isLetIn: Bool) throws {
        var (bench, host) = try Self.house()
        bench.leave(host)
        for _ in 0..<3 {
            #expect(Self.ask(&bench, "dora") == .approvalRequired)
            bench.advance(by: .seconds(10))
        }
        if isLetIn {
            try bench.step { (room, turn) throws(RoomError) in
                try room.decide(onGuest: "dora", letsIn: true, by: nil, turn: &turn)
            }
        } else {
            try bench.setPolicy(RoomPolicy())
        }
        bench.advance(by: .milliseconds(14_999))
        #expect(!bench.isOver)
        bench.advance(by: .milliseconds(1))
        #expect(bench.isOver)
    }

    @Test("256 may wait; one more is refused with room_full")
    func bound() throws {
        var (bench, _) = try Self.house()
        for number in 0..<256 { #expect(Self.ask(&bench, "guest-\(number)") == .approvalRequired) }
        #expect(Self.ask(&bench, "late") == .roomFull)
        #expect(bench.room.guests.count == 256)
    }
}
