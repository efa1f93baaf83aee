/// Unwraps the 24-bit reference time of transport-wide feedback: 64 ms a step, once around in twelve days.
struct FeedbackClock: Sendable {
    private static let period: Int64 = 1 << 24
    private var last: Int64?
    private var turns: Int64 = 0

    /// What must be added to arrival times of a feedback, in steps of 250 us.
    mutating func shift(of reference: Int32) -> Int64 {
        let now = Int64(reference)
        if let last {
            let distance = now - last
            if distance > Self.period / 2 { turns -= 1 } else if distance < -Self.period / 2 { turns += 1 }
        }
        last = now
        return turns * Self.period * 256
    }
}
