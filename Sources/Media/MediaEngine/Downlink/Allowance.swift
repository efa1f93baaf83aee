/// Limits the work that a receiver can cause: an amount for each packet that it was sent, and a burst.
///
/// A feedback datagram can request thousands of times its own cost: 24 bytes can report 16,382 lost packets, 1,400 bytes
/// request 5,900 retransmissions. The reports and requests of an honest receiver follow from what it was sent, so that is the limit.
struct Allowance: Sendable {
    /// For each packet sent.
    private let each: Int32
    /// Maximum at once, and initially.
    private let most: Int32
    private var left: Int32
    /// Packets sent at the last call.
    private var counted: UInt64 = 0

    private init(each: Int32, most: Int32) {
        self.each = each
        self.most = most
        left = most
    }

    /// Numbers looked up for feedback and NACKs. Each number is reported once, or twice if it was late, and a missing one is requested up to ten
    /// times; at once as many as four seconds of 20 Mbit/s.
    static var lookups: Self { Self(each: 8, most: 8_192) }

    /// Retransmissions: half of all packets may be lost for a while; at once a second of 9 Mbit/s.
    static var repeats: Self { Self(each: 1, most: 1_024) }

    /// Consumes `count` after `sent` packets so far; false, and nothing is consumed, if less is left.
    mutating func consume(_ count: Int, sent: UInt64) -> Bool {
        let fresh = Int32(truncatingIfNeeded: min(sent &- counted, UInt64(most)))
        counted = sent
        left = min(left + fresh * each, most)
        guard count <= Int(left) else { return false }
        left -= Int32(truncatingIfNeeded: count)
        return true
    }
}
