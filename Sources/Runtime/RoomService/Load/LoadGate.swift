public import Primitives
import Synchronization

/// The server's load, shared by all: samples are added, the rooms query it before a join, metrics report it.
public final class LoadGate: Sendable {
    private struct State {
        var control: AdmissionControl
        var refusals: [LoadResource: UInt64] = [:]
    }

    private let state: Mutex<State>

    /// An idle server with this many media workers.
    public init(limits: LoadLimits = LoadLimits(), workers count: Int) {
        state = Mutex(State(control: AdmissionControl(limits: limits, workers: count)))
    }

    /// Applies a sample at `now`.
    public func apply(_ sample: LoadSample, at now: MonotonicTime) {
        state.withLock { $0.control.apply(sample, at: now) }
    }

    /// Other limits, from the next join on.
    public func set(_ limits: LoadLimits) { state.withLock { $0.control.set(limits) } }

    /// The limits in force.
    public var limits: LoadLimits { state.withLock { $0.control.limits } }

    /// Workers on which no room is created now.
    func fullWorkers() -> Set<WorkerIndex> { state.withLock { Set($0.control.fullWorkers.map(WorkerIndex.init)) } }

    /// Why one more participant in a room of `worker` is refused, which is counted; nil if it may join.
    func refuse(at worker: WorkerIndex) -> LoadResource? {
        let refusal = refusal(of: worker)
        if let refusal { state.withLock { $0.refusals[refusal, default: 0] += 1 } }
        return refusal
    }

    /// A participant has joined a room of `worker`.
    func admitted(to worker: WorkerIndex) {
        state.withLock { state in
            if worker.rawValue < state.control.busy.count { state.control.admitted(worker: worker.rawValue) }
        }
    }

    /// Why one more participant in a room of `worker` would be refused.
    func refusal(of worker: WorkerIndex) -> LoadResource? {
        state.withLock { state in
            worker.rawValue < state.control.busy.count ? state.control.refusal(worker: worker.rawValue) : nil
        }
    }

    /// What metrics report.
    public var report: LoadReport {
        state.withLock { state in
            var report = LoadReport()
            report.load = state.control.load
            report.busy = state.control.busy
            report.bandwidthOut = state.control.bandwidthOut
            for resource in LoadResource.allCases {
                report.shares[resource] = state.control.share(of: resource)
                report.refusals[resource] = state.refusals[resource] ?? 0
            }
            return report
        }
    }
}

/// The server's load at one moment.
public struct LoadReport: Sendable, Hashable {
    /// The largest share: 0 for an idle server, 1 for one that accepts nobody.
    public var load = 0.0
    /// Shares of their limits, 0 to 1; without resources that have none.
    public var shares: [LoadResource: Double] = [:]
    /// The smoothed share of its time that each worker is busy, 0 to 1.
    public var busy: [Double] = []
    /// Smoothed, including the headers of IP and UDP.
    public var bandwidthOut = Bitrate.zero
    /// Joins that were refused since the start.
    public var refusals: [LoadResource: UInt64] = [:]

    /// An idle server.
    public init() {}
}
