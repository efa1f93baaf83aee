/// The events that LiveKit's servers post to webhooks, if they occur here.
public enum LiveKitEventType: String, Sendable, Hashable, CaseIterable {
    case roomStarted = "room_started"
    case roomFinished = "room_finished"
    /// The first connection of a participant is up.
    case participantJoined = "participant_joined"
    case participantLeft = "participant_left"
    /// A participant left, or was given up, before any connection was up.
    case participantConnectionAborted = "participant_connection_aborted"
    case trackPublished = "track_published"
    case trackUnpublished = "track_unpublished"
    /// A recording began.
    case egressStarted = "egress_started"
    /// A recording has ended, and its files are being finished; or it lost a track.
    case egressUpdated = "egress_updated"
    /// All files of a recording are finished, or it failed.
    case egressEnded = "egress_ended"
}
