public import Primitives
internal import RTP

/// The publisher's clock by its sender report: this RTP timestamp is this wall-clock moment (RFC 3550 6.4.1).
public struct SenderClock: Sendable, Hashable {
    /// NTP timestamp, 32.32 fixed point, on the publisher's clock.
    public var ntp: UInt64
    /// The RTP timestamp of the same moment, extended like the stream's packets.
    public var timestamp: Int64
    /// When the report arrived.
    public var arrival: MonotonicTime

    public init(ntp: UInt64, timestamp: Int64, arrival: MonotonicTime) {
        self.ntp = ntp
        self.timestamp = timestamp
        self.arrival = arrival
    }

    /// The middle 32 bits, as LSR requires.
    public var middle: UInt32 { NTPTime.middle(ntp) }
}

/// Loss and jitter of one SSRC, computed as in RFC 3550 sections 6.4.1, A.3 and A.8.
struct ReceptionCounters: Sendable {
    /// Packets received in this numbering, including late ones and duplicates, as RFC 3550 requires.
    private(set) var received: Int64 = 0
    /// The packets among these whose number had arrived before, in another copy or in a retransmission.
    private(set) var duplicates: Int64 = 0
    private var expectedPrior: Int64 = 0
    private var receivedPrior: Int64 = 0
    /// Packets lost in numberings before a restart.
    private var lostBefore: Int64 = 0
    private var lastTransit: Int64?
    private var lastTimestamp: Int64 = .min
    /// Interarrival jitter in timestamp units, times 16.
    private var scaledJitter: Int64 = 0

    /// The interarrival jitter in timestamp units.
    var jitter: UInt32 { UInt32(clamping: scaledJitter >> 4) }

    /// Counts a packet.
    @inline(__always) mutating func count() { received &+= 1 }

    /// Counts a packet whose number had come before.
    mutating func countDuplicate() {
        received &+= 1
        duplicates &+= 1
    }

    /// Starts a new numbering; packets lost in the old one stay counted as lost.
    mutating func restart(lost: Int64) {
        lostBefore += max(0, lost)
        received = 0
        duplicates = 0
        expectedPrior = 0
        receivedPrior = 0
        lastTransit = nil
        lastTimestamp = .min
    }

    /// Updates the jitter with a packet that was sent once and in order.
    ///
    /// Only the first packet of each timestamp counts: the sender's pacer spreads the others of a frame, which is
    /// not jitter. A timestamp jump (route change) restarts the measurement instead of counting as jitter.
    @inline(__always) mutating func measureJitter(timestamp: Int64, at now: MonotonicTime, clockRate: Int64) {
        guard timestamp != lastTimestamp else { return }
        lastTimestamp = timestamp
        // Converts `now` to timestamp units without overflow: whole seconds and the rest separately.
        let seconds = now.nanoseconds / 1_000_000_000, rest = now.nanoseconds % 1_000_000_000
        let transit = seconds &* clockRate &+ rest &* clockRate / 1_000_000_000 &- timestamp
        defer { lastTransit = transit }
        guard let lastTransit else { return }
        let difference = abs(transit &- lastTransit)
        guard difference < 5 * clockRate else { return }
        scaledJitter += difference - ((scaledJitter + 8) >> 4)
    }

    /// Packets lost so far; `expected` is the number that should have arrived in this numbering.
    func lost(expected: Int64) -> Int64 { lostBefore + expected - received }

    /// Fraction lost since the last call as an 8-bit fixed point number.
    mutating func consumeFractionLost(expected: Int64) -> UInt8 {
        let expectedNow = expected - expectedPrior, receivedNow = received - receivedPrior
        expectedPrior = expected
        receivedPrior = received
        let lost = expectedNow - receivedNow
        guard expectedNow > 0, lost > 0 else { return 0 }
        return UInt8(clamping: lost * 256 / expectedNow)
    }
}
