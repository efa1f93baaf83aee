/// An entry about a room: for the server's log lines, the event log and what derives from it.
///
/// Indirect, so that an event that the log and its readers keep is in memory once.
public indirect enum RoomLogEvent: Sendable, Hashable {
    case roomStarted
    case roomEnded
    case participantJoined(ParticipantInfo)
    /// Name or metadata changed; the info is complete.
    case participantUpdated(ParticipantInfo)
    /// `hasConnected`: whether one of its peer connections ever came up; false if the client gave up before. `keepsConnections`: it was moved, and they
    /// continue in the other room.
    case participantLeft(
        ParticipantInfo, reason: LeaveReason, hasConnected: Bool, keepsConnections: Bool = false)
    case trackPublished(TrackInfo)
    case trackUnpublished(TrackInfo)
    /// The info says whether it is muted now.
    case trackMuted(TrackInfo)
    case connectionChanged(participant: String, connection: String, state: ConnectionState, reason: String?)
    /// No valid check from a connection's client arrived in time; the candidates of both sides.
    case iceFailed(participant: String, connection: String, server: CandidateSummary, client: CandidateSummary)
    case noCommonCodec(participant: String, track: String?)
    /// The sid of the dominant speaker; nil when nobody has spoken for long.
    case dominantSpeakerChanged(participant: String?)
    /// Network quality, 0 (lost) to 5 (excellent).
    case qualityChanged(participant: String, quality: Int)
    /// Who did it: the participant's sid; nil: an operator.
    case lockChanged(RoomLock, by: String?)
    /// Other rules are in force; `by`: the API key of the client that changed them, and the identity in its token.
    case policyChanged(revision: UInt64, by: String?)
    case permissionsChanged(participant: String, Permissions)
    /// A participant's packets are captured in clear text, or no longer are.
    case captureChanged(participant: String, CaptureNotice)
    /// A guest waits to be admitted.
    case guestWaiting(WaitingGuest)
    /// A waiting guest was admitted or refused; `by` is a participant's sid, nil: an operator.
    case guestDecided(identity: String, isLetIn: Bool, by: String?)
    case recording(RecordingEvent)
    case playback(PlaybackEvent)
    /// A participant could not publish, or no longer can: a limit, a permission, or no permitted codec.
    case publicationRefused(participant: String, identity: String, code: RoomError.Code)
    /// An identity is banned from the room until a time (milliseconds since 1970); nil: the ban has ended.
    case banChanged(identity: String, until: Int64?, reason: String)
    /// Tokens are revoked until a time (milliseconds since 1970); nil: they are valid again. This applies to the server, not to one room; `by`: as for a
    /// change of the policy.
    case revocationChanged(Revocations.Subject, until: Int64?, by: String?)
    /// A join with a valid token was refused: a limit, a lock or a ban.
    case joinRefused(identity: String?, code: RoomError.Code)
}
