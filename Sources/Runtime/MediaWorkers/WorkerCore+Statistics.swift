import MediaControl
import MediaEngine
import NetworkIO
import Primitives

// The control plane's queries to a worker.

extension WorkerCore {
    /// The engine's counters with those of the socket and the loop.
    var statistics: WorkerStatistics {
        var statistics = engine.statistics
        let counters = socket.counters
        statistics.receiveBufferDrops = socket.receiveBufferDrops &+ feedback.receiveBufferDrops
        statistics.drops[.sendFailed] = counters.sendBufferFull &+ counters.sendRefused
        if let tcp {
            statistics.tcp = tcp.report
            statistics.drops[.backlogFull] &+= tcp.drops[.backlogFull]
            statistics.drops[.connectionEnded] &+= tcp.drops[.connectionEnded]
        }
        statistics.packetsSegmented = counters.segmented
        statistics.segmentationRefused = counters.segmentationRefused
        statistics.socketCalls = counters.sendCalls &+ counters.receiveCalls &+ feedback.receiveCalls
        statistics.turns = turns
        statistics.transit = transit
        statistics.busyTime = busy
        statistics.turnTimes = turnTimes
        return statistics
    }

    /// A part of a report; see the engine.
    func report(_ scope: ReportScope, from start: Int, limit: Int) -> (part: MediaReport, next: Int?)? {
        engine.report(scope, from: start, limit: limit)
    }

    /// The load, for placing rooms.
    var load: Int { engine.load }
}
