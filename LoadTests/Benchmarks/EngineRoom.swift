import Cryptography
import MediaControl
import MediaEngine
import Primitives
import RTP
import Simulation

/// An engine with one publisher and its subscribers in virtual time, without sockets: what is sent is discarded.
final class EngineRoom {
    private let driver: EngineDriver
    private(set) var now = MonotonicTime(milliseconds: 1_000)
    private(set) var subscribers: [ClientTransport] = []
    let publisher: ClientTransport
    private let certificate: Certificate
    private let context: ClientContext
    private let wire = ClientWire(to: EngineDriver.onlyAddress, datagrams: 64)
    private let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: 2_048, alignment: 64)
    private var video: PacketSource
    private let codec: Codec
    /// The first media sequence number that the first subscriber got.
    private(set) var firstSequence: UInt16 = 0

    init(subscribers count: Int, profiles: String = "SRTP_AEAD_AES_128_GCM", codec: Codec = .vp8) throws {
        video = PacketSource(ssrc: 0x100, codec: codec)
        self.codec = codec
        certificate = try Certificate.selfSigned()
        context = try ClientContext(certificate: try Certificate.selfSigned(), profiles: profiles)
        var configuration = EngineConfiguration()
        // Virtual hours pass without checks from the clients.
        configuration.consentTimeout = .seconds(1_000_000)
        driver = EngineDriver(
            try WorkerEngine(configuration: configuration, certificate: certificate, seed: 7), bytes: 512 * 1_500)
        let camera = Self.client(1, .full, context, certificate)
        publisher = camera.transport
        apply(.addRoom(Descriptions.room))
        connect(camera)
        apply(.addTrack(Descriptions.track(1, kind: .video, of: 1, codec: codec)))
        try join(count)
    }

    /// Adds connected subscribers of the publisher's camera.
    func join(_ count: Int) throws {
        for index in subscribers.count..<(subscribers.count + count) {
            let number = UInt64(index + 2)
            subscribers.append(connect(number))
            let subscription = Descriptions.subscription(number, to: 1, kind: .video, by: number, codec: codec)
            apply(.subscribe(subscription))
        }
        endTurn()
    }

    deinit { slot.deallocate() }

    var engine: WorkerEngine { driver.engine }

    static func address(_ number: UInt64) -> SocketAddress {
        SocketAddress(ipv4: 0x0a00_0000 | UInt32(number), port: 40_000)
    }

    private static func client(
        _ number: UInt64, _ profile: PeerProfile, _ context: ClientContext, _ certificate: Certificate
    ) -> EngineClient {
        EngineClient(
            PeerID(number), in: Descriptions.room, profile: profile, context: context, certificate: certificate,
            server: EngineDriver.onlyAddress, at: address(number))
    }

    private func connect(_ number: UInt64, profile: PeerProfile = .full) -> ClientTransport {
        let client = Self.client(number, profile, context, certificate)
        connect(client)
        return client.transport
    }

    /// Completes ICE and DTLS while time stands still, so that a room of a thousand begins at the same moment as an empty one.
    private func connect(_ client: EngineClient) {
        apply(.addPeer(client.description))
        var sent = wire.datagrams { client.transport.advance(to: now, into: &$0) }
        for _ in 0..<40 {
            for bytes in sent { receive(bytes, from: client.address) }
            sent = []
            driver.endTurn(at: now) { batch in
                let answers = wire.carry(batch, at: now) { address in
                    address == client.address ? (client.address, client.transport) : nil
                }
                sent += answers.map(\.bytes)
            }
            if sent.isEmpty, client.transport.isConnected { break }
        }
        precondition(client.transport.isConnected, "a client did not connect")
        _ = engine.consumeEvents()
    }

    /// Adds connected members that may only publish, with or without a camera and a microphone.
    func addPublishers(_ count: Int, from first: UInt64, tracks: Bool) {
        for number in first..<(first + UInt64(count)) {
            subscribers.append(connect(number, profile: .publishOnly))
            for kind in [MediaKind.video, .audio] where tracks {
                let track = Descriptions.track(number * 2 + (kind == .video ? 0 : 1), kind: kind, of: number)
                apply(.addTrack(track))
            }
        }
        endTurn()
    }

    /// Frees the clients' side, which a memory figure does not include.
    func forgetClients() { subscribers = [] }

    /// Records the publisher's camera from its next keyframe on.
    func record() {
        let stream = RecordedStreamDescription(id: SubscriptionID(1 << 40), track: TrackID(1), keyframeInterval: .zero)
        apply(.record(stream))
        endTurn()
    }

    // MARK: - Media

    /// `count` encrypted frames of packets with these payload sizes; the first is a keyframe.
    func frames(_ count: Int, sizes: [Int], keyframeFirst: Bool = true) -> [[[UInt8]]] {
        (0..<count).map { index in
            video.frame(keyframe: keyframeFirst && index == 0, sizes: sizes).map { packet in
                slot.copyBytes(from: packet)
                guard let length = publisher.protectRTP(slot, length: packet.count) else {
                    preconditionFailure("not protected")
                }
                return Array(slot[..<length])
            }
        }
    }

    /// An encrypted compound from a subscriber.
    func compound(of subscriber: Int, _ build: (inout RTCPWriter) -> Void) -> [UInt8] {
        var writer = RTCPWriter(UnsafeMutableRawBufferPointer(rebasing: slot[..<1_200]))
        build(&writer)
        guard let length = subscribers[subscriber].protectRTCP(slot, length: writer.length) else {
            preconditionFailure("not protected")
        }
        return Array(slot[..<length])
    }

    /// One turn: `packets` arrive from the publisher, and everything due is sent.
    @inline(never) func forward(_ packets: [[UInt8]]) {
        for packet in packets { receive(packet, from: Self.address(1)) }
        endTurn()
    }

    /// One turn with one datagram of a subscriber.
    @inline(never) func feedback(_ datagram: [UInt8], from subscriber: Int) {
        receive(datagram, from: Self.address(UInt64(subscriber + 2)))
        endTurn()
    }

    private func receive(_ bytes: [UInt8], from address: SocketAddress) {
        bytes.withUnsafeBytes { slot.copyMemory(from: $0) }
        let datagram = UnsafeMutableRawBufferPointer(rebasing: slot[..<bytes.count])
        driver.receive(datagram, from: address, at: now) { note($0) }
    }

    func pass(_ interval: TimeSpan) { now = now + interval }

    private func endTurn() {
        driver.endTurn(at: now) { note($0) }
        _ = engine.consumeEvents()
    }

    private func apply(_ command: MediaCommand) { driver.apply(command, at: now) { note($0) } }

    private func note(_ batch: borrowing OutboundBatch) {
        guard firstSequence == 0, let first = batch.entries.first.map({ batch.bytes(of: $0) }), first[1] & 0x7f == 120
        else { return }
        firstSequence = UInt16(first[2]) << 8 | UInt16(first[3])
    }
}
