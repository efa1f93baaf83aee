import MediaControl
import NetworkIO
import Primitives
import RTP

/// A worker's TCP connections (ICE-TCP, RFC 6544; passive: clients open them).
///
/// To the engine, each is an address like any other. Received bytes are split into packets that the worker's turn consumes one by one; packets that the engine
/// sends to such an address are written with framing. Everything is bounded: connections (`TCPTable`), bytes read per turn, and what a slow reader leaves
/// unread.
/// ```text
/// listener ──┐                           ┌─> nextPacket() ──> engine
/// acceptor ──┴─> TCPTable ── connection ─┤
///                                        └<─ send(batch) <── engine      the kernel's 32 kB, then the backlog; then video is held
/// ```
final class TCPLane {
    /// A change that the engine must know.
    enum Change {
        /// The connection has ended.
        case ended(SocketAddress)
        /// Its reader is slow: no more video.
        case held(SocketAddress)
        /// It has caught up.
        case caughtUp(SocketAddress)
    }

    /// Bytes per read: a dozen packets, as many as one wake-up of a publisher sends.
    private static let readBytes = 16 << 10
    /// Connections served per turn: with `readBytes` of each, some 450 packets, as many as over UDP.
    private static let readyPerTurn = 32
    /// Connections accepted per turn, 10 us each.
    private static let acceptsPerTurn = 16
    /// A check follows the connection at once; one or two lost packets are repeated after 1 and 3 s.
    private static let checkDeadline = TimeSpan.seconds(10)
    /// The packets within which a valid check must arrive: a client may send checks for another pair's peer first, or its DTLS.
    private static let packetsForCheck = 4
    /// Unsent bytes that the kernel may hold: 50 ms of 5 Mbit/s.
    private static let unsentBytes = 32 << 10
    /// Sent but unacknowledged bytes, too: 20 Mbit/s over 100 ms.
    private static let sendBuffer = 256 << 10
    /// The memory of all backlogs of a worker: 256 slow readers at once.
    private static let backlogBudget = 64 << 20
    /// How often unused connections are closed.
    private static let sweepInterval = TimeSpan.seconds(1)
    private static let listenerMark: UInt64 = 0

    private let readiness: ReadinessSet
    private let listener: TCPSocket?
    private var isListening = true
    private var table: TCPTable
    private var ready: [ReadinessSet.Ready] = []
    private var nextReady = 0
    /// Connections from the acceptor of a shared port, with the bytes that it has read.
    private var adopted: [TCPConnection] = []
    /// The connections whose packets are being returned.
    private var current: TCPConnection?
    private var readCount = 0
    private var position = 0
    private let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: TCPLane.readBytes, alignment: 64)
    private let writeBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 64)
    /// To be closed.
    private var closing: [TCPConnection] = []
    private(set) var changes: [Change] = []
    private var backlogs = 0
    private var nextSweep = MonotonicTime.distantFuture
    private var statistics = TCPStatistics()
    private(set) var drops = DropCounters()

    /// Listens with `listener`; nil if connections come only from a shared port.
    init(listener: TCPSocket?, maximumConnections: Int) throws(SystemError) {
        readiness = try ReadinessSet()
        self.listener = listener
        table = TCPTable(limits: .init(connections: min(maximumConnections, Int(UInt16.max))))
        if let listener { try readiness.add(listener.descriptor, .readable, mark: Self.listenerMark) }
    }

    deinit {
        readBuffer.deallocate()
        writeBuffer.deallocate()
    }

    /// For the worker's poller.
    var descriptor: Int32 { readiness.descriptor }

    /// When the next turn must happen at the latest.
    var nextDeadline: MonotonicTime { hasWork ? .zero : nextSweep }

    /// There is work that no descriptor reports.
    var hasWork: Bool { !changes.isEmpty || !adopted.isEmpty || !closing.isEmpty }

    /// Counters and gauges.
    var report: TCPStatistics {
        var report = statistics
        report.open = table.count
        for connection in table.connections { report.backlogBytes += connection.backlog.count }
        return report
    }

    // MARK: - Accepting

    /// Takes over a connection whose first bytes the acceptor of a shared port has read.
    func adopt(_ socket: TCPSocket, from address: SocketAddress, initial: [UInt8], at now: MonotonicTime) {
        if let connection = add(socket, from: address, initial: initial, at: now) { adopted.append(connection) }
    }

    private func accept(at now: MonotonicTime) {
        guard let listener else { return }
        for _ in 0..<Self.acceptsPerTurn {
            switch listener.accept() {
            case .nothing: return
            case .connection(let socket, let address): _ = add(socket, from: address, initial: [], at: now)
            case .exhausted:
                // Until the next sweep: the connection stays in the kernel's queue and would wake the loop again and again.
                readiness.change(listener.descriptor, [], mark: Self.listenerMark)
                isListening = false
                nextSweep = min(nextSweep, now + Self.sweepInterval)
                return
            }
        }
    }

    private func add(
        _ socket: TCPSocket, from address: SocketAddress, initial: [UInt8], at now: MonotonicTime
    ) -> TCPConnection? {
        statistics.accepted &+= 1
        if let displaced = table.displaced() {
            // Nothing of it is in use: connections are accepted between two packets.
            displaced.close(.displaced)
            finish(displaced)
        }
        guard table.allows(address) else {
            statistics.count(.refused)
            socket.abort()
            return nil
        }
        socket.setSendBuffer(bytes: Self.sendBuffer)
        socket.limitUnsent(bytes: Self.unsentBytes)
        let connection = table.add(socket, from: address, initial: initial, at: now)
        do throws(SystemError) {
            try readiness.add(socket.descriptor, .readable, mark: UInt64(connection.address.connection))
        } catch {
            close(connection, .refused)
            return nil
        }
        nextSweep = min(nextSweep, now + Self.sweepInterval)
        return connection
    }

    // MARK: - Receiving

    /// Determines which connections are ready. Then call `nextPacket` until there is none.
    func look(at now: MonotonicTime) {
        readiness.wait(into: &ready, until: now, now: now, limit: Self.readyPerTurn)
        nextReady = 0
    }

    /// The next packet; valid, and writable, until the next call. After it was consumed, call `judge` if `awaitsCheck`.
    func nextPacket(at now: MonotonicTime) -> (bytes: UnsafeMutableRawBufferPointer, source: SocketAddress)? {
        while true {
            guard let connection = current else {
                guard beginNext(at: now) else { return nil }
                continue
            }
            guard connection.end == nil else {
                current = nil
                continue
            }
            let bytes = UnsafeMutableRawBufferPointer(rebasing: readBuffer[0..<readCount])
            switch connection.reader.next(in: bytes, from: &position) {
            case .packet(let packet): return (packet, connection.address)
            case .needsMore: current = nil
            case .oversize: close(connection, .malformed)
            }
        }
    }

    /// Whether the packet came from a connection without a valid check.
    var awaitsCheck: Bool { current.map { !$0.isKnown } ?? false }

    /// The engine has processed the packet; `isKnown`: the connection's address belongs to a peer now.
    func judge(isKnown: Bool) {
        guard let current else { return }
        if isKnown { return table.noteCheck(current) }
        current.packetsBeforeCheck += 1
        if current.packetsBeforeCheck >= Self.packetsForCheck { close(current, .withoutCheck) }
    }

    /// Reads from the next connection; false if all that are ready were served.
    private func beginNext(at now: MonotonicTime) -> Bool {
        if let connection = adopted.popLast() {
            begin(connection, connection.initial)
            connection.initial = []
            return true
        }
        while nextReady < ready.count {
            let entry = ready[nextReady]
            nextReady += 1
            if entry.mark == Self.listenerMark {
                accept(at: now)
                continue
            }
            guard let connection = table[UInt16(truncatingIfNeeded: entry.mark)], connection.end == nil else {
                continue
            }
            if entry.interest.contains(.writable) { drain(connection) }
            guard entry.interest.contains(.readable) || entry.isBroken else { continue }
            switch connection.socket.read(into: readBuffer) {
            case .bytes(let count):
                (current, readCount, position) = (connection, count, 0)
                return true
            case .blocked: continue
            case .ended: close(connection, .byPeer)
            }
        }
        return false
    }

    private func begin(_ connection: TCPConnection, _ bytes: [UInt8]) {
        let count = min(bytes.count, readBuffer.count)
        readBuffer.copyBytes(from: bytes[..<count])
        (current, readCount, position) = (connection, count, 0)
    }

    // MARK: - Sending

    /// Sends the datagrams of `batch` that go to connections; adjacent ones for one connection in one call.
    func send(_ batch: borrowing OutboundBatch, at now: MonotonicTime) {
        let entries = batch.entries
        var next = 0
        while next < entries.count {
            let destination = entries[next].destination
            guard destination.isTCP else {
                next += 1
                continue
            }
            var end = next + 1
            while end < entries.count, entries[end].destination == destination { end += 1 }
            if let connection = table[destination.connection], connection.address == destination, connection.end == nil
            {
                send(batch, next..<end, to: connection, at: now)
            } else {
                drops[.connectionEnded] &+= UInt64(end - next)
            }
            next = end
        }
    }

    private func send(
        _ batch: borrowing OutboundBatch, _ range: Range<Int>, to connection: TCPConnection, at now: MonotonicTime
    ) {
        var index = range.lowerBound
        while index < range.upperBound {
            guard connection.backlog.isEmpty else {
                return queue(batch, index..<range.upperBound, to: connection, at: now)
            }
            let first = index
            var used = 0
            while index < range.upperBound,
                used + StreamFrame.headerLength + batch.entries[index].length <= writeBuffer.count
            {
                used += frame(batch, index, at: used)
                index += 1
            }
            let mayWait = (backlogs + 1) * TCPBacklog.capacity <= Self.backlogBudget
            let outcome = connection.send(
                UnsafeRawBufferPointer(rebasing: writeBuffer[0..<used]), count: index - first, mayWait: mayWait, at: now
            )
            note(outcome, of: connection, as: .connectionEnded)
        }
    }

    /// Adds datagrams to the backlog, each completely or not at all.
    private func queue(
        _ batch: borrowing OutboundBatch, _ range: Range<Int>, to connection: TCPConnection, at now: MonotonicTime
    ) {
        for index in range {
            let used = frame(batch, index, at: 0)
            let outcome = connection.queue(
                UnsafeRawBufferPointer(rebasing: writeBuffer[0..<used]),
                isMedia: batch.entries[index].content != .other,
                at: now)
            note(outcome, of: connection, as: .backlogFull)
        }
    }

    /// Writes a datagram with its header into the buffer; returns the length of both.
    @inline(__always)
    private func frame(_ batch: borrowing OutboundBatch, _ index: Int, at start: Int) -> Int {
        let entry = batch.entries[index]
        let place = UnsafeMutableRawBufferPointer(rebasing: writeBuffer[start...])
        StreamFrame.writeHeader(entry.length, into: place)
        UnsafeMutableRawBufferPointer(rebasing: place[StreamFrame.headerLength...])
            .copyMemory(from: UnsafeRawBufferPointer(batch.bytes(of: entry)))
        return StreamFrame.headerLength + entry.length
    }

    private func note(_ outcome: TCPConnection.Outcome, of connection: TCPConnection, as reason: DropReason) {
        drops[reason] &+= UInt64(outcome.dropped)
        if outcome.isHeldNow {
            statistics.holds &+= 1
            changes.append(.held(connection.address))
        }
        if outcome.waits {
            backlogs += 1
            watch(connection, [.readable, .writable])
        }
        // Not at once: its packets may be in use.
        if connection.end != nil { closing.append(connection) }
    }

    private func drain(_ connection: TCPConnection) {
        guard !connection.backlog.isEmpty else { return }
        if connection.drain() { changes.append(.caughtUp(connection.address)) }
        if connection.backlog.isEmpty {
            backlogs -= 1
            watch(connection, .readable)
        }
        if connection.end != nil { closing.append(connection) }
    }

    private func watch(_ connection: TCPConnection, _ interest: ReadinessSet.Interest) {
        readiness.change(connection.socket.descriptor, interest, mark: UInt64(connection.address.connection))
    }

    // MARK: - Closing

    /// Closes connections that have ended, and returns the changes that the engine must know.
    func settle() -> [Change] {
        for connection in closing { finish(connection) }
        closing.removeAll(keepingCapacity: true)
        guard !changes.isEmpty else { return [] }
        defer { changes = [] }
        return changes
    }

    /// Closes connections that have sent no valid check in time, and those whose address no longer belongs to a peer.
    func sweep(at now: MonotonicTime, isKnown: (SocketAddress) -> Bool) {
        guard now >= nextSweep else { return }
        if !isListening, let listener {
            readiness.change(listener.descriptor, .readable, mark: Self.listenerMark)
            isListening = true
        }
        for connection in table.connections where connection.end == nil {
            if isKnown(connection.address) {
                // A check may have been accepted after its packet, for a peer whose description was still missing.
                table.noteCheck(connection)
            } else if connection.isKnown {
                close(connection, .unused)
            } else if now - connection.acceptedAt >= Self.checkDeadline {
                close(connection, .tooSlow)
            }
        }
        nextSweep = table.count > 0 ? now + Self.sweepInterval : .distantFuture
    }

    private func close(_ connection: TCPConnection, _ reason: TCPConnectionEnd) {
        connection.close(reason)
        closing.append(connection)
    }

    private func finish(_ connection: TCPConnection) {
        guard let end = connection.end, table[connection.address.connection] === connection else { return }
        statistics.count(end)
        table.remove(connection)
        if connection.isKnown { changes.append(.ended(connection.address)) }
        if !connection.backlog.isEmpty { backlogs -= 1 }
        // Sent bytes still reach a peer that left properly; other connections release the kernel's memory.
        if end == .unused, connection.backlog.isEmpty {
            connection.socket.close()
        } else {
            connection.socket.abort()
        }
    }
}
