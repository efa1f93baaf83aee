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
    /// Clients differ in their ports only: the port of a datagram is the index of its client.
    private static let host: UInt32 = 0x0a00_0001
    private static let firstPort: UInt16 = 40_000
    private static let labels = (reliable: "reliable", lossy: "lossy")
    private let driver: EngineDriver
    private var now = MonotonicTime(milliseconds: 1_000)
    private var clients: [ClientTransport] = []
    private let wire = ClientWire(to: EngineDriver.onlyAddress, datagrams: 1_024)
    /// What clients have answered: the engine reads it in the next turn.
    private var answers: [(client: Int, bytes: [UInt8])] = []
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
        driver = EngineDriver(
            try WorkerEngine(configuration: configuration, certificate: certificate, seed: 7),
            datagrams: 4_096, bytes: 4_096 * 1_300)
        apply(.addRoom(Descriptions.room))
        for number in 1...UInt64(count) { add(number, context, certificate) }
        run(for: .seconds(2))
    }

    deinit { slot.deallocate() }

    private func add(_ number: UInt64, _ context: ClientContext, _ certificate: Certificate) {
        let made = EngineClient(
            PeerID(number), in: Descriptions.room, context: context, certificate: certificate, server: driver.address,
            at: Self.address(Int(number - 1)))
        let client = made.transport
        apply(.addPeer(made.description))
        apply(.acceptData(PeerID(number), DataTransport(port: 5_000, longestMessage: 65_536)))
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
            var next = min(driver.engine.nextDeadline, end)
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
        counted {
            for event in driver.engine.consumeEvents() {
                guard case .dataReceived(let sender, let label, let payload) = event else { continue }
                let receivers = clients.indices.map { PeerID(UInt64($0 + 1)) }.filter { $0 != sender }
                    .map { DataReceiver(peer: $0, label: label) }
                let source = label == Self.labels.reliable ? sender : nil
                apply(.sendData(DataDelivery(payload: payload, receivers: receivers, source: source)))
                apply(.releaseData(sender, cost: payload.cost))
            }
            driver.endTurn(at: now) { carry($0) }
        }
        let waiting = answers
        answers = []
        for (index, bytes) in waiting { pass(bytes, from: index) }
    }

    private func apply(_ command: MediaCommand) { driver.apply(command, at: now) { carry($0) } }

    private func deliver(_ datagrams: [[UInt8]], from index: Int) {
        for bytes in datagrams { pass(bytes, from: index) }
        endTurn()
    }

    private func pass(_ bytes: [UInt8], from index: Int) {
        slot.copyBytes(from: bytes)
        let datagram = UnsafeMutableRawBufferPointer(rebasing: slot[..<bytes.count])
        counted { driver.receive(datagram, from: Self.address(index), at: now) { carry($0) } }
    }

    /// Carries datagrams to the clients, whose time does not count.
    private func carry(_ batch: borrowing OutboundBatch) {
        let start = ProcessorTime.thread
        answers += wire.carry(batch, at: now) { address in
            let index = Int(address.port) - Int(Self.firstPort)
            return clients.indices.contains(index) ? (index, clients[index]) : nil
        } note: { index, _, _ in
            for event in clients[index].data?.consumeEvents() ?? [] { if case .message = event { delivered += 1 } }
        }
        cost -= Int64(ProcessorTime.thread - start)
    }

    private func counted(_ work: () -> Void) {
        let start = ProcessorTime.thread
        work()
        cost += Int64(ProcessorTime.thread - start)
    }

    private static func address(_ index: Int) -> SocketAddress {
        SocketAddress(ipv4: host, port: firstPort + UInt16(index))
    }
}
