/// What is written down about a room: the server's log lines, the event log and what derives from it.
///
/// Indirect, so that an event which the log and its readers keep is in memory once.
public indirect enum RoomLogEvent: Sendable, Hashable {
    case roomStarted
    case roomEnded
    case participantJoined(ParticipantInfo)
    /// Name or metadata changed; the info is complete.
    case participantUpdated(ParticipantInfo)
    /// `hasConnected`: whether one of its peer connections ever came up; false for somebody who gave up before. `keepsConnections`: it was moved, and they go
    /// on in the other room.
    case participantLeft(
        ParticipantInfo, reason: LeaveReason, hasConnected: Bool, keepsConnections: Bool = false)
    case trackPublished(TrackInfo)
    case trackUnpublished(TrackInfo)
    /// The info says whether it is muted now.
    case trackMuted(TrackInfo)
    case connectionChanged(participant: String, connection: String, state: ConnectionState, reason: String?)
    /// No valid check of a connection's client arrived in time; the candidates that each side named.
    case iceFailed(participant: String, connection: String, server: CandidateSummary, client: CandidateSummary)
    case noCommonCodec(participant: String, track: String?)
    /// The sid of who dominates; nil when nobody has spoken for long.
    case dominantSpeakerChanged(participant: String?)
    /// Network quality, 0 (lost) to 5 (excellent).
    case qualityChanged(participant: String, quality: Int)
    /// By whom: the participant's sid; nil: an operator.
    case lockChanged(RoomLock, by: String?)
    /// Other rules are in force; `by`: the API key of whoever changed them, and the identity in its token.
    case policyChanged(revision: UInt64, by: String?)
    case permissionsChanged(participant: String, Permissions)
    /// A participant's packets are captured in clear text, or are not any more.
    case captureChanged(participant: String, CaptureNotice)
    /// Somebody waits to be let in.
    case guestWaiting(WaitingGuest)
    /// Somebody who waited may come in, or was turned away; `by` is a participant's sid, nil: an operator.
    case guestDecided(identity: String, isLetIn: Bool, by: String?)
    case recording(RecordingEvent)
    case playback(PlaybackEvent)
    /// Somebody wanted to publish and could not, or not any more: a limit, a permission, or no permitted codec.
    case publicationRefused(participant: String, identity: String, code: RoomError.Code)
    /// An identity is kept out of the room until a moment (milliseconds since 1970); nil: it no longer is.
    case banChanged(identity: String, until: Int64?, reason: String)
    /// Tokens are good for nothing until a moment (milliseconds since 1970), nil: they are good again. This concerns the server, not one room; `by`: as of a
    /// change of the policy.
    case revocationChanged(Revocations.Subject, until: Int64?, by: String?)
    /// Somebody with a good token could not come in: a limit, a lock or a ban.
    case joinRefused(identity: String?, code: RoomError.Code)
}
