import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("I6: freezes that clients report")
struct FreezesTests {
    private static func freezes(_ count: UInt64, _ milliseconds: Int64) -> Freezes {
        Freezes(count: count, duration: .milliseconds(milliseconds))
    }

    @Test(
        "A client's counts add up, also where it begins to count anew, and never to more than its stay has room for",
        arguments: [
            ([(1, 300), (3, 900), (3, 900)], 10_000, (3, 900)),
            ([(4, 2_000), (1, 300)], 10_000, (5, 2_300)),
            ([(2, 500), (2, 400)], 10_000, (4, 900)),
            ([(1_000_000, 1_000_000_000)], 3_000, (21, 3_000)),
            ([(0, 0)], 10_000, (0, 0)),
        ] as [([(UInt64, Int64)], Int64, (UInt64, Int64))])
    func counts(reports: [(UInt64, Int64)], stay: Int64, total: (UInt64, Int64)) {
        var reported = ReportedFreezes()
        var sum = Freezes()
        #expect(reported.total == nil)
        for (count, milliseconds) in reports {
            sum = sum + reported.note(Self.freezes(count, milliseconds), stay: .milliseconds(stay))
        }
        #expect(reported.total == Self.freezes(total.0, total.1) && sum == reported.total)
    }

    @Test("They are those of a subscription and of the stay; what is not subscribed is left out")
    func room() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        let bob = try bench.join("bob") { $0.client = "martlet-test/1.0" }
        try bench.offer(ada, [.audio("0"), .video("1")])
        try bench.answerOffers(bob)
        let (video, sid) = (bench.trackSID(ada, .video), try #require(bench.room.participant(bob)?.sid))
        #expect(bench.room.participant(bob)?.client == "martlet-test/1.0")
        bench.now = bench.now + .seconds(20)
        func freezes() -> Freezes? { bench.room.subscriptions(of: bob).first { $0.track == video }?.freezes }
        try bench.perform(.report([PlaybackReport(track: "TR_gone", freezes: Self.freezes(7, 7_000))]), bob)
        #expect(bench.freezes[sid] == nil && freezes() == nil)
        try bench.perform(.report([PlaybackReport(track: video, freezes: Freezes())]), bob)
        #expect(bench.freezes[sid] == Freezes() && freezes() == Freezes(), "it reports, and nothing froze")
        try bench.perform(.report([PlaybackReport(track: video, freezes: Self.freezes(2, 800))]), bob)
        try bench.perform(.unsubscribe(track: video), bob)
        try bench.perform(.subscribe(track: video), bob)
        #expect(freezes() == nil)
        try bench.perform(.report([PlaybackReport(track: video, freezes: Self.freezes(1, 200))]), bob)
        #expect(bench.freezes[sid] == Self.freezes(3, 1_000) && freezes() == Self.freezes(1, 200))
        #expect(throws: RoomError.self) { try bench.join("eve") { $0.client = "line\nbreak" } }
    }
}
