public import Primitives

/// Commands of the control plane to a worker. Plain values; a command with an unknown or removed id is ignored and counted,
/// because a command may cross an event in transit.
public enum MediaCommand: Sendable, Hashable {
    /// Opens a room.
    case addRoom(RoomID)
    /// Closes a room; its peers must have been removed.
    case removeRoom(RoomID)
    /// Which microphones of a room are forwarded, and how its speakers are found.
    case setRoomAudio(RoomID, RoomAudio)
    case addPeer(PeerDescription)
    /// The answer to a server offer, or new credentials after a peer's ICE restart.
    case setRemoteTransport(PeerID, RemoteTransport)
    /// New local credentials; the old ones stay valid until a check with the new ones has been answered.
    case restartICE(PeerID, local: ICECredentials)
    /// Moves a peer to another room of the worker, with its connection and its tracks. Subscriptions to these tracks, and the peer's own, must have been
    /// removed.
    case movePeer(PeerID, to: RoomID)
    /// Closes a peer with its tracks and subscriptions; a DTLS close_notify is sent.
    case removePeer(PeerID)
    case addTrack(TrackDescription)
    /// Renegotiated formats, extensions or encodings of an existing track.
    case updateTrack(TrackDescription)
    case removeTrack(TrackID)
    /// Packets of a muted track are dropped at once, whatever the client sends.
    case setTrackMuted(TrackID, Bool)
    /// A microphone is forwarded however quiet it is, in addition to the loudest.
    case setTrackAlwaysForwarded(TrackID, Bool)
    case setTrackMaximumBitrate(TrackID, Bitrate?)
    case subscribe(SubscriptionDescription)
    /// Renegotiated formats or extensions of an existing subscription.
    case updateSubscription(SubscriptionDescription)
    case unsubscribe(SubscriptionID)
    case setSubscriptionPaused(SubscriptionID, Bool)
    case setLayerPreference(SubscriptionID, LayerPreference)
    /// Binds another track to a section without renegotiation (WHEP follow mode); nil: none.
    case switchSubscription(SubscriptionID, to: TrackID?)
    case requestKeyframe(TrackID)
    /// Records a track, which no other stream may record.
    case record(RecordedStreamDescription)
    case endRecording(SubscriptionID)
    /// Begins to copy a peer's packets in clear text, or (nil) stops and frees the copies that were not reported.
    case setCapture(PeerID, CaptureSettings?)
    /// How to divide the peer's bandwidth.
    case setDownlinkPolicy(PeerID, DownlinkPolicy)
    /// The publisher's preferences for a track.
    case setTrackTraits(TrackID, TrackTraits)
    /// How a subscriber displays one video.
    case setDisplayPreference(SubscriptionID, DisplayPreference)
    /// The peer's data section is accepted: from now on its channels are served. Ignored for a peer that has channels already.
    case acceptData(PeerID, DataTransport)
    /// Opens a channel from the server's side, at once or when the association is up.
    case openDataChannel(PeerID, DataChannelTerms)
    /// Closes a channel after the messages that wait on it.
    case closeDataChannel(PeerID, label: String)
    /// Sends one message to several peers. Peers without such a channel, and those that accept no message of that length, are left out and counted.
    case sendData(DataDelivery)
    /// The control plane has finished with a message of this cost that the peer sent: the next one may be delivered.
    case releaseData(PeerID, cost: Int)
}
