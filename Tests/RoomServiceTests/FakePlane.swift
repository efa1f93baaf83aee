import MediaControl
import Primitives
import RoomService
import Synchronization

/// Remembers commands, tells nothing by itself; time stands until it is moved.
final class FakePlane: MediaPlane {
    private let state = Mutex(State())
    let events: AsyncStream<[MediaEvent]>
    let fingerprintSHA256 = [UInt8](repeating: 7, count: 32)

    private struct State {
        var commands: [MediaCommand] = []
        var now = MonotonicTime(milliseconds: 1_000)
        var statistics: [RoomID: RoomStatistics] = [:]
    }

    init() { events = AsyncStream { $0.finish() } }

    var commands: [MediaCommand] { state.withLock { $0.commands } }
    func takeCommands() -> [MediaCommand] {
        state.withLock { state in
            defer { state.commands = [] }
            return state.commands
        }
    }
    func pass(_ interval: TimeInterval) { state.withLock { $0.now = $0.now + interval } }
    func set(_ statistics: RoomStatistics, for room: RoomID) { state.withLock { $0.statistics[room] = statistics } }

    func candidates(of worker: WorkerIndex) -> [SocketAddress] {
        [SocketAddress(ipv4: 0xc000_0201, port: 7_900 + UInt16(worker.rawValue))]
    }
    func leastLoadedWorker() -> WorkerIndex? { WorkerIndex(1) }
    nonisolated(nonsending) func apply(_ commands: [MediaCommand], on worker: WorkerIndex) async {
        state.withLock { $0.commands += commands }
        await Task.yield()
    }
    func roomStatistics(_ room: RoomID, on worker: WorkerIndex) async -> RoomStatistics? {
        state.withLock { $0.statistics[room] }
    }
    func now() -> MonotonicTime { state.withLock { $0.now } }
    func wallClockMilliseconds() -> Int64 { 1_700_000_000_000 }
}
