import MediaControl
import Primitives

/// Where peers and tracks are whose participants were moved. A room's number is the high half of every number that was made in it, and numbers do not change
/// with a move: the worker's tables hang on them.
struct MovedNumbers {
    private var rooms: [UInt64: RoomID] = [:]

    var isEmpty: Bool { rooms.isEmpty }

    /// The peers and tracks with these numbers are in `room` now.
    mutating func add(_ numbers: [UInt64], to room: RoomID) {
        for number in numbers { rooms[number] = room }
    }

    /// Forgets numbers that mean nothing any more.
    mutating func keep(where isAlive: (UInt64, RoomID) -> Bool) {
        if !rooms.isEmpty { rooms = rooms.filter { isAlive($0.key, $0.value) } }
    }

    /// The room that an event is about.
    func room(of event: MediaEvent) -> RoomID {
        switch event {
        case .peerChecked(let id), .peerConnected(let id), .peerMoved(let id), .peerEnded(let id, _),
            .peerMeasured(let id, _),
            .dataChannelOpened(let id, _), .dataChannelClosed(let id, _, _), .dataReceived(let id, _, _):
            room(of: id.rawValue)
        case .trackStarted(let id, _), .trackSilent(let id), .trackResumed(let id),
            .trackDimensions(let id, _, _, _), .layersWanted(let id, _):
            room(of: id.rawValue)
        // Subscriptions are not moved.
        case .subscriptionStarted(let id), .subscriptionHasNoCommonCodec(let id), .subscriptionHeld(let id, _):
            RoomID(id.rawValue >> 32)
        case .speakersChanged(let id, _), .dominantSpeakerChanged(let id, _): id
        }
    }

    private func room(of number: UInt64) -> RoomID { rooms[number] ?? RoomID(number >> 32) }
}
