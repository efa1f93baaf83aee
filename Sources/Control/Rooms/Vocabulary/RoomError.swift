public import Primitives

/// Why a request was refused, with a stable machine-readable code that every edge passes on.
public struct RoomError: Error, Sendable, Hashable {
    /// The stable codes of refusals.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        case invalidRequest = "invalid_request"
        case permissionDenied = "permission_denied"
        case roomNotFound = "room_not_found"
        case roomFull = "room_full"
        case roomExists = "room_exists"
        /// The room is closing, or was deleted after the token had been issued.
        case roomClosed = "room_closed"
        /// The token is for another room than the requested one.
        case roomMismatch = "room_mismatch"
        /// The participant was removed after the token had been issued.
        case participantRemoved = "participant_removed"
        /// An operator revoked the token, or all older ones of its identity.
        case tokenRevoked = "token_revoked"
        case revocationNotFound = "revocation_not_found"
        /// A resume with a token with other grants; join again.
        case grantsChanged = "grants_changed"
        case identityRequired = "identity_required"
        /// A member has this identity, and the room's policy does not let another session replace it.
        case identityTaken = "identity_taken"
        /// An operator banned this identity from the room.
        case banned = "banned"
        /// The policy was changed since the revision that the edit was made for.
        case revisionMismatch = "revision_mismatch"
        /// The room admits only participants that encrypt end to end.
        case encryptionRequired = "encryption_required"
        /// The room has a waiting room: an operator or a moderator must admit the participant. The client repeats the join meanwhile.
        case approvalRequired = "approval_required"
        /// An operator or a moderator refused to admit the participant.
        case turnedAway = "turned_away"
        case guestNotFound = "guest_not_found"
        /// The room is locked: only moderators may join.
        case roomLocked = "room_locked"
        /// The room requires a password, and the join has none.
        case passwordRequired = "password_required"
        case passwordWrong = "password_wrong"
        /// Too many wrong passwords from this client.
        case tooManyAttempts = "too_many_attempts"
        case presetNotFound = "preset_not_found"
        case banNotFound = "ban_not_found"
        case recordingNotFound = "recording_not_found"
        /// The requested tracks are recorded already; a track is recorded once.
        case alreadyRecorded = "already_recorded"
        /// The media is encrypted end to end, or uses a codec that files cannot contain.
        case notRecordable = "not_recordable"
        /// The server has no folder for recordings.
        case recordingDisabled = "recording_disabled"
        case playbackNotFound = "playback_not_found"
        /// This server does not play files.
        case playbackDisabled = "playback_disabled"
        /// There is no such file to play.
        case fileNotFound = "file_not_found"
        /// The file cannot be sent without transcoding.
        case notPlayable = "not_playable"
        /// The room's policy does not permit the codec, or the profile, of a file.
        case codecNotAllowed = "codec_not_allowed"
        /// The request needs a program that the server does not have, or something that a client's protocol does not support.
        case notAvailable = "not_available"
        case jobNotFound = "job_not_found"
        /// The disk has no space for recordings.
        case diskFull = "disk_full"
        /// The rooms are on different media workers, so a connection cannot continue in the other one.
        case differentWorker = "different_worker"
        case participantNotFound = "participant_not_found"
        case trackNotFound = "track_not_found"
        case subscriptionNotFound = "subscription_not_found"
        case sessionNotFound = "session_not_found"
        case connectionNotFound = "connection_not_found"
        /// The text is not SDP that can be answered at all.
        case invalidDescription = "invalid_sdp"
        /// The SDP is well-formed but requires something that is not supported (DTLS 1.0, Plan B, no ICE …).
        case unsupportedDescription = "unsupported_sdp"
        case noCommonCodec = "no_common_codec"
        /// The server's own offer on this connection is open; answer it first, then offer again.
        case glare = "glare"
        /// An answer arrived while no offer was open.
        case unexpectedAnswer = "unexpected_answer"
        /// The request needs a room with policy `peerToPeer`.
        case relayNotAllowed = "relay_not_allowed"
        /// The room is peer to peer: the server does not carry its media.
        case notRouted = "not_routed"
        case limitExceeded = "limit_exceeded"
        case tooLarge = "too_large"
        case rateLimited = "rate_limited"
        /// The events that a resume needs are no longer kept; join again.
        case resumeTooLate = "resume_too_late"
        case overloaded = "overloaded"
        /// The server cannot carry the media of this room now.
        case mediaUnavailable = "media_unavailable"
        /// The server is shutting down and accepts no new work.
        case draining = "draining"
    }

    public var code: Code
    /// A sentence for people; holds no secrets and no addresses.
    public var detail: String
    /// When it makes sense to try again.
    public var retryAfter: TimeSpan?

    /// A refusal with `code`.
    public init(_ code: Code, _ detail: String = "", retryAfter: TimeSpan? = nil) {
        self.code = code
        self.detail = detail
        self.retryAfter = retryAfter
    }
}
