/// What became of a probe, packets that ask how much more a path carries.
public enum ProbeOutcome: UInt8, Sendable, CaseIterable {
    /// It came faster than what was believed, and the estimate rose.
    case raised
    /// It showed that the path carries what was believed, or less.
    case confirmed
    /// Its packets had waited for something else, so it said nothing; another one follows.
    case unclear
    /// Too few of its packets were reported in time.
    case unanswered
    /// There was nothing to fill it with.
    case abandoned
}

/// How often each outcome came.
public struct ProbeCounters: Sendable, Equatable {
    private var counts = [UInt64](repeating: 0, count: ProbeOutcome.allCases.count)

    public init() {}

    /// Counts one probe.
    @inlinable public mutating func count(_ outcome: ProbeOutcome) { self[outcome] &+= 1 }

    /// The number of probes that ended so.
    public subscript(outcome: ProbeOutcome) -> UInt64 {
        get { counts[Int(outcome.rawValue)] }
        set { counts[Int(outcome.rawValue)] = newValue }
    }
}
