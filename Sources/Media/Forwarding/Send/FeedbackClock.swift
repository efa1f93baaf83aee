/// Unwraps the 24-bit reference time of transport-wide feedback: 64 ms a step, once around in twelve days.
struct FeedbackClock: Sendable {
    private static let period: Int64 = 1 << 24
    /// A year of twelve days each, either way. A receiver makes the clock turn by lying, once in three feedbacks, and arrivals would
    /// leave what the estimator can subtract.
    static let mostTurns: Int64 = 30
    private var last: Int64?
    private var turns: Int64 = 0

    /// What must be added to arrival times of a feedback, in steps of 250 us; nil where no clock can have gone so far.
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
