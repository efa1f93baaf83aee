import AccessTokens
import MediaControl
import Primitives
import SDP

@testable public import Rooms

/// One event of each type, with every member that an event of its type may have.
public enum SampleEvents {
    /// The event of `type`.
    public static func event(_ type: RoomLogEventType) -> RoomLogEvent {
        switch type {
        case .roomStarted: .roomStarted
        case .roomEnded: .roomEnded
        case .participantJoined: .participantJoined(ada)
        case .participantUpdated: .participantUpdated(ada)
        case .participantLeft: .participantLeft(ada, reason: .duplicateIdentity, hasConnected: true)
        case .trackPublished: .trackPublished(track(muted: false))
        case .trackUnpublished: .trackUnpublished(track(muted: false))
        case .trackMuted: .trackMuted(track(muted: true))
        case .trackUnmuted: .trackMuted(track(muted: false))
        case .connectionChanged:
            .connectionChanged(participant: "PA_1", connection: "pub", state: .closed, reason: "consentExpired")
        case .iceFailed:
            .iceFailed(
                participant: "PA_1", connection: "pub",
                server: CandidateSummary([Candidate(foundation: "1", address: "192.0.2.1", port: 7_900)]),
                client: CandidateSummary())
        case .noCommonCodec: .noCommonCodec(participant: "PA_2", track: "TR_1")
        case .dominantSpeakerChanged: .dominantSpeakerChanged(participant: "PA_1")
        case .qualityChanged: .qualityChanged(participant: "PA_1", quality: 4)
        case .lockChanged: .lockChanged(.password, by: "PA_2")
        case .policyChanged: .policyChanged(revision: 2, by: "key/op")
        case .permissionsChanged: .permissionsChanged(participant: "PA_1", permissions)
        case .joinRefused: .joinRefused(identity: "bob", code: .roomFull)
        case .publicationRefused: .publicationRefused(participant: "PA_1", identity: "ada", code: .limitExceeded)
        case .guestWaiting: .guestWaiting(WaitingGuest(identity: "eve", name: "Eve", since: 5))
        case .guestDecided: .guestDecided(identity: "eve", isLetIn: true, by: "PA_1")
        case .banStarted: .banChanged(identity: "eve", until: 9_000, reason: "spam")
        case .banEnded: .banChanged(identity: "eve", until: nil, reason: "")
        case .revocationStarted: .revocationChanged(.token("t-1"), until: 9_000, by: "key/op")
        case .revocationEnded: .revocationChanged(.identity("ada"), until: nil, by: nil)
        case .captureStarted: .captureChanged(participant: "PA_1", capture(isActive: true))
        case .captureEnded: .captureChanged(participant: "PA_1", capture(isActive: false))
        case .recordingStarted: recording(.started)
        case .recordingStopped: recording(.stopped, reason: "requested")
        case .recordingGap: recording(.gap, track: "TR_1", reason: "late", milliseconds: 300)
        case .recordingReady: recording(.ready)
        case .recordingFailed: recording(.failed, track: "TR_1", reason: "disk_full")
        case .jobStarted: job(.jobStarted)
        case .jobFinished: job(.jobFinished)
        case .jobFailed: job(.jobFailed, reason: "interrupted")
        case .playbackStarted: .playback(PlaybackEvent(.started, playback))
        case .playbackEnded: .playback(PlaybackEvent(.ended, playback, reason: "finished"))
        }
    }

    private static let ada: ParticipantInfo = {
        var info = ParticipantInfo(
            sid: "PA_1", identity: "ada lovelace", name: "Ada", metadata: "m", profile: .full, permissions: permissions,
            joinedAt: 7)
        (info.encrypts, info.quality) = (true, 4)
        info.tracks = [track(muted: false)]
        return info
    }()

    private static let permissions: Permissions = {
        var permissions = Permissions(VideoGrant())
        permissions.publishSources = [.microphone]
        return permissions
    }()

    private static func track(muted: Bool) -> TrackInfo {
        var info = TrackInfo(
            sid: "TR_1", participant: "PA_1", identity: "ada", name: "voice", kind: .audio, source: .microphone,
            mid: "0")
        info.muted = muted
        return info
    }

    private static func capture(isActive: Bool) -> CaptureNotice {
        CaptureNotice(id: "CA_1", isActive: isActive, keepsPayload: false, until: 9_000, by: "key/op")
    }

    private static func recording(
        _ kind: RecordingEvent.Kind, track: String? = nil, reason: String? = nil, milliseconds: Int64? = nil
    ) -> RoomLogEvent {
        .recording(
            RecordingEvent(kind, recording: "RC_1", track: track, reason: reason, milliseconds: milliseconds))
    }

    private static func job(_ kind: RecordingEvent.Kind, reason: String? = nil) -> RoomLogEvent {
        var event = RecordingEvent(kind, recording: "RC_1", reason: reason)
        event.job = "JB_1"
        return .recording(event)
    }

    private static let playback = PlaybackInfo(
        sid: "PB_1", participant: "PA_3", identity: "player", peer: PeerID(1), tracks: [], startedAt: 5)
}
