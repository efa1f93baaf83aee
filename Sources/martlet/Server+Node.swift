import ControlAPI
import MediaControl
import MediaWorkers
import NetworkIO
import Primitives
import RoomService
import Rooms
import Telemetry

extension Server {
    /// What `POST` and `DELETE /v1/node/drain` do.
    func drainer() -> @Sendable (DrainNotice?) async -> Bool {
        { [rooms, health] notice in
            await rooms.setDrain(notice) { health.setDraining(notice != nil) }
        }
    }

    /// Makes the report for each `GET /v1/node`.
    func nodeReporter() -> @Sendable () async -> NodeReport {
        let started = MonotonicClock.now()
        return { [rooms, workers] in
            let totals = await rooms.statistics()
            let loads = await workers.statistics()
            return NodeReport(
                server: "martlet/\(Martlet.version)",
                uptimeSeconds: Int64((MonotonicClock.now() - started).seconds), isDraining: totals.isDraining,
                rooms: totals.rooms, participants: totals.participants, connections: totals.connections,
                workers: zip(workers.workers, loads).map { worker, load in
                    NodeReport.Worker(
                        index: worker.index, port: Int(worker.port), rooms: load.rooms, peers: load.peers,
                        packetsReceived: load.packetsReceived, packetsSent: load.packetsSent, hangs: load.hangs)
                })
        }
    }
}
