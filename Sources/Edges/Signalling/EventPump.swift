import RoomService
import Rooms

/// Takes a session's events to its socket, in order, until one of them ends.
struct EventPump<Socket: SignallingSocket>: Sendable {
    let events: SessionEvents
    let socket: Socket

    /// Runs until the session ends, another socket takes it over, or the task is cancelled because the socket is gone.
    func run() async -> EventPumpEnd {
        for await event in events {
            socket.send(ServerMessage.event(event).text)
            if case .ended(let reason) = event.event {
                socket.close(code: reason.closeCode, reason: reason.rawValue)
                return .sessionEnded
            }
        }
        if Task.isCancelled { return .socketGone }
        socket.close(code: CloseCode.resumedElsewhere, reason: "resumed on another socket")
        return .resumedElsewhere
    }
}

/// Why a pump stopped.
enum EventPumpEnd: Sendable, Hashable {
    case sessionEnded, resumedElsewhere, socketGone
}

extension LeaveReason {
    /// The close code of a socket whose session ended for this reason.
    var closeCode: UInt16 {
        switch self {
        case .left: CloseCode.left
        case .serverShutdown: CloseCode.goingAway
        case .removed: CloseCode.removed
        case .duplicateIdentity: CloseCode.duplicateIdentity
        case .roomDeleted: CloseCode.roomDeleted
        case .tooSlow: CloseCode.tooSlow
        case .timeout: CloseCode.timeout
        case .connectionLost: CloseCode.ended
        }
    }
}
