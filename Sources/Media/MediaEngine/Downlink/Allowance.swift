/// How much of something a receiver may make the server do: so much for each packet that it was sent, and some at once.
///
/// A datagram of feedback can ask for thousands of times what it costs to send it: 24 bytes tell of 16,382 packets that did not come, 1,400 bytes
/// ask for 5,900 repeats. What an honest receiver says and asks follows from what it was sent, so that is what it may say and ask for.
struct Allowance: Sendable {
    /// For each packet sent.
    private let each: Int32
    /// At once, and to begin with.
    private let most: Int32
    private var left: Int32
    /// Packets sent when it was looked at last.
    private var counted: UInt64 = 0

    private init(each: Int32, most: Int32) {
        self.each = each
        self.most = most
        left = most
    }

    /// Numbers looked up for feedback and NACKs. Each number is told once, or twice where it came late, and one that is missing is asked for up to ten
    /// times; at once as many as four seconds of 20 Mbit/s.
    static var lookups: Self { Self(each: 8, most: 8_192) }

    /// Packets sent again: half of everything may be lost for a while; at once a second of 9 Mbit/s.
    static var repeats: Self { Self(each: 1, most: 1_024) }

    /// Takes `count`, `sent` packets having left so far; false, and nothing is taken, where there is less.
    mutating func take(_ count: Int, sent: UInt64) -> Bool {
        let fresh = Int32(truncatingIfNeeded: min(sent &- counted, UInt64(most)))
        counted = sent
        left = min(left + fresh * each, most)
        guard count <= Int(left) else { return false }
        left -= Int32(truncatingIfNeeded: count)
        return true
    }
}
