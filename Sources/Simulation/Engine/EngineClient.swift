public import Cryptography
public import MediaControl
public import Primitives

/// A peer of an engine, and the client at its other end: for drivers that carry datagrams themselves (``ClientWire``) and not over links (``World``).
///
/// Credentials and address follow from the peer's number, because nothing that these drivers test or measure depends on them.
public struct EngineClient {
    /// What the engine is given with `addPeer`.
    public let description: PeerDescription
    /// ICE, DTLS and SRTP of the client.
    public let transport: ClientTransport
    /// Where it is: a host of its own unless another one was given.
    public let address: SocketAddress

    /// The peer `id` of a server with this certificate at `server`, and its client, which has not sent anything.
    public init(
        _ id: PeerID, in room: RoomID, profile: PeerProfile = .full, behaviour: ClientBehaviour = .init(),
        context: ClientContext, certificate: Certificate, server: SocketAddress, at address: SocketAddress? = nil
    ) {
        let local = ICECredentials(ufrag: "srv\(id.rawValue)", password: "serverpasswordserverpass")
        let remote = ICECredentials(ufrag: "cli\(id.rawValue)", password: "clientpasswordclientpass")
        description = PeerDescription(
            id: id, room: room, profile: profile, localICE: local,
            remote: RemoteTransport(
                ice: remote, fingerprintSHA256: context.certificate.fingerprintSHA256, localRole: .server),
            feedbackSSRC: 0xf000_0000 | UInt32(id.rawValue))
        transport = ClientTransport(
            context: context, behaviour: behaviour, local: remote, server: local,
            serverFingerprint: certificate.fingerprintSHA256, destination: server)
        self.address = address ?? SocketAddress(ipv4: 0x0a00_0000 | UInt32(id.rawValue), port: 40_000)
    }
}
