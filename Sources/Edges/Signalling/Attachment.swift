import RoomService
import Rooms

/// A session as one socket holds it: until the session ends, the socket closes, or another socket resumes it.
struct Attachment: Sendable {
    let session: SessionID
    let events: SessionEvents
    /// The number of the stream, so that a socket that closes late does not detach its successor.
    let number: UInt64

    /// Detaches the session, which continues without this socket. false: it had ended, or another socket has it.
    @discardableResult
    func detach(from rooms: RoomHost) async -> Bool { await rooms.detach(session, attachment: number) }

    /// Records a keep-alive. false: another socket has the session.
    func keepAlive(in rooms: RoomHost) async -> Bool { await rooms.keepAlive(session, attachment: number) }

    /// Ends the session, unless another socket has it.
    func leave(_ rooms: RoomHost) async { await rooms.leave(session, attachment: number) }

    /// Sends the events to the socket, in order, and closes it when there are no more.
    func pump(to socket: some SignallingSocket, texts: EventTexts, rooms: RoomHost) async {
        for await event in events {
            socket.send(texts.text(of: event))
            guard case .ended(let reason, _) = event.event else { continue }
            return socket.close(code: reason.closeCode, reason: reason.rawValue)
        }
        guard !Task.isCancelled else { return }
        if await detach(from: rooms) {
            socket.close(code: CloseCode.tryAgainLater, reason: "the client reads too slowly")
        } else {
            socket.close(code: CloseCode.resumedElsewhere, reason: "resumed on another socket")
        }
    }
}

extension LeaveReason {
    /// The close code of a socket whose session ended for this reason.
    var closeCode: UInt16 {
        switch self {
        case .left: CloseCode.left
        case .serverShutdown: CloseCode.goingAway
        case .removed, .policyChanged: CloseCode.removed
        case .stayDurationReached, .tokenExpired, .tokenRevoked: CloseCode.ended
        case .duplicateIdentity: CloseCode.duplicateIdentity
        case .roomDeleted, .roomDurationReached: CloseCode.roomDeleted
        case .tooSlow: CloseCode.tooSlow
        case .timeout: CloseCode.timeout
        // A session that moves continues.
        case .connectionLost, .moved: CloseCode.ended
        }
    }
}
