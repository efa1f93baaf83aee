import CongestionControl
import Primitives

/// Any history of sending and feedback: the estimate stays in its bounds, and plain feedback afterwards brings it back up.
func fuzzEstimator(_ bytes: UnsafeRawBufferPointer) {
    let count = bytes.count
    let settings = BandwidthEstimator.Settings()
    var estimator = BandwidthEstimator()
    var pacer = Pacer()
    var now = MonotonicTime(milliseconds: 1_000)
    var cursor = 0
    func word() -> Int {
        guard cursor + 2 <= count else { return 0 }
        defer { cursor += 2 }
        return Int(bytes[cursor]) << 8 | Int(bytes[cursor + 1])
    }
    while cursor < count {
        let action = bytes[cursor]
        cursor += 1
        switch action & 7 {
        case 0, 1: estimator.sent(UInt16(word()), size: word() & 0x7ff, at: now)
        case 2: now = now + .microseconds(Int64(word()) * 16)
        case 3:
            estimator.beginFeedback(at: now)
            for _ in 0..<(action >> 3) {
                // 24 bits of 64 ms on the receiver's clock.
                let ticks = Int64(word()) << 16 | Int64(word())
                estimator.report(UInt16(word()), arrival: ticks & 1 == 0 ? ticks * 250 : nil)
            }
            estimator.endFeedback(at: now)
        case 4:
            let reported = Int64(word()) << Int64(action >> 3)
            estimator.receiverEstimate(
                .bitsPerSecond(reported), sent: action & 64 == 0 ? nil : .bitsPerSecond(Int64(word())), at: now)
        case 5:
            let next = Int64(word()) << Int64(action >> 3)
            estimator.setDemand(
                allocated: .bitsPerSecond(Int64(word())), video: .bitsPerSecond(Int64(word() & 1)),
                next: next == 0 ? nil : .bitsPerSecond(next),
                wanted: .bitsPerSecond(next), at: now)
        case 6: if estimator.probeBytesDue(at: now) > 0 { estimator.sent(UInt16(word()), size: 400, at: now) }
        default: estimator.advance(to: now)
        }
        let estimate = estimator.estimate(at: now)
        precondition(estimate >= settings.least && estimate <= settings.most, "in its bounds")
        pacer.setEstimate(estimate)
        pacer.refill(at: now)
    }
    recover(&estimator, from: now + .seconds(11))
}

/// Half a minute of 500 kbit/s over a good link.
private func recover(_ estimator: inout BandwidthEstimator, from start: MonotonicTime) {
    var now = start
    var sequence: UInt16 = 0
    var arrived: [(UInt16, Int64)] = []
    for millisecond in 0..<30_000 {
        now = now + .milliseconds(1)
        if millisecond % 16 == 0 || estimator.probeBytesDue(at: now) > 0 {
            sequence &+= 1
            estimator.sent(sequence, size: 1_000, at: now)
            arrived.append((sequence, now.microseconds + 20_000))
        }
        if millisecond % 60 == 59 {
            estimator.beginFeedback(at: now)
            for (number, time) in arrived { estimator.report(number, arrival: time) }
            estimator.endFeedback(at: now)
            arrived.removeAll(keepingCapacity: true)
        }
        estimator.setDemand(
            allocated: .kilobitsPerSecond(500), video: .kilobitsPerSecond(500), next: .kilobitsPerSecond(700),
            wanted: .kilobitsPerSecond(700), at: now)
        estimator.advance(to: now)
    }
    precondition(estimator.estimate(at: now) >= .kilobitsPerSecond(450), "recovers on a good link")
}
