import MediaControl
import Primitives
import Rooms

/// A decision about a video that was in force when its subscriber was looked at. Of the decisions that a worker makes these are few, and so they reach
/// further back than the last ones that it keeps.
struct SeenDecision: Sendable, Hashable {
    /// Milliseconds since 1970: shortly before the look, for a worker shares its bandwidth out several times a second.
    var at: Int64
    /// The track's sid.
    var track: String?
    var record: DecisionRecord

    /// Of `seen` those that are older than all the `last` ones, both oldest first.
    static func before(_ last: [DecisionReport], _ seen: [DecisionReport]) -> [DecisionReport] {
        guard let first = last.first?.at else { return seen }
        return seen.filter { $0.at < first }
    }
}

/// The decisions that were seen during a stay: one that is still in force at the next look is there once.
struct SeenDecisions: Sendable {
    /// An hour of a video about which each look finds another decision, twenty minutes of three: up to 150 kB, on a bad link.
    static let maxCount = 720
    /// So many are kept of a stay that is over.
    static let maxCountOfSummary = 256

    private var values = RecentValues<SeenDecision>(capacity: Self.maxCount)
    /// The decision that was last seen of each video.
    private var latest: [SubscriptionID: DecisionRecord] = [:]

    /// Oldest first.
    var all: [SeenDecision] { values.all }

    /// Adds what a report at `at` has of its participant's videos and the one before had not.
    mutating func add(_ report: ParticipantReport, at: Int64) {
        var current: [SubscriptionID: DecisionRecord] = [:]
        var new: [SeenDecision] = []
        for subscription in report.subscriptions {
            guard let record = subscription.statistics.decision else { continue }
            current[record.subscription] = record
            if let before = latest[record.subscription], before.isSame(as: record) { continue }
            new.append(
                SeenDecision(at: at - record.age.milliseconds, track: subscription.info.track, record: record))
        }
        latest = current
        for one in new.sorted(by: { $0.at < $1.at }) { values.append(one) }
    }

    /// Those that a summary keeps: where there are too many, as if there had been fewer looks.
    var thinned: [SeenDecision] {
        var kept = values.all
        var interval: Int64 = 5_000
        while kept.count > Self.maxCountOfSummary, interval < 3_600_000 {
            interval *= 2
            var last: [SubscriptionID: Int64] = [:]
            kept.removeAll { one in
                if let before = last[one.record.subscription], one.at - before < interval { return true }
                last[one.record.subscription] = one.at
                return false
            }
        }
        return Array(kept.suffix(Self.maxCountOfSummary))
    }
}
