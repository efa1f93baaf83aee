import MediaControl
import Primitives
import Rooms

/// A decision about a video that was in force when its subscriber was sampled. These are few of the decisions that a worker makes, so they reach
/// further back than the last ones that it keeps.
struct SeenDecision: Sendable, Hashable {
    /// Milliseconds since 1970: shortly before the sample, because a worker allocates bandwidth several times a second.
    var at: Int64
    /// The track's sid.
    var track: String?
    var record: DecisionRecord

    /// Those of `seen` that are older than all the `last` ones, both oldest first.
    static func before(_ last: [DecisionReport], _ seen: [DecisionReport]) -> [DecisionReport] {
        guard let first = last.first?.at else { return seen }
        return seen.filter { $0.at < first }
    }
}

/// The decisions that were sampled during a stay: one that is still in force at the next sample is listed once.
struct SeenDecisions: Sendable {
    /// An hour of a video whose decision changes at each sample, twenty minutes of three: up to 150 kB, on a bad link.
    static let maxCount = 720
    /// The maximum for a stay that has ended.
    static let maxCountOfSummary = 256

    private var values = RecentValues<SeenDecision>(capacity: Self.maxCount)
    /// The decision that was last seen of each video.
    private var latest: [SubscriptionID: DecisionRecord] = [:]

    /// Oldest first.
    var all: [SeenDecision] { values.all }

    /// Adds the decisions about its participant's videos that a report at `at` contains and the one before did not.
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

    /// The decisions that a summary keeps: if there are too many, as if there had been fewer samples.
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
