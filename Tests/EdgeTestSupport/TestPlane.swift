public import EdgeSupport
import Logging
public import MediaControl
public import Primitives
public import RoomService
import Synchronization

/// A media plane that takes every command and does nothing.
public final class TestPlane: MediaPlane {
    private let statistics = Mutex<[RoomID: MediaReport]>([:])
    private let received = Mutex<[MediaCommand]>([])
    private let worker = Mutex(WorkerIndex(0))
    private let subject = Mutex(SubscriptionID(0))
    private let clock = Mutex(MonotonicTime(milliseconds: 1_000))
    /// Nothing ever happens.
    public let events = AsyncStream<[MediaEvent]> { $0.finish() }
    public let fingerprintSHA256 = [UInt8](repeating: 7, count: 32)

    public init() {}

    public func candidates(of worker: WorkerIndex) -> [SocketAddress] {
        [SocketAddress(ipv4: 0xc000_0201, port: 7_900)]
    }
    public func leastLoadedWorker(except excluded: Set<WorkerIndex>) -> WorkerIndex? { worker.withLock { $0 } }
    /// Rooms are on this worker from now on.
    public func setWorker(_ index: Int) { worker.withLock { $0 = WorkerIndex(index) } }
    public nonisolated(nonsending) func apply(_ commands: [MediaCommand], on worker: WorkerIndex) async {
        post(commands, on: worker)
    }
    public func post(_ commands: [MediaCommand], on worker: WorkerIndex) { received.withLock { $0 += commands } }
    /// Every command so far.
    public var commands: [MediaCommand] { received.withLock { $0 } }
    /// What a room reports from now on.
    public func set(_ report: MediaReport, for room: RoomID) { statistics.withLock { $0[room] = report } }
    /// What was set for a room; of downlinks one history.
    public func report(_ scope: ReportScope, on worker: WorkerIndex) async -> MediaReport? {
        switch scope {
        case .room(let room): return statistics.withLock { $0[room] } ?? MediaReport()
        case .downlinks(_, let withHistory):
            var report = MediaReport()
            if withHistory { report.downlinks = [Self.history(of: subject.withLock { $0 })] }
            return report
        case .captures(let peers):
            var report = MediaReport()
            report.captures = peers.map { CapturedPackets(peer: $0, records: [], dropped: 0) }
            return report
        }
    }
    /// The decision that every path reports is about this subscription from now on; before it is about none that is known.
    public func setDecision(about subscription: SubscriptionID) { subject.withLock { $0 = subscription } }
    /// One decision and one estimate.
    private static func history(of subscription: SubscriptionID) -> DownlinkReport {
        let record = DecisionRecord(
            time: .zero, subscription: subscription, track: nil,
            layer: LayerOffer(
                LayerPoint(spatial: 1, temporal: 2), bitrate: .kilobitsPerSecond(500), height: 360, framesPerSecond: 30),
            estimate: .kilobitsPerSecond(900),
            reason: .bandwidth(needed: .kilobitsPerSecond(700), available: .kilobitsPerSecond(320)))
        var history = DownlinkReport()
        history.decisions = [record]
        history.estimates = [
            EstimateRecord(age: .seconds(30), least: .kilobitsPerSecond(400), most: .kilobitsPerSecond(900))
        ]
        return history
    }
    public func now() -> MonotonicTime { clock.withLock { $0 } }
    public func pass(_ interval: TimeSpan) { clock.withLock { $0 = $0 + interval } }
    public func wallClockMilliseconds() -> Int64 { TestTokens.now * 1_000 }
}

/// Rooms without media, and an edge's context over them.
public struct TestRooms: Sendable {
    public let plane = TestPlane()
    public let rooms: RoomHost
    public let context: EdgeContext

    /// Rooms with this configuration; `iceServers` are announced to clients.
    public init(configuration: RoomServiceConfiguration = RoomServiceConfiguration(), iceServers: [ICEServer] = []) {
        let servers = Live(ICEServers.Settings(iceServers.map { ICEServers.Entry($0) }))
        self.init(configuration: configuration, iceServers: servers)
    }

    /// Rooms whose clients are notified of servers that may change.
    public init(
        configuration: RoomServiceConfiguration = RoomServiceConfiguration(), iceServers: Live<ICEServers.Settings>
    ) {
        let plane = plane
        rooms = RoomHost(configuration: configuration, media: plane)
        context = EdgeContext(
            rooms: rooms, gate: TestTokens.gate, iceServers: ICEServers(iceServers, now: { 0 }),
            server: "martlet/test", logger: .quiet,
            now: { plane.now() })
    }
}
