public import Primitives

/// Events of a worker for the control plane. Plain values, in order of occurrence.
public enum MediaEvent: Sendable, Hashable {
    /// An authentic ICE check of a peer that is not connected yet arrived from an address; reported for each address.
    case peerChecked(PeerID)
    /// ICE and DTLS are up and keys are installed.
    case peerConnected(PeerID)
    /// What the peer carried and what was decided for it, at its end: reported once per peer, before `peerEnded`.
    indirect case peerMeasured(PeerID, EndedPeer)
    /// The peer is disconnected; its tracks and subscriptions are freed. Reported once per peer.
    case peerEnded(PeerID, PeerEndReason)
    /// The peer's address changed and a check from the new one was answered (NAT rebinding, network switch).
    case peerMoved(PeerID)
    /// First packet of a track, and which format it uses.
    case trackStarted(TrackID, Codec)
    /// No packets for `TrackActivity` limits: paused by the publisher. Not an error.
    case trackSilent(TrackID)
    /// Packets again after `trackSilent`.
    case trackResumed(TrackID)
    /// The frame size of a layer became known or changed. Layers count from 0, the smallest.
    case trackDimensions(TrackID, layer: Int, width: Int, height: Int)
    /// Which layers of a video subscribers demand, in the order of its description, or the spatial layers of its only stream from the smallest; reported
    /// at every change; initially all are demanded.
    case layersWanted(TrackID, [Bool])
    /// The first packet of a subscription was forwarded.
    case subscriptionStarted(SubscriptionID)
    /// The subscriber accepts none of the formats that the track uses; nothing is forwarded.
    case subscriptionHasNoCommonCodec(SubscriptionID)
    /// No layer of a subscribed video fits the subscriber's bandwidth, so that it is not sent; or a layer fits again.
    case subscriptionHeld(SubscriptionID, Bool)
    /// The active speakers, loudest first; reported when the list changes.
    case speakersChanged(RoomID, [SpeakerLevel])
    /// The dominant speaker's track; nil after a long time without speech.
    case dominantSpeakerChanged(RoomID, TrackID?)
    /// A data channel may be used: the peer opened it, or has confirmed one of the server's.
    case dataChannelOpened(PeerID, DataChannelTerms)
    /// A data channel is closed.
    case dataChannelClosed(PeerID, label: String, DataChannelEnd)
    /// A message arrived on the peer's channel with this label.
    case dataReceived(PeerID, label: String, DataPayload)
}

/// One speaker of a room.
public struct SpeakerLevel: Sendable, Hashable {
    public var track: TrackID
    /// Smoothed loudness, 0 (silent) to 127 (full scale): 127 minus the level of RFC 6464.
    public var loudness: Int

    public init(track: TrackID, loudness: Int) {
        self.track = track
        self.loudness = loudness
    }
}
