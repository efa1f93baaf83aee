import Forwarding
import MediaControl
import Primitives

extension Downlink {
    /// The current state of each video and of all together; `withHistory`: and what led to it.
    func report(
        in base: UnsafeMutablePointer<SubscriptionState>, withHistory: Bool, at now: MonotonicTime
    ) -> DownlinkReport {
        var report = withHistory ? history(at: now) : DownlinkReport()
        let condition = self.condition(at: now)
        report.estimate = condition.isMeasured ? condition.estimate : nil
        (report.allocated, report.wanted) = totals
        for state in subscriptions(in: base) where state.pointee.track >= 0 {
            if let record = state.pointee.allocation.record { report.videos.append(record.read(at: now)) }
        }
        report.videos.sort { $0.subscription < $1.subscription }
        return report
    }
}
