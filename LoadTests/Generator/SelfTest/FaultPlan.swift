/// What the self-test's relay does to packets, and how often it has done so.
struct FaultPlan: Sendable {
    /// For each kind of fault, one packet in how many of each stream; primes, so that they seldom coincide.
    static let rhythm: [(Fault, Int)] = [
        (.drop, 53), (.corrupt, 59), (.duplicate, 61), (.swap, 67), (.leaveOut, 71), (.damage, 73), (.jump, 151),
    ]
    /// Clean packets at the start of a stream, and after each fault: the effect of one fault must not hide another.
    static let lead = 60
    static let rest = 12

    /// Whether there are faults at all.
    var hasFaults = true
    /// How long every packet is held, in nanoseconds.
    var hold: Int64 = 0
}

/// One thing that can go wrong with a packet.
enum Fault: String, Sendable, CaseIterable {
    /// It does not arrive.
    case drop
    /// Its payload is changed before encryption, as by a broken server.
    case corrupt
    /// It arrives twice.
    case duplicate
    /// It arrives behind its successor.
    case swap
    /// It is omitted, and the numbering continues without a gap.
    case leaveOut
    /// It is changed after encryption, as by a broken network.
    case damage
    /// The numbering jumps by thousands.
    case jump
}

/// Which fault the next packet of one stream to one subscriber gets.
struct FaultSchedule {
    private(set) var count = 0
    private var lastFault = 0
    /// What is added to sequence numbers.
    var shift: UInt16 = 0
    /// A packet that waits for its successor.
    var held: [UInt8]?

    mutating func next(of plan: FaultPlan) -> Fault? {
        count += 1
        guard plan.hasFaults, count > FaultPlan.lead, count - lastFault > FaultPlan.rest else { return nil }
        guard let fault = FaultPlan.rhythm.first(where: { count % $0.1 == 0 })?.0 else { return nil }
        lastFault = count
        return fault
    }
}

/// What the relay really did.
struct FaultLog: Sendable {
    var counts: [Fault: UInt64] = [:]
    var forwarded: UInt64 = 0
    /// Nanoseconds from a packet's arrival at the relay to its departure.
    var held = Histogram()
}
