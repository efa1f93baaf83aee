import Logging
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
        case .noCommonCodec(let participant, let track):
            return ["room": room, "participant": .text(participant), "track": .text(track ?? "none")]
        }
    }
}
