extension Room {
    /// A new id of a capture.
    public static func captureID(turn: inout RoomTurn) -> String { turn.sid("CA_") }

    /// Tells a participant that its packets are captured, or are not any more, and writes it down. One that has left is only written down.
    public mutating func noteCapture(_ notice: CaptureNotice, of participant: String, turn: inout RoomTurn) {
        if let session = find(participant) { roster.notify(session, .captureChanged(notice), &turn) }
        turn.log(.captureChanged(participant: participant, notice))
    }
}
