internal import Primitives

/// The RTP timestamps of one layer in their extended form, and the publisher's clock behind them.
struct LayerTimeline {
    /// Extended timestamp of the newest packet; nil before the first.
    private var newest: Int64?
    /// The publisher's clock by its last sender report.
    private(set) var clock: SenderClock?

    /// A timestamp further back than this is a new timeline and not a late packet (10 s of video clock).
    private static var reorderedTicks: Int64 { 900_000 }

    /// The extended form of an RTP timestamp, nearest to the newest one.
    mutating func extend(_ timestamp: UInt32) -> Int64 {
        guard let newest else {
            // One cycle higher, so that earlier timestamps are not negative.
            let first = 0x1_0000_0000 + Int64(timestamp)
            newest = first
            return first
        }
        let distance = Self.distance(from: newest, to: timestamp)
        // Overflow would take four thousand million steps of half a cycle: some hours of hostile packets.
        let extended = newest &+ distance
        if distance > 0 || distance < -Self.reorderedTicks { self.newest = extended }
        return extended
    }

    /// Applies a sender report; a report before the first packet means nothing yet, and 0 stands for no wall clock (RFC 3550 section 6.4.1).
    mutating func received(ntp: UInt64, timestamp: UInt32, at now: MonotonicTime) {
        guard let newest, ntp != 0 else { return }
        clock = SenderClock(ntp: ntp, timestamp: newest &+ Self.distance(from: newest, to: timestamp), arrival: now)
    }

    /// Another source continues the layer, with a clock of its own.
    mutating func changeSource() { clock = nil }

    private static func distance(from newest: Int64, to timestamp: UInt32) -> Int64 {
        Int64(Int32(bitPattern: timestamp &- UInt32(truncatingIfNeeded: newest)))
    }
}
