import EdgeSupport
import RoomService
import Rooms

/// What happened, in LiveKit's words.
struct WebhookNews: Sendable {
    enum Subject: Sendable {
        case room
        /// `reason`: why it left; nil: it is in the room.
        case participant(ParticipantInfo, ServerSignal.DisconnectReason?)
        /// With its publisher's name.
        case track(TrackInfo, String)
        /// Its sid.
        case recording(String)
    }

    var type: LiveKitEventType
    var subject: Subject
    /// The room after it.
    var room: RoomInfo
}

/// A room as the events report it, for webhooks that show it with each of them.
struct WebhookRoom: Sendable {
    private struct Member: Sendable {
        var info: ParticipantInfo
        /// One of its connections is or was up: from then on LiveKit considers it joined.
        var hasConnected = false
    }

    private(set) var info: RoomInfo
    private var members: [String: Member] = [:]

    /// The room of its first event.
    init(_ entry: RoomLogEntry) {
        info = RoomInfo(
            sid: entry.roomSID, name: entry.room, metadata: "", topology: .routed, maxParticipants: nil,
            createdAt: entry.at)
    }

    /// Applies an event; returns the webhook events to post.
    mutating func apply(_ event: RoomLogEvent) -> [WebhookNews] { news(reports(of: event)) }

    /// A participant has arrived with connections that are up.
    mutating func connect(_ participant: String) -> [WebhookNews] { news(connected(participant)) }

    private mutating func news(_ reports: [(LiveKitEventType, WebhookNews.Subject)]) -> [WebhookNews] {
        info.participants = members.values.count { $0.hasConnected }
        info.publishers = members.values.count { $0.hasConnected && !$0.info.tracks.isEmpty }
        return reports.map { WebhookNews(type: $0, subject: $1, room: info) }
    }

    private mutating func reports(of event: RoomLogEvent) -> [(LiveKitEventType, WebhookNews.Subject)] {
        switch event {
        case .roomStarted: return [(.roomStarted, .room)]
        case .roomEnded:
            members = [:]
            return [(.roomFinished, .room)]
        case .participantJoined(let info):
            members[info.sid] = Member(info: info)
            return []
        case .participantUpdated(let info):
            members[info.sid]?.info = info
            return []
        case .connectionChanged(let participant, _, .connected, _): return connected(participant)
        case .participantLeft(let info, let reason, let hasConnected, _):
            members[info.sid] = nil
            let type: LiveKitEventType = hasConnected ? .participantLeft : .participantConnectionAborted
            return [(type, .participant(info, ServerSignal.DisconnectReason(reason)))]
        case .trackPublished(let track):
            members[track.participant]?.info.tracks.append(track)
            return isAnnounced(track) ? [(.trackPublished, subject(track))] : []
        case .trackUnpublished(let track):
            members[track.participant]?.info.tracks.removeAll { $0.sid == track.sid }
            return isAnnounced(track) ? [(.trackUnpublished, subject(track))] : []
        case .recording(let event): return reports(of: event)
        // A file that is played into the room has no connection that could come up.
        case .playback(let event) where event.kind == .started: return connected(event.participant)
        case .trackMuted, .connectionChanged, .iceFailed, .noCommonCodec, .dominantSpeakerChanged, .qualityChanged,
            .lockChanged, .policyChanged, .permissionsChanged, .captureChanged, .guestWaiting, .guestDecided, .playback,
            .joinRefused, .publicationRefused, .banChanged, .revocationChanged:
            // LiveKit's webhooks have no events for these.
            return []
        }
    }

    /// A participant's first connection is up: its tracks are reported after it.
    private mutating func connected(_ participant: String) -> [(LiveKitEventType, WebhookNews.Subject)] {
        guard let member = members[participant], !member.hasConnected else { return [] }
        members[participant]?.hasConnected = true
        return [(.participantJoined, .participant(member.info, nil))]
            + member.info.tracks.map { (.trackPublished, subject($0)) }
    }

    private func isAnnounced(_ track: TrackInfo) -> Bool { members[track.participant]?.hasConnected ?? false }

    private func subject(_ track: TrackInfo) -> WebhookNews.Subject {
        .track(track, members[track.participant]?.info.name ?? "")
    }

    private mutating func reports(of event: RecordingEvent) -> [(LiveKitEventType, WebhookNews.Subject)] {
        switch event.kind {
        case .started: return [(.egressStarted, .recording(event.recording))]
        case .stopped: return [(.egressUpdated, .recording(event.recording))]
        case .failed where event.track != nil: return [(.egressUpdated, .recording(event.recording))]
        case .ready, .failed: return [(.egressEnded, .recording(event.recording))]
        case .gap, .jobStarted, .jobFinished, .jobFailed: return []
        }
    }
}
