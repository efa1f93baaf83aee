import MediaControl
import MediaWorkers
import NetworkIO
import RoomService

/// Measures the server's load once per second, for the admission of joins and for metrics.
enum LoadKeeper {
    /// Shorter than a crowd needs to connect, and long enough that the cost is not noticeable on an idle machine.
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
    /// The parts of a worker's statistics that limit the server.
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
