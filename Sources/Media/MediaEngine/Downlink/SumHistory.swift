import Forwarding
import Primitives

/// Which sum of videos one path did not carry, whichever video rose to it, and whichever fell soon after.
///
/// `StepHistory` remembers the steps of one video. Without this, nine videos of about the same bitrate would try the same sum one after the other while the
/// estimate fluctuates around it.
struct SumHistory {
    /// The sum at the last rise, and when that was; nil: it has been judged.
    private var rise: (sum: Bitrate, at: MonotonicTime)?
    /// The sum that was reached and soon left, how often in a row, and when that last happened; nil: none.
    private var failed: (sum: Bitrate, attempts: Int, at: MonotonicTime)?

    /// A fall this soon after a rise shows that the rise was too much (as in `SizeChanges`); a later one has a cause of its own.
    private static let trial = TimeSpan.seconds(5)
    /// From this share on, sums count as equal: measured rates vary.
    private static let failedShare = 0.95
    /// A path that carries this many times the failed sum counts as another path.
    private static let otherPath = 1.5

    /// Videos rose, to this sum.
    mutating func noteRise(to sum: Bitrate, at now: MonotonicTime) { rise = (sum, now) }

    /// A video fell for lack of bandwidth.
    mutating func noteFall(at now: MonotonicTime) {
        guard let rise, now - rise.at <= Self.trial else { return }
        self.rise = nil
        let before = failed.map { rise.sum >= Self.most(below: $0.sum) ? $0.attempts : 0 } ?? 0
        failed = (rise.sum, min(before + 1, StepHistory.mostDoublings), now)
    }

    /// The estimate fell at `moment` for a stall that ended at once: the sum has not failed.
    mutating func forgive(_ moment: MonotonicTime) {
        guard let failed, failed.at - moment < StepHistory.stall, moment - failed.at < StepHistory.stall else { return }
        self.failed = nil
    }

    /// What failed recently on a path of this estimate. Like a failed step, it waits twice as long each time, and then needs more headroom for two further such
    /// periods.
    mutating func failedSum(on estimate: Bitrate?, at now: MonotonicTime) -> AllocationRules.FailedSum? {
        judge(at: now)
        guard let failed, let estimate else { return nil }
        let wait = StepHistory.settling * Int64(1 << failed.attempts), elapsed = now - failed.at
        guard elapsed < wait * StepHistory.memory else {
            self.failed = nil
            return nil
        }
        guard Double(estimate.bitsPerSecond) < Self.otherPath * Double(failed.sum.bitsPerSecond) else { return nil }
        return AllocationRules.FailedSum(
            most: Self.most(below: failed.sum), isBarred: elapsed < wait, attempts: failed.attempts)
    }

    /// A rise that held, to as much as had failed before, shows that the path carries it.
    private mutating func judge(at now: MonotonicTime) {
        guard let rise, now - rise.at > Self.trial else { return }
        self.rise = nil
        if let failed, rise.at > failed.at, rise.sum >= Self.most(below: failed.sum) { self.failed = nil }
    }

    private static func most(below sum: Bitrate) -> Bitrate {
        .bitsPerSecond(Int64(failedShare * Double(sum.bitsPerSecond)))
    }
}
