import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Budgets of whoever joins again")
struct FormerBudgetTests {
    @Test("What a participant had used up is used up when it joins again, also in the place of its older stay")
    func rejoin() throws {
        for leaves in [true, false] {
            var limits = RoomLimits()
            (limits.notificationsPerSecond, limits.tracksPerParticipant) = (4, 2)
            var bench = RoomBench(limits: limits)
            try bench.join("bob")
            // With four notifications for each track, of half a second each, and 16 at once.
            let stays: [(pause: TimeSpan, tracks: Int)] = [
                (.zero, 2), (.zero, 2), (.seconds(2), 1), (.seconds(8), 2),
            ]
            for (pause, tracks) in stays {
                bench.now = bench.now + pause
                let ada = try bench.join("ada")
                try bench.offer(ada, [.audio("0"), .video("1")])
                #expect(bench.info(ada)?.tracks.count == tracks)
                if leaves { bench.leave(ada) }
            }
        }
    }

    @Test("So is what it said about itself; what time has given back is not kept")
    func changes() throws {
        var limits = RoomLimits()
        limits.notificationsPerSecond = 4
        var bench = RoomBench(limits: limits)
        try bench.join("bob")
        for (pause, count) in [(.zero, 10), (.zero, 0), (.seconds(1), 2), (.seconds(10), 10)]
            as [(TimeSpan, Int)]
        {
            bench.now = bench.now + pause
            let ada = try bench.join("ada")
            var accepted = 0
            for number in 0..<11 {
                do {
                    try bench.perform(.setMetadata(name: nil, metadata: "\(number)"), ada)
                    accepted += 1
                } catch { continue }
            }
            #expect(accepted == count)
            bench.leave(ada)
        }
    }

    @Test("Nothing is kept of whoever used up nothing, or long ago")
    func forgotten() throws {
        var budgets = FormerBudgets()
        var bench = RoomBench()
        let ada = try bench.join("ada")
        var member = try #require(bench.room.state.roster[ada])
        let fresh = member
        func kept(at now: MonotonicTime) -> Bool {
            budgets.keep(member, at: now)
            var next = fresh
            budgets.restore(to: &next)
            return !next.budgets.areWhole(at: now)
        }
        #expect(kept(at: .zero) == false)
        _ = member.budgets.publications.accept(1, every: .seconds(1), atOnce: 1, at: .zero)
        #expect(kept(at: .zero) == true)
        #expect(kept(at: MonotonicTime(milliseconds: 1_000)) == false)
    }
}
