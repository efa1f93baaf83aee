import MediaControl
import MediaEngine
import NetworkIO
import Primitives

/// One worker's engine, socket and batch: everything that a turn touches, in one place that a turn accesses once.
struct WorkerCore: ~Copyable {
    /// Datagrams of a batch: a call of the kernel takes 64 messages, a picture is two to five datagrams of each. Longer batches only make the first
    /// receivers wait for the last ones' packets to be written, and push out of the second-level cache what the kernel is to copy.
    private static let batchDatagrams = 128
    private static let batchBytes = batchDatagrams * 1_500
    /// Runs of datagrams fetched in one turn: some 2 ms of work, so that timers and commands get their turn under floods.
    private static let receivesPerTurn = 512
    /// Packets of one picture that were sent in one go are some 10 us apart, and a sleeping processor needs 50 us to wake up.
    private static let gatherStep = TimeInterval.microseconds(200)

    private let engine: MediaEngine
    private let gatherLimit: TimeInterval
    /// Time spent asleep in `gather`, since `addBusy`.
    private var waited = TimeInterval.zero
    private var socket: UDPSocket
    private var batch = OutboundBatch(datagrams: batchDatagrams, bytes: batchBytes)
    /// The peers that sent what was fetched; see `prefetch`.
    private let owners = UnsafeMutablePointer<Int>.allocate(capacity: UDPSocket.receiveSlots)
    private var handshakes = HandshakeQueue()
    /// Handshake datagrams done in this turn.
    private var handshakesDone = 0
    private var turns: UInt64 = 0
    private var busy = TimeInterval.zero
    private var turnStart = MonotonicTime.zero
    private var transit = TransitHistogram()
    /// Forwarded packets that are in `transit`.
    private var counted: UInt64 = 0

    init(engine: MediaEngine, socket: consuming UDPSocket, gatherLimit: TimeInterval) {
        self.engine = engine
        self.gatherLimit = gatherLimit
        self.socket = socket
    }

    deinit { owners.deallocate() }

    /// Carries out commands; what they send leaves with the turn that follows.
    mutating func apply(_ commands: [MediaCommand], at now: MonotonicTime) {
        for command in commands {
            makeRoom()
            engine.apply(command, at: now, into: &batch)
        }
    }

    /// One turn: fetches what came in, lets deadlines happen, forwards, sends.
    mutating func turn(at now: MonotonicTime) {
        turns &+= 1
        turnStart = now
        handshakesDone = 0
        receive(at: now)
        let now = gather(since: now)
        if engine.nextDeadline <= now {
            while engine.advance(to: now, into: &batch) == .needsFlush { flush() }
        }
        forward(at: now)
        shakeHands(at: now)
    }

    /// Waits a moment for the rest of a picture, so that its packets leave together; the time afterwards.
    ///
    /// Sound alone never waits; a picture whose packets come further apart than `gatherStep` goes on packet by packet.
    private mutating func gather(since start: MonotonicTime) -> MonotonicTime {
        var now = start
        while engine.hasOpenPicture, now - start < gatherLimit, socket.waitForDatagrams(Self.gatherStep) {
            let woken = MonotonicClock.now()
            waited = waited + (woken - now)
            now = woken
            receive(at: now)
        }
        return now
    }

    private mutating func forward(at now: MonotonicTime) {
        while engine.endTurn(at: now, into: &batch) == .needsFlush { flush() }
        flush()
    }

    private mutating func receive(at now: MonotonicTime) {
        var fetched = 0
        while fetched < Self.receivesPerTurn {
            let count = socket.receiveSome()
            fetched += count
            for index in 0..<count {
                prefetch(behind: index, of: count)
                let run = socket.received(index)
                for part in 0..<run.count where !postpone(run[part], from: run.source) {
                    makeRoom()
                    engine.receive(run[part], from: run.source, at: now, into: &batch)
                }
            }
            // The kernel had no more.
            if count < UDPSocket.receiveSlots { return }
        }
    }

    /// Asks for the memory of the senders of the datagrams that come next, each a step further along the pointers than the one behind it.
    @inline(__always) private func prefetch(behind index: Int, of count: Int) {
        guard count > 1 else { return }
        let steps = MediaEngine.prefetchSteps
        if index == 0 {
            for ahead in 1..<min(steps, count) { owners[ahead] = engine.owner(of: socket.received(ahead).source) }
        }
        for step in 1..<steps where index &+ steps &- step < count {
            engine.prefetch(step, of: owners[index &+ steps &- step])
        }
        if index &+ steps < count { owners[index &+ steps] = engine.owner(of: socket.received(index &+ steps).source) }
    }

    /// Whether a datagram is a handshake's that waits until this turn's media has left. Strangers' never wait: they are dropped
    /// unread (F5), and must not take the places of those that are expected.
    private mutating func postpone(_ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress) -> Bool {
        guard HandshakeQueue.isHandshake(datagram), engine.knows(source) else { return false }
        if handshakes.count == 0, handshakesDone < HandshakeQueue.perTurn {
            handshakesDone += 1
            return false
        }
        return handshakes.push(datagram, from: source)
    }

    /// Does some of the handshakes that waited.
    private mutating func shakeHands(at now: MonotonicTime) {
        guard handshakes.count > 0 else { return }
        while handshakesDone < HandshakeQueue.perTurn, let waiting = handshakes.next() {
            handshakesDone += 1
            makeRoom()
            engine.receive(waiting.datagram, from: waiting.source, at: now, into: &batch)
        }
        forward(at: now)
    }

    /// Sends the batch when the engine's next call might not find room in it.
    private mutating func makeRoom() {
        let isRoomy =
            batch.used + MediaEngine.transportReserve <= batch.arena.count
            && batch.count + MediaEngine.transportReserveDatagrams <= batch.capacity
        if !isRoomy { flush() }
    }

    private mutating func flush() {
        guard batch.count > 0 else { return }
        socket.send(batch)
        batch.removeAll()
        let forwarded = engine.packetsForwarded
        guard forwarded != counted else { return }
        // One look at the clock for up to 128 datagrams.
        transit.add(forwarded &- counted, MonotonicClock.now() - turnStart)
        counted = forwarded
    }

    /// What happened since the last call.
    mutating func takeEvents() -> [MediaEvent] { engine.takeEvents() }

    /// When the next turn must happen at the latest.
    var nextDeadline: MonotonicTime { handshakes.count > 0 ? .zero : engine.nextDeadline }

    /// For the poller.
    var descriptor: Int32 { socket.descriptor }

    /// Adds the time of a turn.
    mutating func addBusy(_ time: TimeInterval) {
        busy = busy + time - waited
        waited = .zero
    }

    /// The engine's counters with those of the socket and the loop.
    var statistics: WorkerStatistics {
        var statistics = engine.statistics
        let counters = socket.counters
        let lost = counters.sendBufferFull &+ counters.sendRefused
        statistics.receiveBufferDrops = socket.receiveBufferDrops
        statistics.sendDrops = lost
        statistics.drops[.sendFailed] = lost
        statistics.packetsSegmented = counters.segmented
        statistics.socketCalls = counters.sendCalls &+ counters.receiveCalls
        statistics.turns = turns
        statistics.transit = transit
        statistics.busyTime = busy
        return statistics
    }

    /// Everything about one room; nil for a room that is not here.
    func roomStatistics(_ room: RoomID) -> RoomStatistics? { engine.roomStatistics(room) }

    /// The last decisions about the pictures of these peers, oldest first.
    func decisions(of peers: [PeerID]) -> [DecisionRecord] {
        peers.flatMap { engine.decisions(of: $0) ?? [] }.sorted { $0.time < $1.time }
    }

    /// How the bandwidth of these peers is shared out now.
    func downlinkReports(of peers: [PeerID]) -> [DownlinkReport] { peers.compactMap { engine.downlinkReport(of: $0) } }

    /// How much there is to do, for placing rooms: every stream in and out counts one.
    var load: Int {
        let statistics = engine.statistics
        return statistics.rooms + statistics.peers + statistics.tracks + statistics.subscriptions
    }
}
