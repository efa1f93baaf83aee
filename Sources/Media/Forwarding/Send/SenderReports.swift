public import Primitives
internal import RTP

extension SenderClock {
    /// The moment of an extended RTP timestamp on the publisher's clock, since the clock's epoch.
    func moment(of timestamp: Int64, clockRate: Int64) -> TimeSpan {
        let ticks = timestamp &- self.timestamp
        let whole = ticks / clockRate, rest = ticks % clockRate
        return NTPTime.since1900(ntp) + .nanoseconds(whole &* 1_000_000_000 &+ rest &* 1_000_000_000 / clockRate)
    }
}

/// When a subscription's sender reports are due, and the last two reports to measure the round trip.
public struct SenderReportState: Sendable {
    /// RTCP canonical name.
    public let cname: [UInt8]
    private var lastSent: MonotonicTime?
    private var sent = (key: UInt32(0), at: MonotonicTime.zero)
    private var sentBefore = (key: UInt32(0), at: MonotonicTime.zero)

    /// RFC 3550's five seconds are for large groups; players need two reports for lip sync, so one per second.
    static let interval = TimeSpan.seconds(1)

    init(cname: String) { self.cname = Array(cname.utf8.prefix(255)) }

    /// Another source, or packets again after none: report its clock soon.
    mutating func restart() { lastSent = nil }

    /// None was sent since then.
    var isRestarting: Bool { lastSent == nil }

    /// Whether a report is due at `now`.
    public func isDue(at now: MonotonicTime) -> Bool { lastSent.map { now - $0 >= Self.interval } ?? true }

    /// Counts a report with `ntp` as sent.
    public mutating func sent(ntp: UInt64, at now: MonotonicTime) {
        sentBefore = sent
        sent = (NTPTime.middle(ntp), now)
        lastSent = now
    }

    /// The round trip by a report block (RFC 3550 section 6.4.1); nil when it refers to no remembered report.
    public func roundTrip(lastReport: UInt32, delay: UInt32, at now: MonotonicTime) -> TimeSpan? {
        guard lastReport != 0 else { return nil }
        let origin = lastReport == sent.key ? sent.at : (lastReport == sentBefore.key ? sentBefore.at : nil)
        guard let origin else { return nil }
        let held = TimeSpan(nanoseconds: (Int64(delay) * 1_000_000_000) >> 16)
        let roundTrip = now - origin - held
        return roundTrip > .zero ? roundTrip : nil
    }
}

/// The contents of a sender report.
public struct SenderReportValues: Sendable {
    public var ntp: UInt64
    public var timestamp: UInt32
    public var packets: UInt32
    public var octets: UInt32
}
