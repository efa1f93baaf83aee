import MediaControl
import MediaEngine
import NetworkIO
import Primitives
import RTP
import Synchronization

/// One TCP port for the clients of all workers, on a separate thread: reads each connection's first check and hands the connection to the worker whose mark
/// is in the user name fragment.
///
/// It makes no further decisions: the worker processes the check as if it had accepted the connection itself. A connection with another first packet is closed,
/// and silent ones are limited as at a worker.
final class TCPAcceptor: Sendable {
    /// Connections that wait for their first packet, for all workers.
    private static let limits = TCPTable.Limits(connections: 1_024, unchecked: 1_024)
    /// A check with all its attributes has 150 bytes; a longer first packet is not a check.
    private static let longestCheck = 600
    private static let deadline = TimeSpan.seconds(10)
    private static let sweepInterval = TimeSpan.seconds(1)
    /// While the process has no descriptor left, accepting is tried this often.
    private static let exhaustedPause = TimeSpan.milliseconds(100)
    private static let backlog: Int32 = 1_024
    private static let listenerMark: UInt64 = 0
    private static let wakeMark = UInt64.max

    /// The descriptor of the listening socket, which `run` owns.
    private let listener: Int32
    /// The port in use.
    let port: UInt16
    private let wake: WakeSignal
    private let isStopping = Atomic(false)
    private let counted = Mutex(TCPStatistics())
    private let handOver: @Sendable (AcceptedConnection, Int) -> Bool

    /// Listens; call `run` on a thread. `handOver` passes a connection to a worker, false if the worker cannot take it.
    init(
        address: SocketAddress?, port: UInt16, handOver: @escaping @Sendable (AcceptedConnection, Int) -> Bool
    ) throws(SystemError) {
        wake = try WakeSignal()
        let socket = try TCPSocket.listening(to: address, port: port, backlog: Self.backlog)
        self.port = socket.port
        listener = socket.surrender()
        self.handOver = handOver
    }

    /// Counters of connections that did not reach a worker.
    var statistics: TCPStatistics { counted.withLock { $0 } }

    /// Makes `run` return.
    func stop() {
        isStopping.store(true, ordering: .relaxed)
        wake.signal()
    }

    /// Accepts until `stop()`, on the calling thread.
    func run() {
        let listener = TCPSocket(descriptor: listener)
        var waiting = TCPTable(limits: Self.limits)
        var ready: [ReadinessSet.Ready] = []
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: StreamFrame.headerLength + Self.longestCheck, alignment: 8)
        defer { buffer.deallocate() }
        guard let readiness = try? ReadinessSet(),
            (try? readiness.add(listener.descriptor, .readable, mark: Self.listenerMark)) != nil,
            (try? readiness.add(wake.descriptor, .readable, mark: Self.wakeMark)) != nil
        else { return }
        var nextSweep = MonotonicTime.distantFuture
        while !isStopping.load(ordering: .relaxed) {
            readiness.wait(into: &ready, until: nextSweep, now: MonotonicClock.now())
            let now = MonotonicClock.now()
            for entry in ready {
                if entry.mark == Self.listenerMark {
                    let isExhausted = !accept(from: listener, into: &waiting, readiness, at: now)
                    nextSweep = min(nextSweep, now + (isExhausted ? Self.exhaustedPause : Self.sweepInterval))
                } else if let connection = waiting[UInt16(truncatingIfNeeded: entry.mark)] {
                    read(connection, buffer, in: &waiting, readiness)
                }
            }
            guard now >= nextSweep else { continue }
            readiness.change(listener.descriptor, .readable, mark: Self.listenerMark)
            for connection in Array(waiting.connections) where now - connection.acceptedAt >= Self.deadline {
                close(connection, .tooSlow, in: &waiting)
            }
            nextSweep = waiting.count > 0 ? now + Self.sweepInterval : .distantFuture
        }
    }

    /// False if the process has no descriptor left.
    private func accept(
        from listener: TCPSocket, into waiting: inout TCPTable, _ readiness: ReadinessSet, at now: MonotonicTime
    ) -> Bool {
        while true {
            switch listener.accept() {
            case .nothing: return true
            case .exhausted:
                // Otherwise the connection that stays in the kernel's queue would wake the loop again and again.
                readiness.change(listener.descriptor, [], mark: Self.listenerMark)
                return false
            case .connection(let socket, let address):
                if let displaced = waiting.displaced() { close(displaced, .displaced, in: &waiting) }
                guard waiting.allows(address) else {
                    count(.refused)
                    socket.abort()
                    continue
                }
                let connection = waiting.add(socket, from: address, initial: [], at: now)
                let mark = UInt64(connection.address.connection)
                if (try? readiness.add(socket.descriptor, .readable, mark: mark)) == nil {
                    close(connection, .refused, in: &waiting)
                }
            }
        }
    }

    private func read(
        _ connection: TCPConnection, _ buffer: UnsafeMutableRawBufferPointer, in waiting: inout TCPTable,
        _ readiness: ReadinessSet
    ) {
        switch connection.socket.read(into: buffer) {
        case .blocked: return
        case .ended: return close(connection, .byPeer, in: &waiting)
        case .bytes(let count): connection.initial += buffer[..<count]
        }
        let bytes = connection.initial
        guard bytes.count >= StreamFrame.headerLength else { return }
        let end = StreamFrame.headerLength + (Int(bytes[0]) << 8 | Int(bytes[1]))
        guard end <= buffer.count else { return close(connection, .malformed, in: &waiting) }
        guard bytes.count >= end else { return }
        let worker = bytes.withUnsafeBytes {
            WorkerEngine.worker(ofCheck: UnsafeRawBufferPointer(rebasing: $0[StreamFrame.headerLength..<end]))
        }
        guard let worker else { return close(connection, .withoutCheck, in: &waiting) }
        waiting.remove(connection)
        var address = connection.address
        address.connection = 0
        readiness.remove(connection.socket.descriptor)
        let accepted = AcceptedConnection(
            descriptor: connection.socket.surrender(), address: address, bytes: bytes)
        guard !handOver(accepted, worker) else { return }
        TCPSocket(descriptor: accepted.descriptor).abort()
        count(.refused)
    }

    private func close(_ connection: TCPConnection, _ reason: TCPConnectionEnd, in waiting: inout TCPTable) {
        waiting.remove(connection)
        connection.close(reason)
        connection.socket.abort()
        count(reason)
    }

    private func count(_ reason: TCPConnectionEnd) {
        counted.withLock {
            $0.accepted &+= 1
            $0.count(reason)
        }
    }
}
