public import Primitives

/// User name fragment and password of one side of an ICE session (RFC 8445 section 5.3).
public struct ICECredentials: Sendable, Hashable {
    /// 4 to 256 characters of ALPHA / DIGIT / "+" / "/".
    public var ufrag: String
    /// 22 to 256 characters of the same alphabet.
    public var password: String

    public init(ufrag: String, password: String) {
        self.ufrag = ufrag
        self.password = password
    }
}

/// Who sends the ClientHello, as seen from the server (RFC 5763 section 5).
public enum DTLSRole: Sendable, Hashable { case client, server }

/// What the remote side's description says about its transport.
public struct RemoteTransport: Sendable, Hashable {
    public var ice: ICECredentials
    /// SHA-256 of the certificate that the peer must show; 32 bytes.
    public var fingerprintSHA256: [UInt8]
    /// The server's own role: `.server` for a peer that says active or actpass, `.client` for a passive one (ffmpeg).
    public var localRole: DTLSRole

    public init(ice: ICECredentials, fingerprintSHA256: [UInt8], localRole: DTLSRole) {
        self.ice = ice
        self.fingerprintSHA256 = fingerprintSHA256
        self.localRole = localRole
    }
}

/// How much machinery a peer gets.
public enum PeerProfile: Sendable, Hashable {
    /// Publishes and receives.
    case full
    /// Publishes only: no subscriptions, no downlink estimator, pacer or renumbering.
    case publishOnly
}

/// One ICE and DTLS association to be served.
public struct PeerDescription: Sendable, Hashable {
    public var id: PeerID
    public var room: RoomID
    public var profile: PeerProfile
    /// The server's credentials in the description that the peer got.
    public var localICE: ICECredentials
    /// nil while the server's offer waits for its answer.
    public var remote: RemoteTransport?
    /// SSRC of the server's own reports and feedback on this transport.
    public var feedbackSSRC: UInt32

    public init(
        id: PeerID, room: RoomID, profile: PeerProfile, localICE: ICECredentials, remote: RemoteTransport?,
        feedbackSSRC: UInt32
    ) {
        self.id = id
        self.room = room
        self.profile = profile
        self.localICE = localICE
        self.remote = remote
        self.feedbackSSRC = feedbackSSRC
    }
}

/// Why a peer is no longer connected. `rawValue` is the stable word in events, logs and the API.
public enum PeerEndReason: String, Sendable, Hashable, CaseIterable {
    /// No valid check came before the set-up limit.
    case iceTimeout
    /// Checks stopped for longer than the consent timeout (RFC 7675).
    case consentExpired
    /// The certificate did not match the fingerprint in the SDP.
    case fingerprintMismatch
    /// The DTLS handshake failed: no common version, cipher or SRTP profile.
    case dtlsFailed
    /// The handshake did not end in time.
    case dtlsTimeout
    /// The peer sent a DTLS close_notify.
    case closedByPeer
    /// The control plane removed it.
    case removed
    /// There was no room for it.
    case overloaded
}
