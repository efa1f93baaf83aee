import Logging
import RoomService
import Rooms

/// Writes what happens in rooms as log lines: names of rooms and identities, never addresses.
struct RoomLog: Sendable {
    let logger: Logger

    @Sendable func write(_ entry: RoomLogEntry) {
        switch entry.event {
        case .connectionChanged(participant: _, connection: let connection, state: let state, reason: let reason?):
            logger.info(
                "connection \(state.rawValue)",
                ["room": .text(entry.room), "connection": .text(connection), "reason": .text(reason)])
        case .noCommonCodec(participant: let participant, track: let track):
            logger.warning(
                "no common codec",
                ["room": .text(entry.room), "participant": .text(participant), "track": .text(track ?? "")])
        default: logger.info("\(entry.event)", ["room": .text(entry.room)])
        }
    }
}
