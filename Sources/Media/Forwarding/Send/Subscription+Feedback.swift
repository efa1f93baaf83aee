public import Primitives

// What the receiver reports about the subscription.

extension Subscription {
    /// Processes one report block about the subscription's SSRCs; returns the round trip, if it reveals one.
    public mutating func receivedReport(
        ssrc: UInt32, fractionLost: UInt8, lastReport: UInt32, delay: UInt32, at now: MonotonicTime
    ) -> TimeInterval? {
        guard ssrc == self.ssrc else { return nil }
        section.receiverReported()
        totals.fractionLost = fractionLost
        return reports.roundTrip(lastReport: lastReport, delay: delay, at: now)
    }

    /// Counts a keyframe request of the receiver.
    public mutating func countKeyframeRequest() { totals.keyframeRequests &+= 1 }

    /// Bits per second over the last second, retransmissions included.
    public func bitrate(at now: MonotonicTime) -> Bitrate { .bitsPerSecond(Int64(totals.rate.perSecond(at: now) * 8)) }
}
