import ICE
import MediaControl
import MediaEngine
import NetworkIO
import Primitives

/// One worker's engine, socket and batch: everything that a turn touches, in one place that a turn accesses once.
struct WorkerCore: ~Copyable {
    /// Datagrams per batch: a call of the kernel takes 64 messages, and a frame has two to five datagrams per receiver. Longer batches only make the first
    /// receivers wait for the last ones' packets to be written, and evict from the second-level cache what the kernel is about to copy.
    private static let batchDatagrams = 128
    private static let batchBytes = batchDatagrams * 1_500
    /// Runs of datagrams fetched per turn: some 2 ms of work, so that timers and commands get their turn under floods.
    static let receivesPerTurn = 512
    /// Packets of one frame that were sent together arrive some 10 us apart, and a sleeping processor needs 50 us to wake up.
    private static let gatherStep = TimeSpan.microseconds(200)

    let engine: WorkerEngine
    /// The destination of records; nil: recording is disabled, and records of the engine are dropped.
    private let records: RecordRing?
    private let gatherLimit: TimeSpan
    /// Time spent asleep in `gather`, since `addBusy`.
    private var waited = TimeSpan.zero
    var socket: UDPSocket
    var feedback: FeedbackLane
    let tcp: TCPLane?
    private var playbacks = PlaybackLane()
    var batch = OutboundBatch(datagrams: batchDatagrams, bytes: batchBytes)
    /// The peers that sent the fetched datagrams; see `prefetch`.
    let owners = UnsafeMutablePointer<Int>.allocate(capacity: UDPSocket.receiveSlots)
    var handshakes = HandshakeQueue()
    var standstill = Standstill()
    /// A request to a STUN server without a response yet; see `MediaWorkerPool.discover`.
    private(set) var probe: AddressProbe?
    /// Handshake datagrams processed in this turn.
    var handshakesDone = 0
    var turns: UInt64 = 0
    var busy = TimeSpan.zero
    private(set) var turnTimes = TransitHistogram()
    private var turnStart = MonotonicTime.zero
    var transit = TransitHistogram()
    /// Forwarded packets that are in `transit`.
    private var counted: UInt64 = 0

    /// `configuration` is that of `socket`.
    init(
        engine: WorkerEngine, socket: consuming UDPSocket, configuration: UDPSocketConfiguration, tcp: TCPLane?,
        gatherLimit: TimeSpan, records: RecordRing?
    ) {
        self.engine = engine
        self.records = records
        self.gatherLimit = gatherLimit
        feedback = FeedbackLane(besides: socket, configuration)
        self.socket = socket
        self.tcp = tcp
    }

    deinit { owners.deallocate() }

    /// Executes commands; what they send is sent by the turn that follows.
    mutating func apply(_ commands: [MediaCommand], at now: MonotonicTime) {
        for command in commands {
            makeRoom()
            engine.apply(command, at: now, into: &batch)
        }
    }

    /// Asks a STUN server, or asks again, for the address under which it sees the socket. The turn that follows sends it.
    mutating func ask(_ server: SocketAddress) {
        if probe?.server != server { probe = AddressProbe(server: server) }
        makeRoom()
        _ = probe?.send(into: &batch)
    }

    /// Removes and returns the response; nil while there is none.
    mutating func consumeMappedAddress() -> SocketAddress? {
        guard let mapped = probe?.mapped else { return nil }
        probe = nil
        return mapped
    }

    /// Plays a feed from the next turn on; false if there are too many.
    mutating func attach(_ feed: PlaybackFeed) -> Bool { playbacks.attach(feed) }

    /// The response is no longer awaited.
    mutating func stopAsking() { probe = nil }

    /// What woke the loop, besides the media socket.
    struct Ready {
        var feedback = false
        var tcp = false
    }

    /// One turn: fetches datagrams, handles deadlines, forwards, sends; then feedback, if it woke the loop or is due.
    mutating func turn(at now: MonotonicTime, _ ready: Ready) {
        turns &+= 1
        turnStart = now
        handshakesDone = 0
        let isLate = standstill.isOver(at: now)
        receive(isFeedback: false, isLate: isLate, at: now)
        if let tcp { serve(tcp, isReady: ready.tcp, isLate: isLate, at: now) }
        let now = gather(since: now)
        if engine.nextDeadline <= now {
            while engine.advance(to: now, into: &batch) == .needsFlush { flush() }
        }
        // After gathering: the packets of a played frame are spread in time on purpose.
        playbacks.play(into: engine, at: now)
        forward(at: now)
        shakeHands(at: now)
        receiveFeedback(at: now, isReady: ready.feedback, isLate: isLate)
    }

    private mutating func receiveFeedback(at now: MonotonicTime, isReady: Bool, isLate: Bool) {
        guard isReady || feedback.isDue(at: now) else { return }
        let found = receive(isFeedback: true, isLate: isLate, at: now)
        feedback.looked(found: found, at: now)
        if found > 0 { forward(at: now) }
    }

    /// Waits briefly for the rest of a frame, so that its packets are sent together; returns the time afterwards.
    ///
    /// Audio alone never waits; a frame whose packets arrive further apart than `gatherStep` is forwarded packet by packet.
    private mutating func gather(since start: MonotonicTime) -> MonotonicTime {
        var now = start
        while engine.hasOpenFrame, now - start < gatherLimit {
            let asleep = MonotonicClock.now()
            let isReady = socket.waitForDatagrams(Self.gatherStep)
            now = MonotonicClock.now()
            waited = waited + (now - asleep)
            guard isReady else { break }
            receive(isFeedback: false, isLate: false, at: now)
        }
        return now
    }

    private mutating func forward(at now: MonotonicTime) {
        while engine.endTurn(at: now, into: &batch) == .needsFlush { flush() }
        flush()
        // Subscribers first.
        if engine.hasRecords { handOnRecords() }
    }

    private func handOnRecords() {
        engine.handOnRecords { bytes in
            guard let records else { return (.max, true) }
            records.push(bytes)
            return records.room
        }
    }

    /// Processes some of the handshakes that waited.
    private mutating func shakeHands(at now: MonotonicTime) {
        guard handshakes.count > 0 else { return }
        while handshakesDone < HandshakeQueue.perTurn, let waiting = handshakes.next() {
            handshakesDone += 1
            makeRoom()
            engine.receive(waiting.datagram, from: waiting.source, at: now, into: &batch)
        }
        forward(at: now)
    }

    /// Sends the batch if the engine's next call might not find room in it.
    mutating func makeRoom() {
        let isRoomy =
            batch.used + WorkerEngine.transportReserve <= batch.arena.count
            && batch.count + WorkerEngine.transportReserveDatagrams <= batch.capacity
        if !isRoomy { flush() }
    }

    private mutating func flush() {
        guard batch.count > 0 else { return }
        if socket.send(batch) > 0 { tcp?.send(batch, at: turnStart) }
        batch.removeAll()
        let forwarded = engine.packetsForwarded
        guard forwarded != counted else { return }
        // One clock read for up to 128 datagrams.
        transit.add(forwarded &- counted, MonotonicClock.now() - turnStart)
        counted = forwarded
    }

    /// Removes and returns the events since the last call.
    mutating func consumeEvents() -> [MediaEvent] { engine.consumeEvents() }

    /// When the next turn must happen at the latest.
    var nextDeadline: MonotonicTime {
        guard handshakes.count == 0 else { return .zero }
        var next = min(engine.nextDeadline, feedback.nextLook, playbacks.nextDeadline)
        if let tcp { next = min(next, tcp.nextDeadline) }
        return engine.hasPeers ? min(next, standstill.nextLook) : next
    }

    /// For the poller.
    var descriptor: Int32 { socket.descriptor }
    /// For the poller, while `watchesFeedback`; nil if feedback arrives on the media socket.
    var feedbackDescriptor: Int32? { feedback.descriptor }
    var watchesFeedback: Bool { feedback.isWatched }
    /// For the poller; nil without TCP.
    var tcpDescriptor: Int32? { tcp?.descriptor }

    /// Adds the time of a turn, and of the jobs before it.
    mutating func addBusy(_ time: TimeSpan) {
        busy = busy + time - waited
        turnTimes.add(1, time - waited)
        waited = .zero
    }
}
