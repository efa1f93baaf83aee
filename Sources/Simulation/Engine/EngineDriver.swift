public import MediaControl
public import MediaEngine
public import Primitives

/// An engine and the batch that its worker's loop would own: all drivers of engines in simulations, tests, fuzzing and benchmarks are built on it.
///
/// Commands and datagrams come in; what the engine wants to send goes to `carry`, as it would to a socket. The owner of a driver decides what time it is, when a turn
/// ends, and where the datagrams go: over links (``World``), to clients without delay (``ClientWire``), or nowhere.
///
/// `carry` must not call the driver: what clients answer is given to the engine after the call.
public final class EngineDriver {
    /// Takes what the engine sends, at most one batch at a time. The batch is never empty, and is emptied afterwards.
    public typealias Carry = (borrowing OutboundBatch) -> Void

    /// Where clients send to if there is one engine only.
    public static let onlyAddress = SocketAddress(ipv4: 0x7f00_0001, port: 7_900)

    /// The engine.
    public let engine: WorkerEngine
    /// Where clients send to.
    public let address: SocketAddress
    /// Flushes that were needed because what one turn sends filled the batch.
    public private(set) var flushes = 0
    private var batch: OutboundBatch
    private var isDirty = false

    /// A driver of `engine`, whose batches hold at most `datagrams` datagrams and `bytes` bytes.
    public init(
        _ engine: WorkerEngine, at address: SocketAddress = onlyAddress, datagrams: Int = 512, bytes: Int = 1 << 20
    ) {
        self.engine = engine
        self.address = address
        batch = OutboundBatch(datagrams: datagrams, bytes: bytes)
    }

    /// The statistics of its whole engine.
    public var statistics: WorkerStatistics { engine.statistics }

    /// The recorded decisions about a peer's videos, oldest first.
    public func decisions(about peer: PeerID) -> [DecisionRecord] {
        engine.report(.downlinks([peer], withHistory: true))?.downlinks.flatMap(\.decisions) ?? []
    }

    /// Datagrams that wait for the end of the turn.
    public var waiting: Int { batch.count }

    /// Whether anything has arrived since the last turn, or a deadline is due.
    public func hasWork(at now: MonotonicTime) -> Bool { isDirty || engine.nextDeadline <= now }

    /// Gives the engine a command, as the control plane does.
    public func apply(_ command: MediaCommand, at now: MonotonicTime, carry: Carry) {
        makeRoom(carry)
        engine.apply(command, at: now, into: &batch)
        isDirty = true
    }

    /// Gives the engine a datagram, which it overwrites; `isLate`: one that waited while the process stood still.
    public func receive(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: MonotonicTime,
        isLate: Bool = false, carry: Carry
    ) {
        makeRoom(carry)
        if isLate {
            engine.receiveLate(datagram, from: source, at: now, into: &batch)
        } else {
            engine.receive(datagram, from: source, at: now, into: &batch)
        }
        isDirty = true
    }

    /// Ends the turn: serves deadlines that are due, and carries everything that waits.
    public func endTurn(at now: MonotonicTime, carry: Carry) {
        isDirty = false
        if engine.nextDeadline <= now {
            while engine.advance(to: now, into: &batch) == .needsFlush { flush(carry) }
        }
        while engine.endTurn(at: now, into: &batch) == .needsFlush {
            flushes += 1
            flush(carry)
        }
        flush(carry)
    }

    /// The engine wants a reserve in the batch before each command and datagram (``WorkerEngine``).
    private func makeRoom(_ carry: Carry) {
        guard
            !batch.hasRoom(for: WorkerEngine.transportReserve)
                || batch.count + WorkerEngine.transportReserveDatagrams > batch.capacity
        else { return }
        flush(carry)
    }

    private func flush(_ carry: Carry) {
        guard batch.count > 0 else { return }
        carry(batch)
        batch.removeAll()
    }
}
