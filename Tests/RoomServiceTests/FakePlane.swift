import MediaControl
import MediaWorkers
import Primitives
import RoomService
import Synchronization

/// Remembers commands, reports nothing by itself; time stands until it is moved.
final class FakePlane: MediaPlane {
    private let state = Mutex(State())
    let events: AsyncStream<[MediaEvent]>
    let fingerprintSHA256 = [UInt8](repeating: 7, count: 32)

    private struct State {
        var commands: [MediaCommand] = []
        var commandsByWorker: [WorkerIndex: [MediaCommand]] = [:]
        var now = MonotonicTime(milliseconds: 1_000)
        var statistics: [RoomID: MediaReport] = [:]
        var hangs = false
        var hangsAtNextCommand = false
        var workers = [WorkerIndex(1), WorkerIndex(0)]
        var holdsCaptureReports = false
        var heldCaptureReports: [CheckedContinuation<Void, Never>] = []
    }

    init() { events = AsyncStream { $0.finish() } }

    var commands: [MediaCommand] { state.withLock { $0.commands } }
    /// Those that were given to one worker so far.
    func commands(of worker: Int) -> [MediaCommand] {
        state.withLock { $0.commandsByWorker[WorkerIndex(worker)] ?? [] }
    }
    func consumeCommands() -> [MediaCommand] {
        state.withLock { state in
            defer { state.commands = [] }
            return state.commands
        }
    }
    func pass(_ interval: TimeSpan) { state.withLock { $0.now = $0.now + interval } }
    func set(_ statistics: MediaReport, for room: RoomID) { state.withLock { $0.statistics[room] = statistics } }

    func candidates(of worker: WorkerIndex) -> [SocketAddress] {
        [SocketAddress(ipv4: 0xc000_0201, port: 7_900 + UInt16(worker.rawValue))]
    }
    func leastLoadedWorker(except excluded: Set<WorkerIndex>) -> WorkerIndex? {
        state.withLock { $0.workers.first { !excluded.contains($0) } }
    }
    /// New rooms go to another worker from now on.
    func turnWorkers() { state.withLock { $0.workers.reverse() } }
    func setHangs(_ hangs: Bool) { state.withLock { $0.hangs = hangs } }
    /// The worker stops answering when it is given its next command.
    func hangAtNextCommand() { state.withLock { $0.hangsAtNextCommand = true } }
    func hangs(_ worker: WorkerIndex) -> Bool { state.withLock { $0.hangs } }
    nonisolated(nonsending) func apply(_ commands: [MediaCommand], on worker: WorkerIndex) async throws(WorkerHangs) {
        post(commands, on: worker)
        let hangs = hangs(worker)
        await Task.yield()
        if hangs { throw WorkerHangs() }
    }
    func post(_ commands: [MediaCommand], on worker: WorkerIndex) {
        state.withLock { state in
            state.commands += commands
            state.commandsByWorker[worker, default: []] += commands
            state.hangs = state.hangs || state.hangsAtNextCommand
            state.hangsAtNextCommand = false
        }
    }
    func report(_ scope: ReportScope, on worker: WorkerIndex) async throws(WorkerHangs) -> MediaReport? {
        if case .captures = scope { await waitForRelease() }
        guard case .room(let room) = scope else { return MediaReport() }
        guard !hangs(worker) else { throw WorkerHangs() }
        return state.withLock { $0.statistics[room] }
    }
    /// Reports of captures come when they are released, until set otherwise.
    func setHoldsCaptureReports(_ holds: Bool) { state.withLock { $0.holdsCaptureReports = holds } }
    var heldCaptureReports: Int { state.withLock { $0.heldCaptureReports.count } }
    /// Lets the one through that was asked for last.
    func releaseCaptureReport() { state.withLock { $0.heldCaptureReports.popLast() }?.resume() }
    private func waitForRelease() async {
        guard state.withLock({ $0.holdsCaptureReports }) else { return }
        await withCheckedContinuation { held in state.withLock { $0.heldCaptureReports.append(held) } }
    }
    func now() -> MonotonicTime { state.withLock { $0.now } }
    func wallClockMilliseconds() -> Int64 { 1_700_000_000_000 }
}
