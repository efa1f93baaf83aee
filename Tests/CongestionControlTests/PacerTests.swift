import CongestionControl
import Primitives
import Testing

@Suite("Pacer and receiver's estimate")
struct PacerTests {
    private func at(_ milliseconds: Int64) -> MonotonicTime { MonotonicTime(milliseconds: milliseconds) }

    @Test("Without an estimate everything passes")
    func unlimited() {
        var pacer = Pacer()
        pacer.refill(at: at(1))
        for _ in 0..<10_000 { pacer.spend(1_200) }
        let isOpen = pacer.isOpen && pacer.isOpenForRepeats, deadline = pacer.nextDeadline(at: at(1))
        #expect(isOpen && deadline == .distantFuture)
    }

    @Test("Far below the estimate nothing ever waits")
    func passThrough() {
        var pacer = Pacer()
        pacer.setEstimate(.kilobitsPerSecond(4_000))
        // 1 Mbit/s in frames of 4 packets.
        for frame in 0..<300 {
            pacer.refill(at: at(Int64(frame) * 33))
            for _ in 0..<4 {
                let isOpen = pacer.isOpen
                #expect(isOpen)
                pacer.spend(1_040)
            }
        }
    }

    @Test("A keyframe beyond the burst waits and leaves at the pacing rate, repeats first, order kept")
    func waits() {
        var pacer = Pacer()
        pacer.setEstimate(.kilobitsPerSecond(1_000))
        pacer.refill(at: at(1_000))
        var sent = 0
        while pacer.isOpen {
            pacer.spend(1_200)
            sent += 1
        }
        // 2.5 Mbit/s x 40 ms = 12,500 bytes.
        #expect(sent == 11)
        for value in 0..<50 {
            _ = pacer.enqueue(.init(value: UInt64(value), size: 1_200, since: at(1_000)), priority: .video)
        }
        let isTaken = pacer.enqueue(.init(value: 999, size: 1_200, since: at(1_000)), priority: .retransmission)
        let isOpen = pacer.isOpen
        #expect(isTaken && !isOpen)
        var order: [UInt64] = [], now: Int64 = 1_000
        while !pacer.isEmpty, now < 3_000 {
            let deadline = pacer.nextDeadline(at: at(now))
            #expect(deadline <= at(now + 10))
            now += 5
            pacer.refill(at: at(now))
            while let token = pacer.next(at: at(now)) {
                order.append(token.value)
                pacer.spend(token.size)
            }
        }
        #expect(order == [999] + (0..<50).map { UInt64($0) })
        // 61,200 bytes at 2.5 Mbit/s are 196 ms.
        #expect((1_150...1_250).contains(now))
    }

    @Test("What waits is bounded in number and in time")
    func bounded() {
        var pacer = Pacer()
        pacer.setEstimate(.kilobitsPerSecond(100))
        pacer.refill(at: at(0))
        var taken = 0
        for value in 0..<2_000
        where pacer.enqueue(.init(value: UInt64(value), size: 1_200, since: at(0)), priority: .video) {
            taken += 1
        }
        let dropped = pacer.dropped
        #expect(taken == 512)
        #expect(dropped == 1_488)
        var now: Int64 = 0
        while !pacer.isEmpty, now < 5_000 {
            now += 5
            pacer.refill(at: at(now))
            while let token = pacer.next(at: at(now)) { pacer.spend(token.size) }
        }
        #expect(now < 3_000)
    }

    @Test("REMB stands in where no transport-wide feedback comes, and expires")
    func receiverEstimate() {
        var estimator = BandwidthEstimator()
        let before = estimator.isEstablished(at: at(0))
        estimator.receiverEstimate(.kilobitsPerSecond(1_700), at: at(100))
        let during = estimator.isEstablished(at: at(200)), estimate = estimator.estimate(at: at(200))
        let after = estimator.isEstablished(at: at(20_000))
        #expect(!before && during && !after)
        #expect(estimate == .kilobitsPerSecond(1_700))
    }

    @Test(
        "A11: network quality goes by the network alone",
        arguments: [
            (0.0, 50, 10, 1.0, 5), (0.02, 50, 10, 1.0, 4), (0.05, 50, 10, 1.0, 3), (0.15, 50, 10, 1.0, 2),
            (0.3, 50, 10, 1.0, 1), (0, 500, 10, 1.0, 3), (0, 50, 300, 1.0, 3), (0, 50, 10, 0.7, 4), (0, 50, 10, 0.2, 2),
        ])
    func quality(loss: Double, roundTrip: Int, queue: Int, share: Double, expected: Int) {
        let level = NetworkQuality.level(
            loss: loss, roundTrip: .milliseconds(Int64(roundTrip)), queueDelay: .milliseconds(Int64(queue)),
            servedShare: share, isSilent: false)
        #expect(level == expected)
    }

    @Test("Whatever feedback says, the estimate stays in its bounds and recovers", arguments: 1...8)
    func hostileFeedback(seed: Int) {
        var random = RandomSource(seed: UInt64(seed))
        var estimator = BandwidthEstimator()
        var now = at(1_000)
        let settings = BandwidthEstimator.Settings()
        for round in 0..<2_000 {
            for _ in 0..<Int.random(in: 0...20, using: &random) {
                estimator.sent(
                    UInt16.random(in: 0...UInt16.max, using: &random), size: Int.random(in: 0...2_000, using: &random),
                    at: now)
            }
            now = now + .milliseconds(Int64.random(in: 0...200, using: &random))
            estimator.beginFeedback(at: now)
            for _ in 0..<Int.random(in: 0...40, using: &random) {
                let arrival: Int64? =
                    Bool.random(using: &random) ? Int64.random(in: -1 << 40...1 << 40, using: &random) : nil
                estimator.report(UInt16.random(in: 0...UInt16.max, using: &random), arrival: arrival)
            }
            estimator.endFeedback(at: now)
            estimator.advance(to: now)
            _ = estimator.probeBytesDue(at: now)
            let estimate = estimator.estimate(at: now)
            #expect(estimate >= settings.least && estimate <= settings.most, "round \(round)")
        }
    }
}
