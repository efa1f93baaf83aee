import Cryptography
import DataChannels
import MediaControl
import MediaEngine
import Primitives
import RTP
import Simulation

/// One RTP packet that a client received, clear, with what its header says.
struct ReceivedPacket {
    var time: MonotonicTime
    var bytes: [UInt8]
    var header: RTPHeader

    var payload: ArraySlice<UInt8> { bytes[header.payloadOffset..<(header.payloadOffset + header.payloadLength)] }

    /// The value of the header extension with this id.
    func element(_ id: UInt8) -> [UInt8]? {
        bytes.withUnsafeBytes { raw in
            guard header.extensionLength > 0 else { return nil }
            var elements = RTPHeaderExtensions(header)
            while let element = elements.next(in: raw.bytes) {
                guard element.id == id else { continue }
                return Array(bytes[element.offset..<(element.offset + element.length)])
            }
            return nil
        }
    }
}

/// A client with an address of its own.
final class TestClient {
    let id: PeerID
    var address: SocketAddress
    let transport: ClientTransport
    var rtp: [ReceivedPacket] = []
    var rtcp: [(time: MonotonicTime, bytes: [UInt8])] = []
    /// Datagrams and bytes that came, whatever they were.
    var datagrams = 0
    var bytes = 0
    /// Packets to this client that are lost: chosen by the clear packet's place among all RTP packets.
    var losesRTP: (Int) -> Bool = { _ in false }
    private(set) var rtpCount = 0

    init(_ client: EngineClient) {
        id = client.description.id
        address = client.address
        transport = client.transport
    }

    func receive(_ slot: UnsafeMutableRawBufferPointer, _ received: ClientReceived, at now: MonotonicTime) {
        switch received {
        case .rtp(let length):
            rtpCount += 1
            guard !losesRTP(rtpCount - 1) else { return }
            let bytes = Array(slot[..<length])
            guard let header = bytes.withUnsafeBytes({ RTPHeader($0.bytes) }) else { preconditionFailure("bad RTP") }
            rtp.append(ReceivedPacket(time: now, bytes: bytes, header: header))
        case .rtcp(let length): rtcp.append((now, Array(slot[..<length])))
        case .nothing, .dropped: break
        }
    }

    /// The RTCP packets that came.
    var feedback: [(time: MonotonicTime, packet: RTCPPacket)] {
        rtcp.flatMap { item in
            item.bytes.withUnsafeBytes { raw in
                var list: [(time: MonotonicTime, packet: RTCPPacket)] = []
                guard var compound = RTCPCompound(raw.bytes) else { preconditionFailure("bad RTCP") }
                while let packet = compound.next(in: raw.bytes) { list.append((item.time, packet)) }
                precondition(!compound.isMalformed, "malformed RTCP")
                return list
            }
        }
    }

    /// Moments at which it was asked for a keyframe.
    var keyframeRequests: [MonotonicTime] {
        feedback.compactMap { if case .pictureLoss = $0.packet { $0.time } else { nil } }
    }
}

/// An engine and its clients in virtual time, with a network that delivers at once.
final class EngineHarness {
    private let driver: EngineDriver
    let certificate: Certificate
    let clientContext: ClientContext
    private(set) var now = MonotonicTime(milliseconds: 1_000)
    var clients: [TestClient] = []
    var events: [MediaEvent] = []
    private var planned = EventQueue<() -> Void>()
    private let wire: ClientWire
    private let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 16)
    private var nextPeer: UInt64 = 1

    init(
        configuration: EngineConfiguration = .init(), batchDatagrams: Int = 512, profiles: String? = nil
    ) throws {
        certificate = try Certificate.selfSigned()
        driver = EngineDriver(
            try WorkerEngine(configuration: configuration, certificate: certificate, seed: 7),
            datagrams: batchDatagrams, bytes: max(batchDatagrams * 1_500, 32_768))
        wire = ClientWire(to: driver.address)
        let own = try Certificate.selfSigned()
        clientContext =
            try profiles.map { try ClientContext(certificate: own, profiles: $0) } ?? ClientContext(certificate: own)
    }

    deinit { slot.deallocate() }

    var engine: WorkerEngine { driver.engine }

    /// Flushes that were needed because the batch was full.
    var flushes: Int { driver.flushes }

    // MARK: - Control

    func apply(_ command: MediaCommand) {
        driver.apply(command, at: now) { carry($0) }
        endTurn()
    }

    /// Adds a peer and its client, at a host of its own unless `address` is given; `connect` makes it connected before the call returns.
    func addClient(
        room: RoomID, profile: PeerProfile = .full, behaviour: ClientBehaviour = .init(),
        at address: SocketAddress? = nil, connect: Bool = true
    ) -> TestClient {
        let id = PeerID(nextPeer)
        nextPeer += 1
        let made = EngineClient(
            id, in: room, profile: profile, behaviour: behaviour, context: clientContext, certificate: certificate,
            server: driver.address, at: address)
        let client = TestClient(made)
        clients.append(client)
        apply(.addPeer(made.description))
        if connect {
            for _ in 0..<400 where !events.contains(.peerConnected(id)) { run(for: .milliseconds(5)) }
            precondition(events.contains(.peerConnected(id)), "a client did not connect")
        }
        return client
    }

    // MARK: - Media

    /// Sends a clear RTP packet from `client` now.
    func send(_ packet: [UInt8], from client: TestClient) {
        slot.copyBytes(from: packet)
        guard let length = client.transport.protectRTP(slot, length: packet.count) else {
            preconditionFailure("not protected")
        }
        receive(UnsafeMutableRawBufferPointer(rebasing: slot[..<length]), from: client.address)
    }

    /// Sends one RTCP compound from `client` now.
    func sendRTCP(from client: TestClient, _ build: (inout RTCPWriter) -> Void) {
        var writer = RTCPWriter(UnsafeMutableRawBufferPointer(rebasing: slot[..<1_200]))
        build(&writer)
        guard let length = client.transport.protectRTCP(slot, length: writer.length) else {
            preconditionFailure("not protected")
        }
        receive(UnsafeMutableRawBufferPointer(rebasing: slot[..<length]), from: client.address)
    }

    /// Sends RTCP as it stands from `client` now.
    func sendRTCP(_ bytes: [UInt8], from client: TestClient) {
        slot.copyBytes(from: bytes)
        guard let length = client.transport.protectRTCP(slot, length: bytes.count) else {
            preconditionFailure("not protected")
        }
        receive(UnsafeMutableRawBufferPointer(rebasing: slot[..<length]), from: client.address)
    }

    /// Gives raw bytes to the engine.
    func sendRaw(_ bytes: [UInt8], from address: SocketAddress) {
        slot.copyBytes(from: bytes)
        receive(UnsafeMutableRawBufferPointer(rebasing: slot[..<bytes.count]), from: address)
    }

    private func receive(_ datagram: UnsafeMutableRawBufferPointer, from address: SocketAddress) {
        driver.receive(datagram, from: address, at: now, isLate: isLate) { carry($0) }
        if !isGathering { endTurn() }
    }

    /// Everything sent in `body` comes in one turn.
    func inOneTurn(_ body: () -> Void) {
        isGathering = true
        body()
        isGathering = false
        endTurn()
    }
    private var isGathering = false
    /// What comes waited while the process stood still.
    var isLate = false

    // MARK: - Messages

    /// The client does something with its data channels now.
    func withData(of client: TestClient, _ body: (DataChannelSession) -> Void) {
        deliver(wire.datagrams { client.transport.withData(at: now, into: &$0, body) }, from: client)
        endTurn()
    }

    // MARK: - Time

    /// Plans something `delay` from now.
    func plan(in delay: TimeSpan, _ body: @escaping () -> Void) { planned.plan(body, at: now + delay) }

    /// Lets time pass, from one thing to the next.
    func run(for interval: TimeSpan) {
        let end = now + interval
        while true {
            var next = min(engine.nextDeadline, planned.nextTime ?? .distantFuture)
            for client in clients { next = min(next, client.transport.nextDeadline) }
            guard next <= end else { break }
            now = max(now, next)
            while let due = planned.next(until: now) { due.event() }
            for client in clients where client.transport.nextDeadline <= now {
                deliver(wire.datagrams { client.transport.advance(to: now, into: &$0) }, from: client)
            }
            endTurn()
        }
        now = end
    }

    private func endTurn() {
        driver.endTurn(at: now) { carry($0) }
        events += engine.consumeEvents()
    }

    /// Carries the engine's datagrams to the clients, and their answers back once time passes.
    private func carry(_ batch: borrowing OutboundBatch) {
        let answers = wire.carry(batch, at: now) { address in
            clients.first { $0.address == address }.map { ($0, $0.transport) }
        } note: { client, datagram, received in
            client.datagrams += 1
            client.bytes += datagram.count
            client.receive(datagram, received, at: now)
        }
        outbox += answers
        if !answers.isEmpty { planned.plan({ [unowned self] in self.deliverOutbox() }, at: now) }
    }
    private var outbox: [(client: TestClient, bytes: [UInt8])] = []

    private func deliverOutbox() {
        let waiting = outbox
        outbox = []
        for (client, bytes) in waiting { sendRaw(bytes, from: client.address) }
    }

    private func deliver(_ datagrams: [[UInt8]], from client: TestClient) {
        for bytes in datagrams { sendRaw(bytes, from: client.address) }
    }
}
