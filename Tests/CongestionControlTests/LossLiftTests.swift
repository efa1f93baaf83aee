import Primitives
import Testing

@testable import CongestionControl

@Suite("Lifts of the bound that losses set")
struct LossLiftTests {
    private func at(_ seconds: Int64) -> MonotonicTime { .zero + .seconds(seconds) }

    /// `#expect` takes no call that changes a value.
    private func expect(
        _ mayLift: Bool, _ expected: Bool, _ comment: Comment? = nil, at location: SourceLocation = #_sourceLocation
    ) {
        #expect(mayLift == expected, comment, sourceLocation: location)
    }

    @Test("The first lift may be at once, and goes on step by step until a video fits")
    func first() {
        var lift = LossLift()
        expect(lift.mayLift(at: at(1)), true)
        expect(lift.mayLift(at: at(2)), true)
        lift.update(fitsVideo: false, at: at(2))
        expect(lift.mayLift(at: at(3)), true, "a video that never fitted has not failed")
    }

    @Test("After a video that could not stay, lifts wait for 10, 20, 40 and then always 80 s")
    func failures() {
        var lift = LossLift()
        var now: Int64 = 1
        var waits: [Int64] = []
        for _ in 0..<6 {
            expect(lift.mayLift(at: at(now)), true)
            lift.update(fitsVideo: true, at: at(now))
            now += 2
            lift.update(fitsVideo: false, at: at(now))
            let fell = now
            while !lift.mayLift(at: at(now)) { now += 1 }
            waits.append(now - fell)
        }
        #expect(waits == [10, 20, 40, 80, 80, 80])
    }

    @Test(
        "A video that stays for ten seconds is no failure: the next time of losses ends at once, and is followed by the shortest wait"
    )
    func success() {
        var lift = LossLift()
        for now in [0, 20] as [Int64] {
            expect(lift.mayLift(at: at(now)), true)
            lift.update(fitsVideo: true, at: at(now))
            lift.update(fitsVideo: true, at: at(now + 1))
            lift.update(fitsVideo: false, at: at(now + 3))
        }
        expect(lift.mayLift(at: at(42)), false, "the second failure waits for 20 s")
        expect(lift.mayLift(at: at(43)), true)
        lift.update(fitsVideo: true, at: at(43))
        lift.update(fitsVideo: false, at: at(53))
        expect(lift.mayLift(at: at(53)), true)
        lift.update(fitsVideo: true, at: at(54))
        lift.update(fitsVideo: false, at: at(55))
        expect(lift.mayLift(at: at(64)), false)
        expect(lift.mayLift(at: at(65)), true)
    }

    @Test("A video that is muted soon after a lift has not failed: the next time of losses ends at once")
    func muted() {
        var lift = LossLift()
        expect(lift.mayLift(at: at(1)), true)
        lift.update(fitsVideo: true, at: at(1))
        lift.update(fitsVideo: false, isWanted: false, at: at(3))
        lift.update(fitsVideo: false, at: at(4))
        expect(lift.mayLift(at: at(5)), true)
    }

    @Test("A video that fits without a lift, as at the beginning, arms nothing")
    func withoutLift() {
        var lift = LossLift()
        lift.update(fitsVideo: true, at: at(0))
        lift.update(fitsVideo: false, at: at(1))
        expect(lift.mayLift(at: at(1)), true)
    }

    @Test("A lifted bound is the rate that was proven, or none where delay allows no more")
    func bound() {
        var losses = LossBound()
        for packet in 0..<400 {
            losses.add(1_000, sent: Int64(packet) * 5_000, isLost: packet % 2 == 0)
            losses.update(estimate: 1_000_000, delivered: 400_000, straying: false)
        }
        #expect(losses.limit.map { $0 < 1_000_000 } ?? false)
        #expect(losses.averageLoss > 0.4)
        losses.lift(to: 700_000, estimate: 1_000_000)
        #expect(losses.limit == 700_000)
        #expect(losses.averageLoss == 0)
        losses.lift(to: 1_000_000, estimate: 1_000_000)
        #expect(losses.limit == nil)
    }
}
