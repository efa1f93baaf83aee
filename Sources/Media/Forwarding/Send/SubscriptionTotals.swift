import Primitives

/// What a subscription has sent since it began.
public struct SubscriptionTotals: Sendable {
    public private(set) var packets: UInt64 = 0
    public private(set) var bytes: UInt64 = 0
    /// Payload bytes, as sender reports count them (RFC 3550 section 6.4.1).
    public private(set) var payloadBytes: UInt64 = 0
    public private(set) var repeats: UInt64 = 0
    public private(set) var nacks: UInt64 = 0
    public private(set) var keyframeRequests: UInt64 = 0
    public private(set) var switches: UInt64 = 0
    /// As last reported by the receiver, 0 to 255.
    public private(set) var fractionLost: UInt8 = 0
    /// Interarrival jitter as last reported by the receiver, in ticks of the media's clock (RFC 3550 section 6.4.1).
    public private(set) var jitterTicks: UInt32 = 0
    /// The highest sequence number of the last report, with its cycles, and how many numbers had been used by then without a packet being sent.
    private var lastReport: (highest: UInt32, unsent: Int64)?
    /// More packets than any subscription has between two reports: its numbers began anew.
    private static let mostReported: Int32 = 30_000
    private var rate = RateMeter()

    public init() {}

    /// Bits per second over the last second, retransmissions included.
    func bitrate(at now: MonotonicTime) -> Bitrate { .bitsPerSecond(Int64(rate.perSecond(at: now) * 8)) }

    /// A packet of `length` bytes was sent for the first time, `payload` of them the publisher's.
    @inline(__always) mutating func sent(_ length: Int, payload: Int, at now: MonotonicTime) {
        packets &+= 1
        bytes &+= UInt64(length)
        payloadBytes &+= UInt64(payload)
        rate.add(length, at: now)
    }

    /// A packet of `length` bytes was sent once more.
    mutating func sentAgain(_ length: Int, at now: MonotonicTime) { rate.add(length, at: now) }

    /// A request for retransmission was answered.
    mutating func countRepeat() { repeats &+= 1 }

    /// One packet was requested.
    mutating func countNACK() { nacks &+= 1 }

    /// The receiver requested a keyframe.
    mutating func countKeyframeRequest() { keyframeRequests &+= 1 }

    /// The same with the number of layer switches.
    func with(switches: UInt64) -> Self {
        var totals = self
        totals.switches = switches
        return totals
    }

    /// The receiver reported this share of packets as lost, this jitter in ticks of the media's clock, and its highest sequence number, when `numbers` had been
    /// used. Returns how many packets were sent since the last report, and how many of them the receiver lacks; 0 if unknown.
    mutating func reported(
        fractionLost: UInt8, jitterTicks: UInt32, highest: UInt32, used numbers: Int64
    ) -> (packets: Int, lost: Double) {
        self.fractionLost = fractionLost
        self.jitterTicks = jitterTicks
        // Numbers that are reserved for packets lost in the publisher's network look like losses in the receiver's network.
        let unsent = numbers - Int64(packets)
        defer { lastReport = (highest, unsent) }
        guard let lastReport else { return (0, 0) }
        let count = Int32(bitPattern: highest &- lastReport.highest)
        guard (1..<Self.mostReported).contains(count) else { return (0, 0) }
        let missing = min(max(unsent - lastReport.unsent, 0), Int64(count))
        let lost = Double(count) * Double(fractionLost) / 256 - Double(missing)
        return (Int(count) - Int(missing), max(lost, 0))
    }
}
