import MediaControl
import Primitives
import Rooms

/// The traffic of a participant's connections, from it and to it.
struct CarriedBytes: Sendable, Hashable {
    var received: UInt64 = 0
    var sent: UInt64 = 0

    init() {}

    init(_ statistics: PeerStatistics) { (received, sent) = (statistics.bytesReceived, statistics.bytesSent) }

    init(_ last: EndedPeer) { (received, sent) = (last.bytesReceived, last.bytesSent) }

    static func + (a: Self, b: Self) -> Self {
        var sum = a
        sum += b
        return sum
    }

    static func += (sum: inout Self, other: Self) {
        sum.received += other.received
        sum.sent += other.sent
    }

    /// The traffic since `before`.
    func beyond(_ before: Self) -> Self {
        var rest = self
        rest.received -= min(before.received, received)
        rest.sent -= min(before.sent, sent)
        return rest
    }
}

/// A stay that has ended, as far as it is known: the last counters of its connections arrive from their worker a moment later.
struct EndedStay: Sendable, Hashable {
    private(set) var summary: StaySummary
    /// For connections whose last report has not arrived: their traffic that the summary includes.
    private(set) var missing: [PeerID: CarriedBytes]
    /// The sids of tracks that the participant received.
    var names = TrackNames()

    init(_ summary: StaySummary, missing: [PeerID: CarriedBytes]) {
        self.summary = summary
        self.missing = missing
    }

    /// A connection's last report has arrived.
    mutating func finish(_ peer: PeerID, _ last: EndedPeer, at: Int64) {
        guard let before = missing.removeValue(forKey: peer) else { return }
        let more = CarriedBytes(last).beyond(before)
        summary.bytesReceived += more.received
        summary.bytesSent += more.sent
        let history = summary.history
        summary.history.decisions = StayLog.latest(
            (history.decisions + last.decisionReports(at: at, names)).sorted { $0.at < $1.at }, StayLog.maxDecisions)
        summary.history.estimates = StayLog.latest(
            (history.estimates + last.estimateReports(at: at)).sorted { $0.at < $1.at }, StayLog.maxEstimates)
    }
}

extension EndedPeer {
    /// The decisions about what it was sent, with the tracks' names; `at` is when they were read.
    func decisionReports(at: Int64, _ names: TrackNames) -> [DecisionReport] {
        decisions.map { record in
            DecisionReport(
                at: at - record.age.milliseconds, subscription: nil, track: record.track.flatMap { names[$0] },
                record: record)
        }
    }

    /// The estimated bandwidth of its path.
    func estimateReports(at: Int64) -> [EstimateReport] {
        estimates.map {
            EstimateReport(at: at - $0.age.milliseconds, least: $0.least, most: $0.most)
        }
    }
}

/// The sids of a room's tracks, including those that have ended, to name them in later reports.
struct TrackNames: Sendable, Hashable {
    /// The maximum number; the newest are kept: more than the last decisions of all who leave can refer to.
    private static let maxTracks = 2_000

    private var sids: [TrackID: String] = [:]
    /// Oldest first.
    private var order: [TrackID] = []

    subscript(track: TrackID) -> String? { sids[track] }

    mutating func note(_ track: TrackID, _ sid: String) {
        guard sids.updateValue(sid, forKey: track) == nil else { return }
        order.append(track)
        guard order.count > Self.maxTracks else { return }
        for old in order.prefix(Self.maxTracks / 4) { sids[old] = nil }
        order.removeFirst(Self.maxTracks / 4)
    }
}

/// Ended stays that wait for the last counters of their connections.
struct DepartingStays: Sendable {
    /// A worker that hangs delays no summary for longer.
    static let patienceMilliseconds: Int64 = 2_000

    private struct Waiting {
        var stay: EndedStay
        let until: Int64
    }

    /// In the order in which they ended: a participant that is moved has a stay in each room, all under its sid.
    private var stays: [UInt64: Waiting] = [:]
    private var owners: [PeerID: UInt64] = [:]
    private var lastNumber: UInt64 = 0

    /// A stay has ended; returns the summary if it is complete at once.
    mutating func add(_ stay: EndedStay, at: Int64) -> StaySummary? {
        guard !stay.missing.isEmpty else { return stay.summary }
        lastNumber += 1
        for peer in stay.missing.keys { owners[peer] = lastNumber }
        stays[lastNumber] = Waiting(stay: stay, until: at + Self.patienceMilliseconds)
        return nil
    }

    /// A connection's last report has arrived; returns the summary if it was the last of its stay.
    mutating func finish(_ peer: PeerID, _ last: EndedPeer, at: Int64) -> StaySummary? {
        guard let number = owners.removeValue(forKey: peer) else { return nil }
        stays[number]?.stay.finish(peer, last, at: at)
        guard let stay = stays[number]?.stay, stay.missing.isEmpty else { return nil }
        stays[number] = nil
        return stay.summary
    }

    /// Removes and returns the summaries that have waited for too long, or, with nil, all waiting ones, as far as they are known.
    mutating func removeOverdue(at: Int64?) -> [StaySummary] {
        let due = stays.filter { _, waiting in at.map { waiting.until <= $0 } ?? true }
        for (number, waiting) in due {
            for peer in waiting.stay.missing.keys { owners[peer] = nil }
            stays[number] = nil
        }
        return due.values.map(\.stay.summary).sorted { ($0.leftAt, $0.info.sid) < ($1.leftAt, $1.info.sid) }
    }
}
