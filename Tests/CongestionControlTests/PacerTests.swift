import CongestionControl
import Primitives
import Testing

@Suite("Pacer and receiver estimate (REMB)")
struct PacerTests {
    private func at(_ milliseconds: Int64) -> MonotonicTime { MonotonicTime(milliseconds: milliseconds) }

    @Test("Without an estimate every packet passes")
    func unlimited() {
        var pacer = Pacer()
        pacer.refill(at: at(1))
        for _ in 0..<10_000 { pacer.spend(1_200) }
        let isOpen = pacer.isOpen && pacer.isOpenForRepeats, deadline = pacer.nextDeadline(at: at(1))
        #expect(isOpen && deadline == .distantFuture)
    }

    @Test("Far below the estimate no packet waits")
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

    @Test("While packets wait on the path a burst is one packet, however slow the path")
    func burstIntoQueue() {
        for (factor, most) in [(2.5, 5), (0.9, 2)] {
            var pacer = Pacer()
            pacer.setEstimate(.kilobitsPerSecond(400), factor: factor)
            pacer.refill(at: at(1_000))
            var sent = 0
            while pacer.isOpen {
                pacer.spend(1_100)
                sent += 1
            }
            // 4,800 bytes, and what 0.9 x 400 kbit/s are in 40 ms: 1,800.
            #expect(sent == most)
        }
    }

    @Test("What exceeds the burst of a keyframe waits and leaves at the pacing rate, in order")
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
            _ = pacer.enqueue(.init(value: UInt64(value), size: 1_200))
        }
        let isOpen = pacer.isOpen
        #expect(!isOpen)
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
        #expect(order == (0..<50).map { UInt64($0) })
        // 60,000 bytes at 2.5 Mbit/s are 192 ms.
        #expect((1_150...1_250).contains(now))
    }

    @Test("The queue is bounded in packets and in time")
    func bounded() {
        var pacer = Pacer()
        pacer.setEstimate(.kilobitsPerSecond(100))
        pacer.refill(at: at(0))
        var queued = 0
        for value in 0..<2_000 where pacer.enqueue(.init(value: UInt64(value), size: 1_200)) { queued += 1 }
        #expect(queued == 512)
        var now: Int64 = 0
        while !pacer.isEmpty, now < 5_000 {
            now += 5
            pacer.refill(at: at(now))
            while let token = pacer.next(at: at(now)) { pacer.spend(token.size) }
        }
        #expect(now < 3_000)
    }

    @Test("Audio alone builds up no debt: after a minute without video the first frame leaves at once")
    func audioAlone() {
        var pacer = Pacer()
        pacer.setEstimate(.kilobitsPerSecond(300))
        pacer.refill(at: at(0))
        // 50 packets a second, and nobody lets time pass: no frame is there to be paced.
        for _ in 0..<3_000 { pacer.spend(150) }
        pacer.refill(at: at(60_000))
        let isOpen = pacer.isOpen
        #expect(isOpen)
        // Audio that has just been sent does count.
        for _ in 0..<100 { pacer.spend(150) }
        pacer.refill(at: at(60_010))
        let isStillOpen = pacer.isOpen
        #expect(!isStillOpen)
    }

    @Test(
        "Retransmissions take at most half of the estimate and of what arrives: requests for more mean that the path loses them",
        arguments: [(1_000, nil), (1_000, 4_000), (3_000, 1_000)] as [(Int64, Int64?)])
    func repeats(estimate: Int64, delivered: Int64?) {
        var pacer = Pacer()
        pacer.setEstimate(.kilobitsPerSecond(estimate), delivered: delivered.map { .kilobitsPerSecond($0) })
        var repeated = 0
        // Everything is asked for again and again, for ten seconds.
        for step in 0..<2_000 {
            pacer.refill(at: at(Int64(step) * 5))
            while pacer.isOpenForRepeats {
                pacer.spend(1_200)
                pacer.spendOnRepeat(1_200)
                repeated += 1_200
            }
        }
        // Half of 125,000 bytes a second, and a second's at once.
        #expect((600_000...700_000).contains(repeated))
    }

    private func limit(_ estimator: borrowing BandwidthEstimator, at now: Int64) -> Int64? {
        estimator.isEstablished(at: at(now)) ? estimator.estimate(at: at(now)).bitsPerSecond / 1_000 : nil
    }

    @Test("A rising REMB limits nothing; once it falls it does, and it expires")
    func receiverEstimate() {
        var estimator = BandwidthEstimator()
        for (second, kilobits) in [150, 162, 175, 190].enumerated() {
            estimator.receiverEstimate(
                .kilobitsPerSecond(Int64(kilobits)), sent: .kilobitsPerSecond(200), at: at(Int64(second) * 1_000))
            #expect(limit(estimator, at: Int64(second) * 1_000) == nil)
        }
        estimator.receiverEstimate(.kilobitsPerSecond(160), sent: .kilobitsPerSecond(200), at: at(4_000))
        #expect(limit(estimator, at: 4_000) == 160)
        estimator.receiverEstimate(.kilobitsPerSecond(165), sent: .kilobitsPerSecond(160), at: at(5_000))
        // 8 % a second.
        #expect(limit(estimator, at: 5_000) == 172)
        #expect(limit(estimator, at: 20_000) == nil)
    }

    @Test("After five cuts in a row a REMB's limit grows slowly, and faster again the longer none follows")
    func slowedReceiverEstimate() {
        var estimator = BandwidthEstimator()
        var now: Int64 = 0
        func report(_ kilobits: Int64, _ estimator: inout BandwidthEstimator) {
            now += 1_000
            estimator.receiverEstimate(.kilobitsPerSecond(kilobits), sent: .kilobitsPerSecond(200), at: at(now))
        }
        for _ in 0..<5 {
            for _ in 0..<6 { report(230, &estimator) }
            report(200, &estimator)
        }
        let cut = limit(estimator, at: now) ?? 0
        for _ in 0..<20 { report(200, &estimator) }
        let slow = limit(estimator, at: now) ?? 0
        for _ in 0..<40 { report(200, &estimator) }
        let fast = limit(estimator, at: now) ?? 0
        #expect(cut == 200)
        #expect((240...250).contains(slow), "1 % a second")
        // 2 % a second for twenty seconds, 4 % for another twenty; at 1 % it would be 365. Never beyond three times what the receiver says.
        #expect(fast >= 550)
    }

    @Test("A REMB that stays below the sending rate is a limit that the client has set")
    func fixedReceiverEstimate() {
        var estimator = BandwidthEstimator()
        var limitedFrom: Int64?
        for second in 0..<30 {
            let now = Int64(second) * 1_000
            estimator.receiverEstimate(.kilobitsPerSecond(500), sent: .kilobitsPerSecond(900), at: at(now))
            if limitedFrom == nil, limit(estimator, at: now) == 500 { limitedFrom = now }
        }
        #expect(limitedFrom == 10_000)
    }

    @Test(
        "A REMB well above the sending rate that falls with it is no limit; the limit grows until the next layer fits")
    func followingReceiverEstimate() {
        var estimator = BandwidthEstimator()
        estimator.receiverEstimate(.kilobitsPerSecond(900), sent: .kilobitsPerSecond(900), at: at(0))
        estimator.receiverEstimate(.kilobitsPerSecond(400), sent: .kilobitsPerSecond(900), at: at(1_000))
        // The smallest layer is sent since: one and a half times that is said, a little more and a little less.
        var fits: Int?
        for second in 2..<40 where fits == nil {
            estimator.receiverEstimate(
                .kilobitsPerSecond(second % 2 == 0 ? 240 : 220), sent: .kilobitsPerSecond(160),
                at: at(Int64(second) * 1_000))
            if limit(estimator, at: Int64(second) * 1_000) ?? 0 >= 600 { fits = second }
        }
        #expect((4...10).contains(fits ?? 0))
    }

    @Test("A limit by REMB is tested again, less often after each failure")
    func receiverEstimateTrials() {
        var estimator = BandwidthEstimator()
        var trials: [Int64] = [], wasLow = false
        // A path of 400 kbit/s: 900 are sent whenever the limit allows them, and the receiver notices a second later.
        for second in 0..<250 {
            let now = Int64(second) * 1_000
            let isLow = limit(estimator, at: now).map { $0 < 900 } ?? false
            if wasLow, !isLow { trials.append(now / 1_000) }
            wasLow = isLow
            estimator.receiverEstimate(
                .kilobitsPerSecond(isLow || second == 0 ? 400 : 340), sent: .kilobitsPerSecond(isLow ? 350 : 900),
                at: at(now))
        }
        let pauses = zip(trials, trials.dropFirst()).map { $1 - $0 }
        #expect(trials.count >= 3)
        // From 400 to 900 kbit/s at 4 % a second, from the twentieth second on at 8 %: 22 s. At a half and a quarter of that growth 32 and 47. It was 30 s at least
        // while a limit was lifted at once after a wait; since the limit grows instead, a path that carries more is used meanwhile.
        #expect(pauses == pauses.sorted())
        #expect((20...25).contains(pauses.first ?? 0))
        #expect((40...60).contains(pauses.last ?? 0))
    }

    @Test("With arbitrary feedback the estimate stays within its bounds and recovers", arguments: 1...8)
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
