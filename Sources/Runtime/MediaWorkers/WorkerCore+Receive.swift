import ICE
import MediaEngine
import NetworkIO
import Primitives

// Step 1 of a packet's path: several datagrams are fetched at a time, so that the memory of the later ones' senders is prefetched while the
// first is processed.

extension WorkerCore {
    /// Passes datagrams that wait at one of the sockets to the engine; returns the number of runs. `isLate`: they arrived while the process was
    /// stopped.
    @discardableResult
    mutating func receive(isFeedback: Bool, isLate: Bool, at now: MonotonicTime) -> Int {
        var fetched = 0
        while fetched < Self.receivesPerTurn {
            let runs = isFeedback ? feedback.receiveSome() : socket.received(socket.receiveSome())
            fetched += runs.count
            for index in runs.indices {
                prefetchSenders(of: runs, behind: index)
                let run = runs[index]
                guard !isLate else {
                    receiveLate(run, at: now)
                    continue
                }
                for part in 0..<run.count where !postpone(run[part], from: run.source) {
                    if let probe, probe.receive(UnsafeRawBufferPointer(run[part]), from: run.source) { continue }
                    makeRoom()
                    engine.receive(run[part], from: run.source, at: now, into: &batch)
                }
            }
            // The kernel had no more.
            if runs.count < UDPSocket.receiveSlots {
                if !isFeedback { standstill.foundNoMore(at: now) }
                break
            }
        }
        return fetched
    }

    private mutating func receiveLate(_ run: ReceivedRun, at now: MonotonicTime) {
        for part in 0..<run.count where !postpone(run[part], from: run.source) {
            makeRoom()
            engine.receiveLate(run[part], from: run.source, at: now, into: &batch)
        }
    }

    /// Prefetches the memory of the senders of the next runs, each one pointer further along than the run after it.
    @inline(__always)
    private func prefetchSenders(of runs: UnsafeBufferPointer<ReceivedRun>, behind index: Int) {
        let count = runs.count, steps = WorkerEngine.prefetchSteps
        guard count > 1 else { return }
        if index == 0 { for ahead in 1..<min(steps, count) { owners[ahead] = engine.owner(of: runs[ahead].source) } }
        for step in 1..<steps where index &+ steps &- step < count {
            engine.prefetch(step, of: owners[index &+ steps &- step])
        }
        if index &+ steps < count { owners[index &+ steps] = engine.owner(of: runs[index &+ steps].source) }
    }

    /// Whether a datagram belongs to a handshake that waits until this turn's media has been sent. Those of unknown sources never wait: they are dropped
    /// unread, and must not displace expected ones. Messages of data channels do not wait either, unless their peer's handshake does: DTLS drops those that
    /// come 64 records late (RFC 6347 section 4.1.2.6), and some thousand come each second.
    mutating func postpone(_ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress) -> Bool {
        guard HandshakeQueue.isHandshake(datagram), engine.knows(source) else { return false }
        if HandshakeQueue.isApplicationData(datagram), !handshakes.holds(source) { return false }
        if handshakes.count == 0, handshakesDone < HandshakeQueue.perTurn {
            handshakesDone += 1
            return false
        }
        return handshakes.push(datagram, from: source)
    }
}
