import Cryptography
import MediaControl
public import Primitives

/// One peer connection of a scripted client: transport, links, publications and subscriptions.
public final class VirtualClient {
    /// Its peer number at the server.
    public let id: PeerID
    public let room: RoomID
    /// The worker that it is connected to.
    public let worker: Int
    public let settings: ClientSettings
    /// Where its datagrams come from.
    public internal(set) var address: SocketAddress
    /// ICE, DTLS and SRTP.
    public let transport: ClientTransport
    /// Its links; models may be changed at any time.
    public var uplink: VirtualLink
    public var downlink: VirtualLink
    /// The bottleneck before its downlink that it shares with others; nil for none.
    public var bottleneck: SharedBottleneck?
    public internal(set) var publications: [Publication] = []
    public internal(set) var views: [View] = []
    /// When ICE and DTLS were up.
    public internal(set) var connectedAt: MonotonicTime?
    /// What came.
    public internal(set) var traffic = ReceivedTraffic()
    /// SSRCs that RTCP to this client mentioned.
    public internal(set) var reportedSSRCs: Set<UInt32> = []
    /// The transport's last estimate of what this client may send (REMB), when the server sends any.
    public internal(set) var maximumBitrate: Bitrate?
    /// Transport-wide feedback that arrived: packets reported, and how many of these as not received.
    public internal(set) var feedbackReported = 0
    public internal(set) var feedbackLost = 0
    /// The number of the last packet with a transport-wide sequence number.
    public internal(set) var transportSequence: UInt16 = 0
    /// Its own estimate for REMB, if its settings enable that.
    var receiverEstimate = ReceiverEstimate()

    unowned let world: World
    let index: Int
    var random: RandomSource
    var feedback: FeedbackState
    var ownFaults: [String] = []
    var viewBySSRC: [UInt32: View] = [:]
    private var plannedWake = MonotonicTime.distantFuture
    private var credentials: (client: ICECredentials, server: ICECredentials)
    private var restarts = 0

    init(id: PeerID, room: RoomID, worker: Int, settings: ClientSettings, world: World) {
        self.id = id
        self.room = room
        self.worker = worker
        self.settings = settings
        self.world = world
        index = world.clientTable.count
        random = RandomSource(seed: world.random.next())
        let number = UInt32(truncatingIfNeeded: id.rawValue)
        // Behind a NAT, clients differ in their port.
        address =
            settings.sharedAddress.map {
                SocketAddress(ipv4: $0, port: 40_000 + UInt16(truncatingIfNeeded: number & 0xfff))
            } ?? SocketAddress(ipv4: 0x0a00_0000 | number, port: 40_000)
        uplink = VirtualLink(settings.uplink)
        downlink = VirtualLink(settings.downlink)
        credentials = Self.credentials(of: id, generation: 0)
        feedback = FeedbackState(ssrc: 0xe000_0000 | UInt32(truncatingIfNeeded: id.rawValue))
        transport = ClientTransport(
            context: world.clientContext, behaviour: settings.behaviour, local: credentials.client,
            server: credentials.server, serverFingerprint: world.certificate.fingerprintSHA256,
            destination: world.workers[worker].address)
        transport.checkNow(at: world.now)
    }

    private static func credentials(of id: PeerID, generation: Int) -> (client: ICECredentials, server: ICECredentials)
    {
        (
            ICECredentials(ufrag: "c\(id.rawValue)x\(generation)", password: "clientpasswordclientpassword"),
            ICECredentials(ufrag: "s\(id.rawValue)x\(generation)", password: "serverpasswordserverpassword")
        )
    }

    func makeDescription() -> PeerDescription {
        PeerDescription(
            id: id, room: room, profile: settings.profile, localICE: credentials.server, remote: remoteTransport,
            feedbackSSRC: 0xf000_0000 | UInt32(truncatingIfNeeded: id.rawValue), group: settings.group)
    }

    private var remoteTransport: RemoteTransport {
        RemoteTransport(
            ice: credentials.client, fingerprintSHA256: world.clientContext.certificate.fingerprintSHA256,
            localRole: settings.behaviour.role == .client ? .server : .client)
    }

    /// Faults seen by this client.
    public var faults: [String] {
        let who = "room \(room.rawValue), client \(id.rawValue)"
        return ownFaults.map { "\(who): \($0)" }
            + views.flatMap { view in view.faults.map { "\(who), view \(view.id.rawValue): \($0)" } }
    }

    /// ICE and DTLS are up.
    public var isConnected: Bool { connectedAt != nil }

    // MARK: - Address and network

    /// The NAT drops its mapping: from now on its datagrams have another port.
    public func rebind() { move(to: SocketAddress(high: address.high, low: address.low, port: address.port + 1)) }

    /// The client switches to another network, with other links.
    public func switchNetwork(uplink: LinkModel? = nil, downlink: LinkModel? = nil) {
        if let uplink { self.uplink.model = uplink }
        if let downlink { self.downlink.model = downlink }
        move(to: SocketAddress(high: address.high, low: address.low ^ 0x0040_0000, port: 50_000))
    }

    private func move(to new: SocketAddress) {
        // Datagrams to the old address are lost, but still checked.
        address = new
        world.addresses[address] = index
    }

    /// Restarts ICE with new credentials on both sides, after a signalling round trip.
    public func restartICE(signalling: TimeSpan = .milliseconds(50)) {
        restarts += 1
        credentials = Self.credentials(of: id, generation: restarts)
        let remote = remoteTransport
        let credentials = self.credentials
        world.plan(in: signalling) { [self] in
            world.apply(.restartICE(id, local: credentials.server), on: worker)
            world.apply(.setRemoteTransport(id, remote), on: worker)
            transport.restart(local: credentials.client, server: credentials.server, at: world.now)
            schedule()
        }
    }

    // MARK: - Leaving

    /// Leaves by signalling, after which the server removes the peer.
    public func leave() {
        world.apply(.removePeer(id), on: worker)
        forget()
    }

    /// Closes its connection (DTLS close_notify) without signalling.
    public func hangUp() {
        transport.close(into: &world.clientBatch)
        flushTransport()
    }

    /// Dies without leaving (kill -9). The server detects it by itself.
    public func kill() { forget() }

    private func forget() {
        world.oldFaults += faults
        transport.isKilled = true
        world.addresses = world.addresses.filter { $0.value != index }
        world.clientTable[index] = nil
    }

    // MARK: - Time

    /// Plans to wake it when it has something to do.
    func schedule() {
        let next = nextDeadline
        guard next < plannedWake else { return }
        plannedWake = next
        world.agenda.plan(.wake(client: index), at: max(next, world.now))
    }

    func wake() {
        // This was an older plan, replaced by a nearer one.
        guard plannedWake <= world.now else { return }
        plannedWake = .distantFuture
        advance()
        schedule()
    }

    private var nextDeadline: MonotonicTime {
        var next = transport.nextDeadline
        guard isConnected else { return next }
        for publication in publications { next = min(next, publication.nextDeadline) }
        return settings.sendsFeedback ? min(next, feedback.nextDeadline) : next
    }

    private func advance() {
        if transport.nextDeadline <= world.now {
            transport.advance(to: world.now, into: &world.clientBatch)
            flushTransport()
        }
        guard isConnected else { return }
        for publication in publications where publication.nextDeadline <= world.now { send(publication) }
        if settings.sendsFeedback, feedback.nextDeadline <= world.now { sendFeedback() }
    }
}
