import Logging
import MediaControl
import RoomService
import Rooms

/// Writes what happens in rooms as log lines: names of rooms and identities, never addresses.
struct RoomLog: Sendable {
    let logger: Logger

    @Sendable func write(_ entry: RoomLogEntry) {
        switch entry.event {
        // The client is told by an event of its own; a browser without a codec is no fault of the server's.
        case .noCommonCodec: logger.debug(entry.event.words, entry.event.fields(room: entry.room))
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
        case .participantLeft: "participant left"
        case .trackPublished: "track published"
        case .trackUnpublished: "track unpublished"
        case .trackMuted(_, true): "track muted"
        case .trackMuted(_, false): "track unmuted"
        case .connectionChanged(_, _, let state, _): "connection \(state.rawValue)"
        case .iceFailed: "ICE failed"
        case .noCommonCodec: "no common codec"
        case .lockChanged(.open, _): "room unlocked"
        case .lockChanged: "room locked"
        case .policyChanged: "policy changed"
        case .permissionsChanged: "permissions changed"
        }
    }

    /// To what and whom.
    func fields(room: String) -> LogFields {
        let room = LogValue.text(room)
        switch self {
        case .roomStarted, .roomEnded:
            return ["room": room]
        case .participantJoined(let participant, let identity):
            return ["room": room, "participant": .text(participant), "identity": .text(identity)]
        case .participantLeft(let participant, let identity, let reason):
            return [
                "room": room, "participant": .text(participant), "identity": .text(identity),
                "reason": .text(reason.rawValue),
            ]
        case .trackPublished(let participant, let track), .trackUnpublished(let participant, let track):
            return ["room": room, "participant": .text(participant), "track": .text(track)]
        case .trackMuted(let track, _):
            return ["room": room, "track": .text(track)]
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
        case .lockChanged(let lock, let by):
            return ["room": room, "lock": .text(lock.rawValue), "by": .text(by ?? "operator")]
        case .policyChanged(let revision):
            return ["room": room, "revision": .text("\(revision)")]
        case .permissionsChanged(let participant, let permissions):
            return ["room": room, "participant": .text(participant), "permissions": .text(permissions.words)]
        case .noCommonCodec(let participant, let track):
            return ["room": room, "participant": .text(participant), "track": .text(track ?? "none")]
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
