/// Unwraps the 24-bit reference time of transport-wide feedback: 64 ms per step, one cycle in twelve days.
struct FeedbackClock: Sendable {
    private static let period: Int64 = 1 << 24
    /// A year of twelve-day cycles in either direction. A lying receiver can advance the clock by a cycle every three feedback packets, and arrival
    /// times would leave the range that the estimator can subtract.
    static let mostTurns: Int64 = 30
    private var last: Int64?
    private var turns: Int64 = 0

    /// The offset to add to arrival times of a feedback packet, in steps of 250 us; nil if no clock can have advanced so far.
    mutating func shift(of reference: Int32) -> Int64? {
        let now = Int64(reference)
        var turns = turns
        if let last {
            let distance = now - last
            if distance > Self.period / 2 { turns -= 1 } else if distance < -Self.period / 2 { turns += 1 }
        }
        guard abs(turns) <= Self.mostTurns else { return nil }
        last = now
        self.turns = turns
        return turns * Self.period * 256
    }
}
