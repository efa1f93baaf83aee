public import Primitives

/// What the control plane tells a worker. Plain values; an id that is unknown or already gone is ignored and counted,
/// because a command may cross an event on its way.
public enum MediaCommand: Sendable, Hashable {
    /// Opens a room.
    case addRoom(RoomID)
    /// Closes a room; its peers must have been removed.
    case removeRoom(RoomID)
    case addPeer(PeerDescription)
    /// First answer to a server offer, or new credentials after a peer's ICE restart.
    case setRemoteTransport(PeerID, RemoteTransport)
    /// New local credentials; the old ones stay valid until a check with the new ones has been answered.
    case restartICE(PeerID, local: ICECredentials)
    /// Ends a peer with its tracks and subscriptions; a DTLS close_notify is sent.
    case removePeer(PeerID)
    case addTrack(TrackDescription)
    /// Renegotiated formats, extensions or encodings of a track that goes on.
    case updateTrack(TrackDescription)
    case removeTrack(TrackID)
    /// A muted track's packets are dropped at once, whatever the client sends.
    case setTrackMuted(TrackID, Bool)
    case setTrackMaximumBitrate(TrackID, Bitrate?)
    case subscribe(SubscriptionDescription)
    /// Renegotiated formats or extensions of a subscription that goes on.
    case updateSubscription(SubscriptionDescription)
    case unsubscribe(SubscriptionID)
    case setSubscriptionPaused(SubscriptionID, Bool)
    case setLayerPreference(SubscriptionID, LayerPreference)
    /// Puts another track behind a section without renegotiation (WHEP follow mode); nil: nothing.
    case switchSubscription(SubscriptionID, to: TrackID?)
    case requestKeyframe(TrackID)
    /// How the peer's bandwidth is shared out.
    case setDownlinkPolicy(PeerID, DownlinkPolicy)
    /// What the publisher says about a track.
    case setTrackTraits(TrackID, TrackTraits)
    /// How a subscriber shows one video.
    case setDisplayPreference(SubscriptionID, DisplayPreference)
}
