public import MediaControl
public import MediaEngine
public import Primitives

/// One worker of the simulated world: an engine, its address, and the batch that its loop would own.
///
/// It drives an engine over links, in order of events. There are four other drivers, because each omits what it must not measure or vary:
/// - `EngineHarness` (Tests/MediaEngineTests) delivers within the turn, so that a test sees what one turn does.
/// - `FuzzRoom` (Tests/Fuzz/Targets) installs keys instead of handshakes, so that each input is one room.
/// - `EngineRoom` (LoadTests/Benchmarks) prepares all packets, so that only the engine is measured.
/// - `DataRoom` (LoadTests/Benchmarks) has clients that acknowledge at once, and counts only the engine's time: the cost of a message.
///
/// All but `FuzzRoom` and `World` make their peers with ``EngineClient`` and carry datagrams over a ``ClientWire``; `FuzzRoom` has no handshake, and the
/// clients of a world have links and random credentials. What is left in common, the two loops in `finishTurn`, is the engine's own contract; one driver with a
/// switch for each of these would be longer than all of them.
public final class Node {
    /// The engine under test.
    public let engine: WorkerEngine
    /// Where clients send to.
    public let address: SocketAddress
    /// Turns that needed more than one batch.
    public private(set) var flushes = 0
    private var batch = OutboundBatch(datagrams: 512, bytes: 1 << 20)
    private var isDirty = false

    init(engine: WorkerEngine, address: SocketAddress) {
        self.engine = engine
        self.address = address
    }

    /// The statistics of its whole engine.
    public var statistics: WorkerStatistics { engine.statistics }

    /// The recorded decisions about a peer's videos, oldest first.
    public func decisions(about peer: PeerID) -> [DecisionRecord] {
        engine.report(.downlinks([peer], withHistory: true))?.downlinks.flatMap(\.decisions) ?? []
    }

    func apply(
        _ command: MediaCommand, at now: MonotonicTime, carry: (OutboundBatch.Entry, UnsafeRawBufferPointer) -> Void
    ) {
        makeRoom(carry)
        engine.apply(command, at: now, into: &batch)
        isDirty = true
    }

    func receive(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: MonotonicTime,
        carry: (OutboundBatch.Entry, UnsafeRawBufferPointer) -> Void
    ) {
        makeRoom(carry)
        engine.receive(datagram, from: source, at: now, into: &batch)
        isDirty = true
    }

    /// Ends the turn of this moment, if there is anything to do.
    func finishTurn(at now: MonotonicTime, carry: (OutboundBatch.Entry, UnsafeRawBufferPointer) -> Void) {
        let isDue = engine.nextDeadline <= now
        guard isDirty || isDue else { return }
        isDirty = false
        if isDue { while engine.advance(to: now, into: &batch) == .needsFlush { flush(carry) } }
        while engine.endTurn(at: now, into: &batch) == .needsFlush {
            flushes += 1
            flush(carry)
        }
        flush(carry)
    }

    private func makeRoom(_ carry: (OutboundBatch.Entry, UnsafeRawBufferPointer) -> Void) {
        guard
            !batch.hasRoom(for: WorkerEngine.transportReserve)
                || batch.count + WorkerEngine.transportReserveDatagrams > batch.capacity
        else { return }
        flush(carry)
    }

    private func flush(_ carry: (OutboundBatch.Entry, UnsafeRawBufferPointer) -> Void) {
        let arena = UnsafeRawBufferPointer(batch.arena)
        for entry in batch.entries {
            carry(entry, UnsafeRawBufferPointer(rebasing: arena[entry.offset..<(entry.offset + entry.length)]))
        }
        batch.removeAll()
    }
}
