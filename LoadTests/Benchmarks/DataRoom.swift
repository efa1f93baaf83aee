import Cryptography
import DataChannels
import Measuring
import MediaControl
import MediaEngine
import Primitives
import Simulation

/// An engine whose peers exchange messages in virtual time. Only the engine's processor time counts: for receiving datagrams, carrying out commands of the
/// control plane, and writing. The clients acknowledge as real ones do.
final class DataRoom {
    private static let server = SocketAddress(ipv4: 0x7f00_0001, port: 7_900)
    /// Clients differ in their ports only: the port of a datagram is the index of its client.
    private static let host: UInt32 = 0x0a00_0001
    private static let firstPort: UInt16 = 40_000
    private static let labels = (reliable: "reliable", lossy: "lossy")
    private let engine: WorkerEngine
    private var now = MonotonicTime(milliseconds: 1_000)
    private var clients: [ClientTransport] = []
    private var batch = OutboundBatch(datagrams: 4_096, bytes: 4_096 * 1_300)
    private let wire = ClientWire(to: DataRoom.server, datagrams: 1_024)
    private let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: 2_048, alignment: 64)
    /// Nanoseconds that the engine took since `resetCost`.
    private(set) var cost: Int64 = 0
    private(set) var delivered = 0

    /// `count` peers with a reliable and a lossy channel each.
    init(peers count: Int) throws {
        let certificate = try Certificate.selfSigned()
        let context = try ClientContext(certificate: try Certificate.selfSigned(), profiles: "SRTP_AEAD_AES_128_GCM")
        var configuration = EngineConfiguration()
        configuration.consentTimeout = .seconds(1_000_000)
        configuration.data.messagesPerSecond = 1_000_000
        configuration.data.bytesPerSecond = 1_000_000_000
        engine = try WorkerEngine(configuration: configuration, certificate: certificate, seed: 7)
        engine.apply(.addRoom(Descriptions.room), at: now, into: &batch)
        for number in 1...UInt64(count) { add(number, context, certificate) }
        run(for: .seconds(2))
    }

    deinit { slot.deallocate() }

    private func add(_ number: UInt64, _ context: ClientContext, _ certificate: Certificate) {
        let made = EngineClient(
            PeerID(number), in: Descriptions.room, context: context, certificate: certificate, server: Self.server,
            at: SocketAddress(ipv4: Self.host, port: Self.firstPort + UInt16(number - 1)))
        let client = made.transport
        engine.apply(.addPeer(made.description), at: now, into: &batch)
        engine.apply(
            .acceptData(PeerID(number), DataTransport(port: 5_000, longestMessage: 65_536)), at: now, into: &batch)
        client.useData(at: now)
        let sent = wire.datagrams {
            client.withData(at: now, into: &$0) {
                _ = $0.open(DataChannelTerms(label: Self.labels.reliable), at: now)
                let lossy = DataChannelTerms(
                    label: Self.labels.lossy, isOrdered: false, reliability: .retransmissions(0))
                _ = $0.open(lossy, at: now)
            }
        }
        precondition(sent.isEmpty, "channels open once the client is connected")
        clients.append(client)
        run(for: .milliseconds(100))
    }

    func resetCost() { (cost, delivered) = (0, 0) }

    /// The first peer sends `count` messages of `length` bytes, `spacing` apart, and everybody else receives them.
    func send(_ count: Int, length: Int, isReliable: Bool, spacing: TimeSpan) {
        let label = isReliable ? Self.labels.reliable : Self.labels.lossy
        let payload = DataPayload(isText: false, bytes: [UInt8](repeating: 7, count: length))
        for _ in 0..<count {
            let sent = wire.datagrams {
                clients[0].withData(at: now, into: &$0) { _ = $0.send(payload, on: label, at: now) }
            }
            deliver(sent, from: 0)
            run(for: spacing)
        }
        run(for: .seconds(1))
    }

    private func run(for time: TimeSpan) {
        let end = now + time
        while true {
            var next = min(engine.nextDeadline, end)
            for client in clients { next = min(next, client.nextDeadline) }
            now = max(now, next)
            for index in clients.indices where clients[index].nextDeadline <= now {
                deliver(wire.datagrams { clients[index].advance(to: now, into: &$0) }, from: index)
            }
            endTurn()
            if now >= end { return }
        }
    }

    /// Relays what arrived, as a room that permits everything does.
    private func endTurn() {
        let start = ProcessorTime.thread
        if engine.nextDeadline <= now { while engine.advance(to: now, into: &batch) == .needsFlush { flush() } }
        for event in engine.takeEvents() {
            guard case .dataReceived(let sender, let label, let payload) = event else { continue }
            let receivers = clients.indices.map { PeerID(UInt64($0 + 1)) }.filter { $0 != sender }
                .map { DataReceiver(peer: $0, label: label) }
            let source = label == Self.labels.reliable ? sender : nil
            engine.apply(
                .sendData(DataDelivery(payload: payload, receivers: receivers, source: source)), at: now, into: &batch)
            engine.apply(.releaseData(sender, cost: payload.cost), at: now, into: &batch)
        }
        while engine.endTurn(at: now, into: &batch) == .needsFlush { flush() }
        cost += Int64(ProcessorTime.thread - start)
        flush()
    }

    /// Carries datagrams to the clients; the engine reads their answers in the next turn.
    private func flush() {
        let answers = wire.carry(batch, at: now) { address in
            let index = Int(address.port) - Int(Self.firstPort)
            return clients.indices.contains(index) ? (index, clients[index]) : nil
        } note: { index, _, _ in
            for event in clients[index].data?.takeEvents() ?? [] { if case .message = event { delivered += 1 } }
        }
        batch.removeAll()
        for (index, bytes) in answers { pass(bytes, from: index) }
    }

    private func deliver(_ datagrams: [[UInt8]], from index: Int) {
        for bytes in datagrams { pass(bytes, from: index) }
        endTurn()
    }

    private func pass(_ bytes: [UInt8], from index: Int) {
        slot.copyBytes(from: bytes)
        let start = ProcessorTime.thread
        engine.receive(
            UnsafeMutableRawBufferPointer(rebasing: slot[..<bytes.count]),
            from: SocketAddress(ipv4: Self.host, port: Self.firstPort + UInt16(index)), at: now, into: &batch)
        cost += Int64(ProcessorTime.thread - start)
    }
}
