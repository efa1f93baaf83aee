import MediaControl
import MediaEngine
public import Primitives

extension World {
    /// Does something after `delay`.
    public func plan(in delay: TimeSpan, _ body: @escaping () -> Void) { plan(at: now + delay, body) }

    /// Does something at `time`.
    public func plan(at time: MonotonicTime, _ body: @escaping () -> Void) { agenda.plan(.script(body), at: time) }

    /// Performs an action now and after every `interval`, `count` times in all, with the number of the turn.
    public func `repeat`(every interval: TimeSpan, count: Int, _ body: @escaping (Int) -> Void) {
        for turn in 0..<count { plan(in: interval * Int64(turn)) { body(turn) } }
    }

    /// Lets time pass.
    public func run(for interval: TimeSpan) { run(until: now + interval) }

    /// Lets time pass until `isEnough`, checked every 10 ms, for at most `limit`; returns whether it became true.
    public func run(atMost limit: TimeSpan, until isEnough: () -> Bool) -> Bool {
        let end = now + limit
        while !isEnough() {
            guard now < end else { return false }
            run(until: min(end, now + .milliseconds(10)))
        }
        return true
    }

    /// Lets time pass up to and including `end`, from event to event; all events of one moment are one turn of the workers.
    public func run(until end: MonotonicTime) {
        finishTurns()
        while true {
            var next = agenda.nextTime ?? .distantFuture
            for worker in workers { next = min(next, worker.engine.nextDeadline) }
            guard next <= end else { break }
            now = max(now, next)
            while let due = agenda.next(until: now) { handle(due.event) }
            finishTurns()
        }
        now = end
    }

    private func finishTurns() {
        for worker in workers where worker.hasWork(at: now) {
            worker.endTurn(at: now) { carryDown($0) }
            for event in worker.engine.consumeEvents() {
                events.append((now, event))
                if case .peerMeasured(let peer, var last) = event {
                    // OpenSSL signs handshakes with its own randomness, and the length of such a signature varies by a byte.
                    (last.bytesReceived, last.bytesSent) = (0, 0)
                    digest.add("\(MediaEvent.peerMeasured(peer, last))", at: now)
                } else {
                    digest.add("\(event)", at: now)
                }
            }
        }
    }

    private func handle(_ happening: Happening) {
        switch happening {
        case .up(let worker, let source, let bytes):
            slot.copyBytes(from: bytes)
            let datagram = UnsafeMutableRawBufferPointer(rebasing: slot[..<bytes.count])
            workers[worker].receive(datagram, from: source, at: now) { carryDown($0) }
        case .down(let index, let destination, let bytes, let isClear):
            guard let client = clientTable[index], client.address == destination else {
                undeliverable += 1
                return
            }
            slot.copyBytes(from: bytes)
            client.receive(UnsafeMutableRawBufferPointer(rebasing: slot[..<bytes.count]), isClear: isClear)
        case .wake(let index): clientTable[index]?.wake()
        case .script(let body): body()
        }
    }

    // MARK: - Links

    /// Sends the datagrams of a worker down its clients' links.
    func carryDown(_ batch: borrowing OutboundBatch) {
        for entry in batch.entries { carryDown(batch.bytes(of: entry), to: entry.destination) }
    }

    private func carryDown(_ bytes: UnsafeMutableRawBufferPointer, to destination: SocketAddress) {
        guard let index = addresses[destination], let client = clientTable[index] else {
            undeliverable += 1
            return
        }
        // RTP is decrypted here, so that packets that will be lost are checked, too; it continues in the clear.
        let clear = client.inspect(UnsafeRawBufferPointer(bytes))
        guard client.address == destination else {
            undeliverable += 1
            return
        }
        let times = arrivals(of: Self.chargedLength(UnsafeRawBufferPointer(bytes)), at: client)
        guard !times.isEmpty else { return }
        let datagram = Array(clear ?? bytes)
        for time in times {
            agenda.plan(
                .down(client: index, destination: destination, bytes: datagram, isClear: clear != nil), at: time)
        }
    }

    private func arrivals(of length: Int, at client: VirtualClient) -> [MonotonicTime] {
        guard let bottleneck = client.bottleneck else {
            return client.downlink.arrivals(of: length, at: now, random: &client.random)
        }
        guard let leaves = bottleneck.pass(length, at: now, random: &client.random) else { return [] }
        return client.downlink.arrivals(of: length, at: now, behind: leaves - now, random: &client.random)
    }

    /// Sends a datagram of a client up its link.
    func carryUp(_ bytes: UnsafeRawBufferPointer, from client: VirtualClient) {
        for time in client.uplink.arrivals(of: Self.chargedLength(bytes), at: now, random: &client.random) {
            agenda.plan(.up(worker: client.worker, source: client.address, bytes: Array(bytes)), at: time)
        }
    }

    /// Delivers raw bytes to a worker, as from an unknown source.
    public func inject(_ bytes: [UInt8], from source: SocketAddress, to worker: Int = 0) {
        agenda.plan(.up(worker: worker, source: source, bytes: bytes), at: now)
    }

    /// The length that counts at a bottleneck. Handshake datagrams differ by some bytes from run to run, because the length of an ECDSA signature
    /// does; they all count with the same length, so that the same seed gives the same times.
    private static func chargedLength(_ bytes: UnsafeRawBufferPointer) -> Int {
        DatagramKind(firstByte: bytes[0]) == .dtls ? 1_200 : bytes.count
    }
}
