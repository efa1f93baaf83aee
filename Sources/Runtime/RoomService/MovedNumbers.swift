import MediaControl
import Primitives

/// The current rooms of peers and tracks whose participants were moved. A room's number is the high half of every number that was made in it, and numbers do
/// not change with a move, because the worker's tables depend on them.
struct MovedNumbers {
    private var rooms: [UInt64: RoomID] = [:]

    var isEmpty: Bool { rooms.isEmpty }

    /// The peers and tracks with these numbers are in `room` now.
    mutating func add(_ numbers: [UInt64], to room: RoomID) {
        for number in numbers { rooms[number] = room }
    }

    /// Removes numbers that are no longer in use.
    mutating func keep(where isAlive: (UInt64, RoomID) -> Bool) {
        if !rooms.isEmpty { rooms = rooms.filter { isAlive($0.key, $0.value) } }
    }

    /// The room that an event belongs to.
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
