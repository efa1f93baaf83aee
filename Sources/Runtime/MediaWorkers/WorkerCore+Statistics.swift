import MediaControl
import MediaEngine
import NetworkIO
import Primitives

// What the control plane asks a worker.

extension WorkerCore {
    /// The engine's counters with those of the socket and the loop.
    var statistics: WorkerStatistics {
        var statistics = engine.statistics
        let counters = socket.counters
        let lost = counters.sendBufferFull &+ counters.sendRefused
        statistics.receiveBufferDrops = socket.receiveBufferDrops &+ feedback.receiveBufferDrops
        statistics.sendDrops = lost
        statistics.drops[.sendFailed] = lost
        statistics.packetsSegmented = counters.segmented
        statistics.socketCalls = counters.sendCalls &+ counters.receiveCalls &+ feedback.receiveCalls
        statistics.turns = turns
        statistics.transit = transit
        statistics.busyTime = busy
        return statistics
    }

    /// A part of what there is to say about a room; see the engine.
    func roomStatistics(_ room: RoomID, from start: Int, limit: Int) -> (part: RoomStatistics, next: Int?)? {
        engine.roomStatistics(room, from: start, limit: limit)
    }

    /// The last decisions about the pictures of these peers and the estimates of their paths, oldest first.
    func decisions(of peers: [PeerID]) -> DecisionHistory {
        var all = DecisionHistory()
        for history in peers.compactMap({ engine.decisions(of: $0) }) {
            all.decisions += history.decisions
            all.estimates += history.estimates
        }
        all.decisions.sort { $0.time < $1.time }
        all.estimates.sort { $0.age > $1.age }
        return all
    }

    /// How the bandwidth of these peers is shared out now.
    func downlinkReports(of peers: [PeerID]) -> [DownlinkReport] { peers.compactMap { engine.downlinkReport(of: $0) } }

    /// How much there is to do, for placing rooms.
    var load: Int { engine.load }
}
