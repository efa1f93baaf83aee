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

/// Which side sends the ClientHello, as seen from the server (RFC 5763 section 5).
public enum DTLSRole: Sendable, Hashable { case client, server }

/// The transport parameters in the remote side's description.
public struct RemoteTransport: Sendable, Hashable {
    public var ice: ICECredentials
    /// SHA-256 of the certificate that the peer must present; 32 bytes.
    public var fingerprintSHA256: [UInt8]
    /// The server's own role: `.server` for a peer with setup active or actpass, `.client` for a passive one (ffmpeg).
    public var localRole: DTLSRole

    public init(ice: ICECredentials, fingerprintSHA256: [UInt8], localRole: DTLSRole) {
        self.ice = ice
        self.fingerprintSHA256 = fingerprintSHA256
        self.localRole = localRole
    }
}

/// Which functions a peer needs.
public enum PeerProfile: Sendable, Hashable {
    /// Publishes and receives.
    case full
    /// Publishes only: no subscriptions, no downlink estimator, pacer or renumbering.
    case publishOnly
    /// Publishes media that the server plays itself: its packets come unencrypted from this process, and it has no transport.
    case player
}

/// One ICE and DTLS association.
public struct PeerDescription: Sendable, Hashable {
    public var id: PeerID
    public var room: RoomID
    public var profile: PeerProfile
    /// The server's credentials in the description sent to the peer.
    public var localICE: ICECredentials
    /// nil until the server's offer is answered.
    public var remote: RemoteTransport?
    /// SSRC of the server's own reports and feedback on this transport.
    public var feedbackSSRC: UInt32
    /// The id of the group's first peer. Peers of one group belong to one participant and share a path, so messages on one of them leave the media on another
    /// the bandwidth that it needs.
    public var group: PeerID

    /// `group` nil: the first of its group.
    public init(
        id: PeerID, room: RoomID, profile: PeerProfile, localICE: ICECredentials, remote: RemoteTransport?,
        feedbackSSRC: UInt32, group: PeerID? = nil
    ) {
        self.id = id
        self.room = room
        self.profile = profile
        self.localICE = localICE
        self.remote = remote
        self.feedbackSSRC = feedbackSSRC
        self.group = group ?? id
    }
}

/// Why a peer is disconnected. `rawValue` is the stable name in events, logs and the API.
public enum PeerEndReason: String, Sendable, Hashable, CaseIterable {
    /// No valid check arrived before the set-up limit.
    case iceTimeout
    /// Checks stopped for longer than the consent timeout (RFC 7675).
    case consentExpired
    /// The certificate did not match the fingerprint in the SDP.
    case fingerprintMismatch
    /// The DTLS handshake failed: no common version, cipher or SRTP profile.
    case dtlsFailed
    /// The handshake did not finish in time.
    case dtlsTimeout
    /// The peer sent a DTLS close_notify.
    case closedByPeer
    /// The control plane removed it.
    case removed
    /// The server has no capacity for it.
    case overloaded
}
