import CongestionControl
import Primitives
import TestSupport
import Testing

/// What real receivers reported of what was sent to them (Tests/Vectors/feedback), played again.
@Suite("Captured feedback")
struct CapturedFeedbackTests {
    private struct Replay {
        var estimates: [(seconds: Double, kilobits: Int64)] = []
        var wasBoundByLoss = false
        var received: UInt64 = 0
        var lost: UInt64 = 0
    }

    private func replay(_ name: String) throws -> Replay {
        var estimator = BandwidthEstimator(), replay = Replay()
        for line in try Vectors.text("feedback/\(name).trace").split(separator: "\n") where !line.hasPrefix("#") {
            let words = line.split(separator: " ")
            let time = try #require(Int64(words[1])), number = try #require(UInt16(words[2]))
            let now = MonotonicTime(milliseconds: 1_000) + .microseconds(time)
            if words[0] == "s" {
                estimator.sent(number, size: try #require(Int(words[3])), at: now)
                continue
            }
            var arrival: Int64 = 0
            estimator.beginFeedback(at: now)
            for (index, word) in words.dropFirst(3).enumerated() {
                let step = Int64(word)
                arrival += step ?? 0
                estimator.report(number &+ UInt16(index), arrival: step.map { _ in arrival * 250 + 5_000_000 })
            }
            estimator.endFeedback(at: now)
            replay.estimates.append((Double(time) / 1e6, estimator.estimate(at: now).kilobitsPerSecond))
            replay.wasBoundByLoss = replay.wasBoundByLoss || estimator.isBoundByLoss
        }
        replay.received = estimator.received
        replay.lost = estimator.lost
        return replay
    }

    @Test(
        "H11: Firefox reports no packet of a probe: that does not count as loss, and the estimate never falls for it"
    )
    func withoutProbes() throws {
        let replay = try replay("firefox153_rtx_ignored")
        #expect(replay.lost == 51, "packets of the retransmission stream, of \(replay.received)")
        #expect(!replay.wasBoundByLoss)
        let estimates = replay.estimates.map(\.kilobits)
        #expect(zip(estimates, estimates.dropFirst()).allSatisfy { $0 <= $1 })
        #expect(try #require(estimates.last) >= 600)
    }

    @Test(
        "H11: Firefox on 600 kbit/s: its feedback alone, without probes, keeps the estimate between half of the link's rate and the full rate"
    )
    func narrow() throws {
        let replay = try replay("firefox153_600")
        #expect(replay.lost <= replay.received / 50)
        let settled = replay.estimates.filter { $0.seconds >= 8 }.map(\.kilobits)
        #expect(try #require(settled.min()) >= 300)
        #expect(try #require(settled.max()) <= 660)
    }
}
