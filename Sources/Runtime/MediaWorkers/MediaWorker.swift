public import MediaControl
import MediaEngine
import NetworkIO
import Primitives
import Synchronization

/// One thread with its port for UDP and TCP, and its share of the rooms.
///
/// The thread's loop is the actor's executor: the control plane enters with `await` between two turns, the loop enters once per turn. No packet ever
/// changes threads.
public actor MediaWorker {
    /// Its number, from 0.
    public nonisolated let index: Int
    /// The port that it listens on: UDP and, if configured, TCP.
    public nonisolated let port: UInt16
    private nonisolated let executor: LoopExecutor
    private nonisolated let publishEvents: @Sendable ([MediaEvent]) -> Void
    private nonisolated let publishedLoad = Atomic<Int>(0)
    private nonisolated let turnCount = Atomic<UInt64>(0)
    /// Connections from the acceptor of a shared port that the worker has not taken over yet.
    private nonisolated let adoptions = Atomic<Int>(0)
    /// More of them wait only for a worker that hangs.
    private static let mostAdoptions = 256
    /// The loop turns at least this often, so that a loop that does not can be detected as hung: see `Watchdog`.
    private static let longestSleep = TimeSpan.seconds(1)
    /// How long jobs may delay a turn's media. A description that comes with an early DTLS flight costs a third of a millisecond of
    /// elliptic curve cryptography, and twenty of them may be posted at once when many join.
    private static let jobShare = TimeSpan.microseconds(300)
    private var core: WorkerCore
    private var isStopping = false

    /// The loop's executor.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(
        index: Int, engine: sending WorkerEngine, socket: consuming sending UDPSocket,
        configuration: UDPSocketConfiguration, tcp: sending TCPLane?, executor: LoopExecutor,
        gatherLimit: TimeSpan, records: RecordRing?,
        publishEvents: @escaping @Sendable ([MediaEvent]) -> Void
    ) {
        self.index = index
        self.executor = executor
        self.publishEvents = publishEvents
        port = socket.port
        core = WorkerCore(
            engine: engine, socket: socket, configuration: configuration, tcp: tcp, gatherLimit: gatherLimit,
            records: records)
    }

    /// Executes commands in order; returns when they are done.
    public func apply(_ commands: [MediaCommand]) {
        core.apply(commands, at: MonotonicClock.now())
        publishedLoad.store(core.load, ordering: .relaxed)
    }

    /// Entries of statistics that are gathered between two turns: some 0.2 ms.
    private static let entriesPerTurn = 128

    /// A part of a report, and where the next begins; nil for a room that is not here.
    func part(of scope: ReportScope, from start: Int) -> (part: MediaReport, next: Int?)? {
        core.report(scope, from: start, limit: Self.entriesPerTurn)
    }

    /// Counters and gauges of this worker.
    public func statistics() -> WorkerStatistics { core.statistics }

    /// Asks a STUN server, or asks again, for the address under which it sees this worker's socket.
    func ask(_ server: SocketAddress) { core.ask(server) }

    /// Removes and returns the server's response; nil while there is none.
    func consumeMappedAddress() -> SocketAddress? { core.consumeMappedAddress() }

    /// The server's response is no longer awaited.
    func stopAsking() { core.stopAsking() }

    /// Streams, peers and rooms as of the last command; may be read from anywhere.
    public nonisolated var load: Int { publishedLoad.load(ordering: .relaxed) }

    /// How often the loop has turned; may be read from anywhere.
    nonisolated var loopTurns: UInt64 { turnCount.load(ordering: .relaxed) }

    /// Whether the loop has ended.
    nonisolated var hasEnded: Bool { executor.hasEnded }

    /// Lets the loop run `call` between two turns, in order with all other calls; false after the loop's end.
    nonisolated func post(_ call: @escaping @Sendable (isolated MediaWorker) -> Void) -> Bool {
        executor.post { self.assumeIsolated { call($0) } }
    }

    /// Takes over a connection from the acceptor of a shared port; false if the loop has ended or hangs.
    nonisolated func adopt(_ connection: AcceptedConnection) -> Bool {
        guard adoptions.load(ordering: .relaxed) < Self.mostAdoptions else { return false }
        adoptions.add(1, ordering: .relaxed)
        return post { worker in
            worker.adoptions.subtract(1, ordering: .relaxed)
            worker.core.adopt(connection, at: MonotonicClock.now())
        }
    }

    /// Plays a feed from the next turn on.
    private func attach(_ feed: PlaybackFeed) { if !core.attach(feed) { feed.close() } }

    /// Makes the loop play a feed; false after its end. If there are too many feeds, the feed is closed.
    nonisolated func play(_ feed: PlaybackFeed) -> Bool { post { $0.attach(feed) } }

    /// Runs `body` in the worker's isolation.
    func perform<Reply: Sendable>(_ body: @Sendable (isolated MediaWorker) -> Reply) -> Reply { body(self) }

    /// Lets the loop end after the turn in progress.
    func requestStop() { isStopping = true }

    /// The loop. Runs on the worker's own thread until `requestStop()`.
    nonisolated func run() {
        executor.adoptThread()
        // With priority over the process's other threads: while 500 join per second, two processors are busy with their signalling, and without priority media
        // waited for its turn most of the time.
        Scheduling.preferCurrentThread()
        var jobs: [LoopExecutor.Job] = []
        do throws(SystemError) {
            let poller = try Poller()
            try poller.add(executor.wake.descriptor)
            try poller.add(assumeIsolated { $0.core.descriptor })
            let feedback = assumeIsolated { $0.core.feedbackDescriptor }
            if let feedback { try poller.add(feedback) }
            let tcp = assumeIsolated { $0.core.tcpDescriptor }
            if let tcp { try poller.add(tcp) }
            var last = TurnEnd(deadline: .zero, watchesFeedback: feedback != nil)
            while let next = last.deadline {
                let now = MonotonicClock.now()
                let ready = poller.wait(until: min(next, now + Self.longestSleep), now: now)
                // No other thread writes it.
                turnCount.store(turnCount.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
                // A thread that posts into an empty mailbox signals, so a turn of media alone need not read it.
                let isWoken = poller.isReady(executor.wake.descriptor, of: ready)
                let jobsStart = isWoken ? MonotonicClock.now() : nil
                if isWoken { executor.runJobs(&jobs, limit: Self.jobShare) }
                let found = WorkerCore.Ready(
                    feedback: feedback.map { poller.isReady($0, of: ready) } ?? false,
                    tcp: tcp.map { poller.isReady($0, of: ready) } ?? false)
                let end = assumeIsolated { $0.turn(found, jobsStart: jobsStart) }
                if let feedback, end.watchesFeedback != last.watchesFeedback {
                    poller.watch(feedback, end.watchesFeedback)
                }
                last = end
            }
        } catch {
            preconditionFailure("a worker cannot wait for its socket: \(error)")
        }
        executor.retire(&jobs)
    }

    /// The loop's next step after a turn.
    private struct TurnEnd {
        /// When to wake for the next turn at the latest; nil to stop.
        var deadline: MonotonicTime?
        var watchesFeedback: Bool
    }

    /// `jobsStart`: when the jobs before the turn began, which delayed packets like the turn; nil if there were none.
    private func turn(_ ready: WorkerCore.Ready, jobsStart: MonotonicTime?) -> TurnEnd {
        let start = MonotonicClock.now()
        core.turn(at: start, ready)
        let events = core.consumeEvents()
        if !events.isEmpty { publishEvents(events) }
        core.addBusy(MonotonicClock.now() - (jobsStart ?? start))
        return TurnEnd(deadline: isStopping ? nil : core.nextDeadline, watchesFeedback: core.watchesFeedback)
    }
}
