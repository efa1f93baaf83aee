public import MediaControl

/// What a session is notified of. Plain values; each edge encodes them for its protocol.
///
/// Indirect, so that an event that a thousand sessions receive, and keep for a resume, is in memory once.
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
    /// The session's own subscription was made, changed or ended.
    case subscriptionUpdated(SubscriptionInfo)
    case subscriptionEnded(subscription: String, track: String?)
    /// The number of tracks that wait to be subscribed automatically until others end, because the session has as many subscriptions as it may; sent whenever
    /// the number changes, at last with 0.
    case subscriptionsWaiting(limit: Int, waiting: Int)
    /// What the session offered on a section is not published, or no longer is: a limit is reached, or the room's rules or the session's permissions have
    /// changed. `track` is the client's own id of the track, if it gave one; `announced` is the sid in the reply to its announcement,
    /// which the track will not have.
    case publicationRefused(
        connection: String, mid: String, track: String?, code: RoomError.Code, announced: String? = nil)
    /// The first packet of a subscription was forwarded.
    case subscriptionStarted(subscription: String, track: String?)
    /// A received video is not sent because bandwidth is too low, or is sent again.
    case subscriptionHeld(subscription: String, participant: String?, track: String?, isHeld: Bool)
    /// A publisher permits the session to receive one of its tracks, or no longer does. `participant` is the sid.
    case trackPermission(participant: String, track: String, isAllowed: Bool)
    /// The server's offer on the session's own connection; `tracks` maps each mid to the track on it.
    case offer(connection: String, sdp: String, tracks: [String: String])
    /// Tracks wait for a client that makes all offers itself: it must offer this many more receiving sections on its connection, or, if none is missing, just
    /// offer again.
    case sectionsNeeded(connection: String, audio: Int, video: Int)
    /// A client has agreed to receive the session's own track, for the first time. The track may be muted.
    case trackSubscribed(track: String)
    /// A transport of the session came up, moved or ended. `reason` is a `PeerEndReason` word.
    case connectionChanged(connection: String, state: ConnectionState, reason: String?)
    /// Loudest first; only to sessions that requested it.
    case speakersChanged([SpeakerInfo])
    /// The sid of the dominant speaker; nil when nobody has spoken for long.
    case dominantSpeakerChanged(participant: String?)
    /// Changed network quality of members; to sessions with a roster.
    case qualityChanged([ParticipantQuality])
    /// Which layers of the session's own track are in demand; all of them, whenever the demand changes.
    case layersWanted(track: String, layers: [WantedLayer])
    /// Which layers of the session's own track in its backup codec are in demand; one without a name stands for all.
    case backupWanted(track: String, codec: Codec, layers: [WantedLayer])
    /// An opaque payload from another member (rooms with policy `peerToPeer`).
    case relayed(from: String, identity: String, payload: String)
    /// A message from another member or from the API.
    case messageReceived(RoomMessage)
    /// A message that the session sent on a data channel was not delivered to anybody.
    case messageRefused(topic: String?, code: RoomError.Code, detail: String)
    /// The server closed the session's data channel; `reason` is a `DataChannelEnd` word. Messages come over the socket until another is opened.
    case channelClosed(connection: String, label: String, reason: String)
    /// The session's own data track is published.
    case dataTrackPublished(DataTrackInfo)
    /// The session's own data track is no longer published.
    case dataTrackUnpublished(DataTrackInfo)
    /// All data tracks that the session receives.
    case dataTracksReceived([ReceivedDataTrack])
    case roomUpdated(RoomInfo)
    /// An operator or moderator muted the session's own track; the client should stop sending.
    case trackMutedByOther(track: String, by: String?)
    /// An operator or moderator asks the session to unmute its own track.
    case unmuteRequested(track: String, by: String?)
    /// The guests in the waiting room; to moderators.
    case waitingRoomChanged([WaitingGuest])
    /// The session's packets are captured in clear text, or no longer are.
    case captureChanged(CaptureNotice)
    /// The server is about to end; nil: it no longer is.
    case drainChanged(DrainNotice?)
    /// An operator moved the session to another room: the client's state of the former room is obsolete, and the snapshot has the new one. Connections and
    /// tracks continue, except for connections whose end follows, with their tracks.
    case moved(SessionSnapshot)
    /// The last event of a session; `message` is the text of an operator or moderator.
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

/// The state of one peer connection.
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

/// The quality of one participant's network.
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

/// Whether a layer is in demand.
public struct WantedLayer: Sendable, Hashable {
    /// `a=rid`; nil for a plain stream or a layer that was announced by SSRC.
    public var rid: String?
    /// The spatial layer, if one stream contains several; 0 is the smallest.
    public var spatial: Int?
    public var isWanted: Bool

    /// A layer.
    public init(rid: String?, spatial: Int? = nil, isWanted: Bool) {
        self.rid = rid
        self.spatial = spatial
        self.isWanted = isWanted
    }
}

/// Why a participant is no longer in the room. `rawValue` is the stable word.
public enum LeaveReason: String, Sendable, Hashable, CaseIterable {
    /// The client said goodbye.
    case left
    /// An operator moved the participant to another room.
    case moved
    /// An operator or moderator removed the participant.
    case removed
    /// A newer session joined with the same identity.
    case duplicateIdentity = "duplicate_identity"
    /// No keep-alive arrived in time, or a dropped socket was not resumed in time.
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
    /// The room's policy was changed, and the participant no longer conforms to it.
    case policyChanged = "policy_changed"
    case serverShutdown = "server_shutdown"
}
