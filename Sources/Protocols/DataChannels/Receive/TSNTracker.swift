import Primitives

/// Which transmission sequence numbers have arrived, and when to report them (RFC 9260 section 6.2).
///
/// Numbers ahead of the first gap are bits of a ring, which exists only while there is a gap: one byte for eight numbers, whatever the peer sends.
struct TSNTracker {
    /// Numbers ahead of the first gap. At 1,132 bytes each they are 9 MB, far more than the receive window.
    static let window: Int64 = 8_192
    /// RFC 9260 section 6.2 allows 500 ms and recommends 200; 20 ms keep the sender's round-trip measurement useful.
    static let delay = TimeSpan.milliseconds(20)
    /// Gap blocks in a SACK: those that are left out are reported once the first ones are repaired.
    private static let largestReport = 128

    /// The meaning of a number.
    enum Arrival { case new, duplicate, tooFar }

    /// All numbers up to this one have arrived or were abandoned.
    private(set) var cumulative: Int64
    /// The highest number that arrived.
    private var highest: Int64
    private var ring: [UInt64] = []
    private var packetsUnreported = 0
    private var isReportDue = false
    private var reportAt = MonotonicTime.distantFuture

    /// Before the peer's first number.
    init(firstTSN: UInt32) {
        cumulative = Int64(firstTSN) - 1
        highest = cumulative
    }

    /// When a delayed SACK is due.
    var nextDeadline: MonotonicTime { isReportDue ? .zero : reportAt }
    /// Whether numbers are missing.
    var hasGap: Bool { highest > cumulative }

    /// The meaning that `tsn` would have; does not count it.
    func classify(_ tsn: Int64) -> Arrival {
        if tsn <= cumulative { return .duplicate }
        guard tsn - cumulative <= Self.window else { return .tooFar }
        return tsn <= highest && contains(tsn) ? .duplicate : .new
    }

    /// The number has arrived.
    mutating func insert(_ tsn: Int64) {
        if tsn == cumulative + 1 {
            cumulative = tsn
            if highest > tsn { advance() } else { highest = tsn }
        } else {
            if ring.isEmpty { ring = Array(repeating: 0, count: Int(Self.window / 64)) }
            highest = max(highest, tsn)
            ring[word(tsn)] |= bit(tsn)
        }
    }

    /// The sender has abandoned everything up to `tsn` (RFC 3758 section 3.6); false when it already had arrived.
    mutating func skip(to tsn: Int64) -> Bool {
        isReportDue = true
        guard tsn > cumulative else { return false }
        if hasGap {
            for number in (cumulative + 1)...min(tsn, highest) { ring[word(number)] &= ~bit(number) }
        }
        cumulative = tsn
        if highest > tsn { advance() } else { clear() }
        return true
    }

    /// A packet with data has been processed.
    mutating func notePacket(at now: MonotonicTime, immediately: Bool) {
        packetsUnreported += 1
        // Section 6.2: at least every second packet; and at once while something is missing (section 6.7).
        if immediately || hasGap || packetsUnreported >= 2 {
            isReportDue = true
        } else if reportAt == .distantFuture {
            reportAt = now + Self.delay
        }
    }

    /// Whether a SACK must be sent at `now`.
    func isDue(at now: MonotonicTime) -> Bool { isReportDue || reportAt <= now }
    /// Whether there is anything to report, so that a SACK may accompany data.
    var hasNews: Bool { isReportDue || reportAt != .distantFuture }
    /// A SACK must be sent, because the window has opened.
    mutating func requestReport() { isReportDue = true }

    /// Writes a SACK; false when it does not fit.
    mutating func writeReport(window: Int, into packet: inout PacketWriter) -> Bool {
        let gaps = self.gaps(limit: min(Self.largestReport, (packet.room - 12) / 4))
        guard let value = packet.chunk(.sack, count: 12 + gaps.count * 4) else { return false }
        value.write(Serial.wire(cumulative), at: 0)
        value.write(UInt32(clamping: window), at: 4)
        value.write(UInt16(gaps.count), at: 8)
        value.write(UInt16(0), at: 10)
        for (index, gap) in gaps.enumerated() {
            value.write(UInt16(gap.lowerBound - cumulative), at: 12 + index * 4)
            value.write(UInt16(gap.upperBound - cumulative), at: 14 + index * 4)
        }
        packetsUnreported = 0
        isReportDue = false
        reportAt = .distantFuture
        return true
    }

    // MARK: - The ring

    private func word(_ tsn: Int64) -> Int { Int(tsn & (Self.window - 1)) / 64 }
    private func bit(_ tsn: Int64) -> UInt64 { 1 << UInt64(tsn & 63) }
    private func contains(_ tsn: Int64) -> Bool { !ring.isEmpty && ring[word(tsn)] & bit(tsn) != 0 }

    /// Moves over the numbers after `cumulative` that have arrived.
    private mutating func advance() {
        while cumulative < highest, contains(cumulative + 1) {
            cumulative += 1
            ring[word(cumulative)] &= ~bit(cumulative)
        }
        if cumulative == highest { ring = [] }
    }

    private mutating func clear() {
        highest = cumulative
        ring = []
    }

    /// The first blocks of numbers that arrived ahead of a gap.
    private func gaps(limit: Int) -> [ClosedRange<Int64>] {
        guard hasGap, !ring.isEmpty else { return [] }
        var gaps: [ClosedRange<Int64>] = [], tsn = cumulative + 2
        while tsn <= highest, gaps.count < limit {
            if ring[word(tsn)] == 0 {
                tsn = (tsn | 63) + 1
            } else if contains(tsn) {
                let start = tsn
                while tsn < highest, contains(tsn + 1) { tsn += 1 }
                gaps.append(start...tsn)
                tsn += 1
            } else {
                tsn += 1
            }
        }
        return gaps
    }
}
