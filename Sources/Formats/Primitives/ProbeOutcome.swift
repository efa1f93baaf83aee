/// The outcome of a probe: packets that test how much more a path carries.
public enum ProbeOutcome: UInt8, Sendable, CaseIterable {
    /// It arrived faster than the estimate, which rose.
    case raised
    /// It showed that the path carries no more than the estimate.
    case confirmed
    /// Its packets were delayed by something else, so it showed nothing; another one follows.
    case unclear
    /// Too few of its packets were reported in time.
    case unanswered
    /// There was nothing to fill it with.
    case abandoned
}

/// How often each outcome occurred.
public struct ProbeCounters: Sendable, Equatable {
    private var counts = [UInt64](repeating: 0, count: ProbeOutcome.allCases.count)

    public init() {}

    /// Counts one probe.
    @inlinable public mutating func count(_ outcome: ProbeOutcome) { self[outcome] &+= 1 }

    /// The number of probes with this outcome.
    public subscript(outcome: ProbeOutcome) -> UInt64 {
        get { counts[Int(outcome.rawValue)] }
        set { counts[Int(outcome.rawValue)] = newValue }
    }
}
