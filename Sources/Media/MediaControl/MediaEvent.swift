public import Primitives

/// What a worker tells the control plane. Plain values in the order in which things happened.
public enum MediaEvent: Sendable, Hashable {
    /// ICE and DTLS are up and keys are installed.
    case peerConnected(PeerID)
    /// The peer is gone; its tracks and subscriptions are freed. Told once a peer.
    case peerEnded(PeerID, PeerEndReason)
    /// The peer's address changed and a check from the new one was answered (NAT rebinding, network switch).
    case peerMoved(PeerID)
    /// First packet of a track, and which format it uses.
    case trackStarted(TrackID, Codec)
    /// No packets for `TrackActivity` limits: paused by the publisher. Not a fault.
    case trackSilent(TrackID)
    /// Packets again after `trackSilent`.
    case trackResumed(TrackID)
    /// The picture size of a layer became known or changed. Layers count from 0, the smallest.
    case trackDimensions(TrackID, layer: Int, width: Int, height: Int)
    /// Which layers of a video somebody wants, in the order of its description, or of its only stream the spatial layers from the smallest; told
    /// when it changes, all are wanted at first.
    case layersWanted(TrackID, [Bool])
    /// The first packet of a subscription was forwarded.
    case subscriptionStarted(SubscriptionID)
    /// The subscriber accepts none of the formats that the track uses; nothing is forwarded.
    case subscriptionHasNoCommonCodec(SubscriptionID)
    /// Who speaks, loudest first; told when the list changes.
    case speakersChanged(RoomID, [SpeakerLevel])
    /// The dominant speaker's track; nil when nobody has spoken for long.
    case dominantSpeakerChanged(RoomID, TrackID?)
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
