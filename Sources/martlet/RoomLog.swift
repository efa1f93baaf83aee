import Logging
import MediaControl
import RoomService
import Rooms

/// Writes events of rooms as log lines, with names of rooms and identities, but never addresses.
struct RoomLog: Sendable {
    let logger: Logger

    @Sendable func write(_ entry: RoomLogEntry) {
        switch entry.event {
        // A missing codec is not the server's fault, and is reported to the client by an event.
        // The dominant speaker and the quality change all the time in a healthy room.
        // Clients decide how often participants change their own data.
        case .noCommonCodec, .dominantSpeakerChanged, .qualityChanged, .participantUpdated:
            logger.debug(entry.event.words, entry.event.fields(room: entry.room))
        default: logger.info(entry.event.words, entry.event.fields(room: entry.room))
        }
    }
}

extension RoomLogEvent {
    /// What happened, for people.
    var words: String {
        switch self {
        case .roomStarted: "room started"
        case .roomEnded: "room ended"
        case .participantJoined: "participant joined"
        case .participantUpdated: "participant updated"
        case .participantLeft: "participant left"
        case .trackPublished: "track published"
        case .trackUnpublished: "track unpublished"
        case .trackMuted(let info): info.muted ? "track muted" : "track unmuted"
        case .connectionChanged(_, _, let state, _): "connection \(state.rawValue)"
        case .iceFailed: "ICE failed"
        case .noCommonCodec: "no common codec"
        case .lockChanged(.open, _): "room unlocked"
        case .lockChanged: "room locked"
        case .policyChanged: "policy changed"
        case .permissionsChanged: "permissions changed"
        case .captureChanged(_, let notice): notice.isActive ? "packet capture started" : "packet capture ended"
        case .dominantSpeakerChanged: "dominant speaker changed"
        case .qualityChanged: "quality changed"
        case .recording(let event): event.words
        case .playback(let event): event.kind == .started ? "playback started" : "playback ended"
        case .joinRefused: "join refused"
        case .publicationRefused: "publication refused"
        case .banChanged(_, let until, _): until == nil ? "ban ended" : "ban started"
        case .revocationChanged(_, let until, _): until == nil ? "revocation of tokens ended" : "tokens revoked"
        case .guestWaiting: "guest waits to be let in"
        case .guestDecided(_, let isLetIn, _): isLetIn ? "guest let in" : "guest turned away"
        }
    }

    /// To what and whom.
    func fields(room: String) -> LogFields {
        let room = LogValue.text(room)
        switch self {
        case .roomStarted, .roomEnded:
            return ["room": room]
        case .participantJoined(let info), .participantUpdated(let info):
            return ["room": room, "participant": .text(info.sid), "identity": .text(info.identity)]
        case .participantLeft(let info, let reason, let hasConnected, _):
            return [
                "room": room, "participant": .text(info.sid), "identity": .text(info.identity),
                "reason": .text(reason.rawValue), "connected": .text("\(hasConnected)"),
            ]
        case .trackPublished(let info), .trackUnpublished(let info), .trackMuted(let info):
            return ["room": room, "participant": .text(info.participant), "track": .text(info.sid)]
        case .dominantSpeakerChanged(let participant):
            return ["room": room, "participant": .text(participant ?? "none")]
        case .qualityChanged(let participant, let quality):
            return ["room": room, "participant": .text(participant), "quality": .number(quality)]
        case .recording(let event): return event.fields(room: room)
        case .playback(let event):
            return [
                "room": room, "playback": .text(event.playback), "identity": .text(event.identity),
                "reason": .text(event.reason ?? "none"),
            ]
        case .connectionChanged(let participant, let connection, _, nil):
            return ["room": room, "participant": .text(participant), "connection": .text(connection)]
        case .connectionChanged(let participant, let connection, _, let reason?):
            return [
                "room": room, "participant": .text(participant), "connection": .text(connection),
                "reason": .text(reason),
            ]
        case .iceFailed(let participant, let connection, let server, let client):
            return [
                "room": room, "participant": .text(participant), "connection": .text(connection),
                "serverCandidates": .text(server.text), "clientCandidates": .text(client.text),
            ]
        case .noCommonCodec(let participant, let track):
            return ["room": room, "participant": .text(participant), "track": .text(track ?? "none")]
        case .joinRefused, .publicationRefused, .guestWaiting, .guestDecided, .lockChanged, .policyChanged,
            .permissionsChanged, .banChanged, .captureChanged:
            return ruleFields(room)
        case .revocationChanged(let subject, let until, let by):
            let subject: (name: String, text: String) =
                switch subject {
                case .token(let id): ("tokenId", id)
                case .identity(let name): ("identity", name)
                }
            return [
                subject.name: .text(subject.text), "until": .text(until.map { "\($0)" } ?? "now"),
                "by": .text(by ?? "operator"),
            ]
        }
    }

    /// The fields of events caused by rules and operators.
    private func ruleFields(_ room: LogValue) -> LogFields {
        switch self {
        case .joinRefused(let identity, let code):
            return ["room": room, "identity": .text(identity ?? "none"), "code": .text(code.rawValue)]
        case .guestWaiting(let guest): return ["room": room, "identity": .text(guest.identity)]
        case .guestDecided(let identity, _, let by):
            return ["room": room, "identity": .text(identity), "by": .text(by ?? "operator")]
        case .lockChanged(let lock, let by):
            return ["room": room, "lock": .text(lock.rawValue), "by": .text(by ?? "operator")]
        case .policyChanged(let revision, let by):
            return ["room": room, "revision": .text("\(revision)"), "by": .text(by ?? "operator")]
        case .publicationRefused(let participant, let identity, let code):
            return [
                "room": room, "participant": .text(participant), "identity": .text(identity),
                "code": .text(code.rawValue),
            ]
        case .banChanged(let identity, let until, let reason):
            return [
                "room": room, "identity": .text(identity), "until": .text(until.map { "\($0)" } ?? "now"),
                "reason": .text(reason),
            ]
        case .captureChanged(let participant, let notice):
            return [
                "room": room, "participant": .text(participant), "capture": .text(notice.id), "by": .text(notice.by),
                "payload": .text("\(notice.keepsPayload)"),
            ]
        case .permissionsChanged(let participant, let permissions):
            return ["room": room, "participant": .text(participant), "permissions": .text(permissions.words)]
        default: return ["room": room]
        }
    }
}

extension Permissions {
    /// What is permitted, for a log line.
    fileprivate var words: String {
        let sources = publishSources.map { $0.map(\.rawValue).sorted().joined(separator: "+") }
        let permitted = [
            canPublish ? "publish" + (sources.map { " (\($0))" } ?? "") : nil, canSubscribe ? "subscribe" : nil,
            canPublishData ? "data" : nil, roomAdmin ? "moderate" : nil,
        ]
        return permitted.compactMap { $0 }.joined(separator: ", ")
    }
}

extension RecordingEvent {
    /// What happened, for people.
    fileprivate var words: String {
        switch kind {
        case .started: "recording started"
        case .stopped: "recording stopped"
        case .gap: "a part of a recording is missing"
        case .ready: "recording ready"
        case .failed: "recording failed"
        case .jobStarted: "job on a recording started"
        case .jobFinished: "job on a recording finished"
        case .jobFailed: "job on a recording failed"
        }
    }

    /// The fields that name the recording, and its track or job.
    fileprivate func fields(room: LogValue) -> LogFields {
        guard let job else {
            return [
                "room": room, "recording": .text(recording), "track": .text(track ?? "all"),
                "reason": .text(reason ?? "none"),
            ]
        }
        return ["room": room, "recording": .text(recording), "job": .text(job), "reason": .text(reason ?? "none")]
    }
}
