/// The type of an entry of the event log, with the stable word by which readers of events know it.
public enum RoomLogEventType: String, Sendable, Hashable, CaseIterable {
    case roomStarted, roomEnded
    case participantJoined, participantUpdated, participantLeft
    case trackPublished, trackUnpublished, trackMuted, trackUnmuted
    case connectionChanged, iceFailed, noCommonCodec
    case dominantSpeakerChanged, qualityChanged
    case lockChanged, policyChanged, permissionsChanged
    case joinRefused, publicationRefused
    case guestWaiting, guestDecided
    case banStarted, banEnded
    case revocationStarted, revocationEnded
    case captureStarted, captureEnded
    case recordingStarted, recordingStopped, recordingGap, recordingReady, recordingFailed
    case jobStarted, jobFinished, jobFailed
    case playbackStarted, playbackEnded
}

extension RoomLogEvent {
    /// Its type.
    public var type: RoomLogEventType {
        switch self {
        case .roomStarted: .roomStarted
        case .roomEnded: .roomEnded
        case .participantJoined: .participantJoined
        case .participantUpdated: .participantUpdated
        case .participantLeft: .participantLeft
        case .trackPublished: .trackPublished
        case .trackUnpublished: .trackUnpublished
        case .trackMuted(let info): info.muted ? .trackMuted : .trackUnmuted
        case .connectionChanged: .connectionChanged
        case .iceFailed: .iceFailed
        case .noCommonCodec: .noCommonCodec
        case .dominantSpeakerChanged: .dominantSpeakerChanged
        case .qualityChanged: .qualityChanged
        case .lockChanged: .lockChanged
        case .policyChanged: .policyChanged
        case .permissionsChanged: .permissionsChanged
        case .joinRefused: .joinRefused
        case .publicationRefused: .publicationRefused
        case .guestWaiting: .guestWaiting
        case .guestDecided: .guestDecided
        case .banChanged(_, let until, _): until == nil ? .banEnded : .banStarted
        case .revocationChanged(_, let until, _): until == nil ? .revocationEnded : .revocationStarted
        case .captureChanged(_, let notice): notice.isActive ? .captureStarted : .captureEnded
        case .recording(let event): event.kind.type
        case .playback(let event): event.kind == .started ? .playbackStarted : .playbackEnded
        }
    }
}

extension RecordingEvent.Kind {
    fileprivate var type: RoomLogEventType {
        switch self {
        case .started: .recordingStarted
        case .stopped: .recordingStopped
        case .gap: .recordingGap
        case .ready: .recordingReady
        case .failed: .recordingFailed
        case .jobStarted: .jobStarted
        case .jobFinished: .jobFinished
        case .jobFailed: .jobFailed
        }
    }
}
