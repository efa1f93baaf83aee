internal import DTLS
public import DataChannels
internal import ICE
public import MediaControl
public import Primitives
internal import SRTP

/// How a simulated client behaves on its transport.
public struct ClientBehaviour: Sendable {
    /// Every check nominates (as Firefox does), or none after the first answer when false.
    public var nominatesAlways = true
    /// The first check does not nominate, and the next one, this long after its answer, does (as in libwebrtc); nil: the first one does.
    public var nominationDelay: TimeSpan?
    /// Answers the server's consent checks (all clients should).
    public var answersChecks = true
    /// Continues to send checks after it is connected; ffmpeg does not.
    public var keepsChecking = true
    /// Time between checks before the first answer, and after.
    public var firstInterval = TimeSpan.milliseconds(50)
    public var interval = TimeSpan.milliseconds(2_500)
    /// DTLS role of the client.
    public var role = DTLSRole.client

    public init() {}
}

/// What the client made of a datagram.
public enum ClientReceived: Sendable, Hashable {
    case nothing
    case dropped(DropReason)
    case rtp(length: Int)
    case rtcp(length: Int)
}

/// The other end of a `WebRTCTransport`: a controlling ICE agent with one candidate pair, DTLS and SRTP. Sans-IO.
///
/// It has no address: the code that carries its datagrams decides about their source, so that a NAT rebinding is
/// part of the network model.
public final class ClientTransport {
    let context: ClientContext
    let behaviour: ClientBehaviour
    var local: ICECredential
    var server: ICECredential
    let serverFingerprint: [UInt8]
    let destination: SocketAddress
    var checks: [(id: TransactionID, credential: ICECredential)] = []
    var nextCheck = MonotonicTime.zero
    var dtls: DTLSAssociation?
    var srtp: SRTPSession?
    /// Its data channels, if it has any.
    public internal(set) var data: DataChannelSession?
    var isDataStarted = false
    /// Answers to its checks so far.
    public internal(set) var answers = 0
    /// Whether no check under the current credentials was answered yet: until one is, it sends checks often.
    var isChecking = true
    /// Checks of the server that it answered.
    public internal(set) var serverChecks = 0
    /// The association ended: by close_notify, an alert or a timeout.
    public internal(set) var hasEnded = false
    /// Set while the client does not answer the server's checks, whatever its behaviour says.
    public var isMute = false
    /// Set while the client is dead: it does nothing at all (kill -9).
    public var isKilled = false

    /// A client of the server at `destination`.
    public init(
        context: ClientContext, behaviour: ClientBehaviour = .init(), local: ICECredentials, server: ICECredentials,
        serverFingerprint: [UInt8], destination: SocketAddress
    ) {
        self.context = context
        self.behaviour = behaviour
        self.local = ICECredential(ufrag: local.ufrag, password: local.password)
        self.server = ICECredential(ufrag: server.ufrag, password: server.password)
        self.serverFingerprint = serverFingerprint
        self.destination = destination
    }

    /// ICE and DTLS are up.
    public var isConnected: Bool { srtp != nil }
    /// A check was answered.
    public var isICEConnected: Bool { answers > 0 }
    /// The negotiated SRTP profile; empty before.
    public var srtpProfileName: String { srtp?.profile.name ?? "" }
    /// When `advance` has to be called.
    public var nextDeadline: MonotonicTime {
        if isKilled { return .distantFuture }
        let deadline = min(hasEnded ? .distantFuture : nextCheck, dtls?.nextDeadline ?? .distantFuture)
        guard let data, isConnected, !isMute else { return deadline }
        return min(deadline, data.nextDeadline)
    }

    /// New credentials on both sides (ICE restart); DTLS and SRTP continue.
    public func restart(local: ICECredentials, server: ICECredentials, at now: MonotonicTime) {
        self.local = ICECredential(ufrag: local.ufrag, password: local.password)
        self.server = ICECredential(ufrag: server.ufrag, password: server.password)
        checks = []
        isChecking = true
        nextCheck = now
    }

    /// Sends a check at once, as after a network switch.
    public func checkNow(at now: MonotonicTime) { nextCheck = now }

    /// Encrypts an RTP packet in place.
    public func protectRTP(_ slot: UnsafeMutableRawBufferPointer, length: Int) -> Int? {
        srtp?.protectRTP(slot, length: length)
    }

    /// Encrypts an RTCP compound in place.
    public func protectRTCP(_ slot: UnsafeMutableRawBufferPointer, length: Int) -> Int? {
        srtp?.protectRTCP(slot, length: length)
    }

    /// Sends close_notify.
    public func close(into output: inout OutboundBatch) {
        dtls?.close(to: destination, into: &output)
        hasEnded = true
    }
}
