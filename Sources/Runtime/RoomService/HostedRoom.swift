import Primitives
import Rooms

/// A room and the worker that has its media. Touched by the service's actor only.
final class HostedRoom {
    var room: Room
    let worker: WorkerIndex
    /// As counted in the service's sum.
    var reservedConnections = 0
    /// Quality as last told, by participant sid.
    var quality: [String: Int] = [:]
    /// Counters of the last look, for rates of loss: lost and received, by track sid.
    var uplinkCounters: [String: (lost: UInt64, received: UInt64)] = [:]

    init(room: Room, worker: WorkerIndex) {
        self.room = room
        self.worker = worker
    }
}
