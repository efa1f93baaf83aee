public import MediaControl

/// What a session is told. Plain values; each edge writes them in its own words.
///
/// Indirect, so that an event which a thousand sessions are told, and keep for a resume, is in memory once.
public indirect enum RoomEvent: Sendable, Hashable {
    case participantJoined(ParticipantInfo)
    /// Name, metadata or permissions changed; the info is complete.
    case participantUpdated(ParticipantInfo)
    /// `participant` is the sid.
    case participantLeft(participant: String, identity: String, reason: LeaveReason)
    case trackPublished(TrackInfo)
    /// Muted, silent, codec, size or name changed; the info is complete.
    case trackUpdated(TrackInfo)
    case trackUnpublished(participant: String, track: String)
    /// One's own subscription was made, changed or ended.
    case subscriptionUpdated(SubscriptionInfo)
    case subscriptionEnded(subscription: String, track: String?)
    /// So many tracks that one subscribes to automatically wait until others end, because one has as many subscriptions as one may; told whenever the
    /// number changes, 0 at last.
    case subscriptionsWaiting(limit: Int, waiting: Int)
    /// What one offered on a section is not published, or not any more: a limit is reached, or the room's rules or one's permissions have changed. `track` is the client's own name of the track, where it gave one;
    /// `announced` the sid with which its announcement was answered, which it will not have.
    case publicationRefused(
        connection: String, mid: String, track: String?, code: RoomError.Code, announced: String? = nil)
    /// The first packet of a subscription was forwarded.
    case subscriptionStarted(subscription: String, track: String?)
    /// A video that one subscribes to is not sent for want of bandwidth, or is again.
    case subscriptionHeld(subscription: String, participant: String?, track: String?, isHeld: Bool)
    /// A publisher lets one receive a track of its, or does not any more. `participant` is the sid.
    case trackPermission(participant: String, track: String, isAllowed: Bool)
    /// The server offers on one's own connection; `tracks` tells which track each mid shows.
    case offer(connection: String, sdp: String, tracks: [String: String])
    /// Tracks wait for a client that makes all offers itself: it must offer so many more receiving sections on its connection, or with none missing just
    /// offer again.
    case sectionsNeeded(connection: String, audio: Int, video: Int)
    /// A client has agreed to receive one's own track, for the first time. It may be muted.
    case trackSubscribed(track: String)
    /// A transport of one's own came up, moved or ended. `reason` is a `PeerEndReason` word.
    case connectionChanged(connection: String, state: ConnectionState, reason: String?)
    /// Loudest first; only to sessions that asked.
    case speakersChanged([SpeakerInfo])
    /// The sid of who dominates; nil when nobody has spoken for long.
    case dominantSpeakerChanged(participant: String?)
    /// Network quality of members that changed; to sessions with a roster.
    case qualityChanged([ParticipantQuality])
    /// Which layers of one's own track somebody wants; all of them, whenever it changes.
    case layersWanted(track: String, layers: [WantedLayer])
    /// Which layers of one's own track in its backup codec somebody wants; one without a name stands for all.
    case backupWanted(track: String, codec: Codec, layers: [WantedLayer])
    /// An opaque payload from another member (rooms with policy `peerToPeer`).
    case relayed(from: String, identity: String, payload: String)
    /// A message from another member or from the API.
    case messageReceived(RoomMessage)
    /// A message that one sent on a data channel was not delivered to anybody.
    case messageRefused(topic: String?, code: RoomError.Code, detail: String)
    /// The server closed one's data channel; `reason` is a `DataChannelEnd` word. Messages come over the socket until another is opened.
    case channelClosed(connection: String, label: String, reason: String)
    /// One's own data track is published.
    case dataTrackPublished(DataTrackInfo)
    /// One's own data track is not published any more.
    case dataTrackUnpublished(DataTrackInfo)
    /// All data tracks that one receives.
    case dataTracksReceived([ReceivedDataTrack])
    case roomUpdated(RoomInfo)
    /// An operator or moderator muted one's own track; the client should stop sending.
    case trackMutedByOther(track: String, by: String?)
    /// An operator or moderator asks for one's own track to be unmuted.
    case unmuteRequested(track: String, by: String?)
    /// Who waits to be let in; to moderators.
    case waitingRoomChanged([WaitingGuest])
    /// One's own packets are captured in clear text, or are not any more.
    case captureChanged(CaptureNotice)
    /// The server is about to end; nil: it is not any more.
    case drainChanged(DrainNotice?)
    /// An operator moved one to another room: all that was known of the former one is over, and what is there now. Connections and tracks go
    /// on, but for connections whose end follows, with what they carried.
    case moved(SessionSnapshot)
    /// The last event of a session; `message` is what an operator or moderator said.
    case ended(LeaveReason, message: String?)
}

/// An event with its place in the session's gap-free order; the first has number 1.
public struct SequencedEvent: Sendable, Hashable {
    public var sequence: UInt64
    public var event: RoomEvent

    /// `event` at `sequence`.
    public init(sequence: UInt64, event: RoomEvent) {
        self.sequence = sequence
        self.event = event
    }
}

/// The life of one peer connection.
public enum ConnectionState: String, Sendable, Hashable {
    case connecting, connected, moved, closed
}

/// How loud one participant is.
public struct SpeakerInfo: Sendable, Hashable {
    public var participant: String
    public var track: String
    /// 0 (silent) to 127 (full scale).
    public var loudness: Int

    /// A speaker.
    public init(participant: String, track: String, loudness: Int) {
        self.participant = participant
        self.track = track
        self.loudness = loudness
    }
}

/// How well one participant's network does.
public struct ParticipantQuality: Sendable, Hashable {
    /// The sid.
    public var participant: String
    /// 0 (lost) to 5 (excellent).
    public var quality: Int

    /// A participant's quality.
    public init(participant: String, quality: Int) {
        self.participant = participant
        self.quality = quality
    }
}

/// Whether somebody wants a layer.
public struct WantedLayer: Sendable, Hashable {
    /// `a=rid`; nil for a plain stream or a layer that was announced by SSRC.
    public var rid: String?
    /// Of a stream with layers inside: which spatial layer, 0 is the smallest.
    public var spatial: Int?
    public var isWanted: Bool

    /// A layer.
    public init(rid: String?, spatial: Int? = nil, isWanted: Bool) {
        self.rid = rid
        self.spatial = spatial
        self.isWanted = isWanted
    }
}

/// Why somebody is no longer in the room. `rawValue` is the stable word.
public enum LeaveReason: String, Sendable, Hashable, CaseIterable {
    /// Said goodbye.
    case left
    /// An operator moved the participant to another room.
    case moved
    /// An operator or moderator removed the participant.
    case removed
    /// A newer session joined with the same identity.
    case duplicateIdentity = "duplicate_identity"
    /// No sign of life for the keep-alive time, or a dropped socket was not resumed in time.
    case timeout
    /// The only transport of a WHIP or WHEP session ended.
    case connectionLost = "connection_lost"
    /// The session did not read its events.
    case tooSlow = "too_slow"
    case roomDeleted = "room_deleted"
    /// The room has lasted as long as its policy allows.
    case roomDurationReached = "room_duration_reached"
    /// The participant has stayed as long as the room's policy allows.
    case stayDurationReached = "stay_duration_reached"
    /// The participant's token has expired, and the room's policy ends the stay with it.
    case tokenExpired = "token_expired"
    /// An operator revoked the participant's token.
    case tokenRevoked = "token_revoked"
    /// The room's policy was changed so that the participant no longer fits.
    case policyChanged = "policy_changed"
    case serverShutdown = "server_shutdown"
}
