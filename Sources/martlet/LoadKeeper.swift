import MediaControl
import MediaWorkers
import NetworkIO
import RoomService

/// Measures once a second what the server has used up, for the admission of joins and for metrics.
enum LoadKeeper {
    /// Shorter than a crowd needs to connect, longer than anybody would notice on an idle machine.
    static let interval = Duration.seconds(1)

    /// Measures until the task is cancelled.
    static func run(_ gate: LoadGate, _ workers: MediaWorkerPool, _ rooms: RoomHost) async {
        while (try? await Task.sleep(for: interval)) != nil {
            var sample = LoadSample(workers: await workers.statistics().map(LoadSample.Worker.init))
            let totals = await rooms.statistics()
            sample.connections = totals.reservedConnections
            sample.participants = totals.participants
            sample.residentBytes = MachineMemory.residentBytes()
            sample.openFiles = OpenFiles.inUse()
            gate.apply(sample, at: MonotonicClock.now())
        }
    }
}

extension LoadSample.Worker {
    /// What of a worker's statistics bounds the server.
    fileprivate init(_ statistics: WorkerStatistics) {
        self.init()
        busyTime = statistics.busyTime
        peers = statistics.peers
        bytesSent = statistics.bytesSent
        datagramsSent = statistics.packetsSent
        datagramsReceived = statistics.packetsReceived
        datagramsDropped = statistics.receiveBufferDrops
        hangs = statistics.hangs
    }
}
