import Forwarding
import MediaControl
import Primitives

// Rooms: how they are added and removed, their dominant speaker, and the layers that nobody in them prefers any more.

extension WorkerEngine {
    func addRoom(_ id: RoomID) -> Bool {
        guard tables.roomIndex[id.rawValue] == nil else { return false }
        tables.addRoom(id)
        return true
    }

    func removeRoom(_ id: RoomID) -> Bool {
        guard let index = tables.roomIndex[id.rawValue], tables.rooms[index].pointee.peers.isEmpty else {
            return false
        }
        deadlines.remove(.room(index))
        tables.removeRoom(index)
        return true
    }

    /// Moves a peer into another room: its tracks compete with the tracks there, and no longer with those of the former room.
    func movePeer(_ id: PeerID, to room: RoomID, at now: MonotonicTime) -> Bool {
        guard let index = tables.peerIndex[id.rawValue], let target = tables.roomIndex[room.rawValue] else {
            return false
        }
        guard tables.peers[index].pointee.room != target else { return true }
        let uplink = tables.peers[index].pointee.uplink
        for case let track? in uplink.tracks { leaveRoom(track.tag) }
        setDeadline(ofRoom: tables.peers[index].pointee.room)
        tables.movePeer(index, to: target)
        for case let track? in uplink.tracks { enterRoom(track.tag, at: now) }
        return true
    }

    /// A track belongs to its peer's room from now on: it may be the dominant speaker, and its layers may be without demand there.
    func enterRoom(_ track: Int, at now: MonotonicTime) {
        let state = tables.tracks[track]
        let room = tables.peers[state.pointee.peer].pointee.room
        tables.rooms[room].pointee.speakers.add(state.pointee.track, at: now)
        if state.pointee.demand.deadline != .distantFuture { tables.rooms[room].pointee.fading.add(state.pointee.id) }
        setDeadline(ofRoom: room)
    }

    /// A track, which nobody receives any more, leaves its peer's room.
    func leaveRoom(_ track: Int) {
        let state = tables.tracks[track]
        let room = tables.peers[state.pointee.peer].pointee.room
        tables.releasePlace(of: track)
        state.pointee.isWithheld = false
        tables.rooms[room].pointee.speakers.remove(state.pointee.id)
        collectSpeakerEvents(of: room)
    }

    /// Finds the dominant speaker, and announces layers that have been without demand for long enough.
    func advanceRoom(_ index: Int, to now: MonotonicTime) {
        let speakers = tables.rooms[index].pointee.speakers
        speakers.advance(to: now)
        collectSpeakerEvents(of: index)
        for (track, layers) in tables.rooms[index].pointee.fading.expire(in: tables, at: now) {
            announce(layers, of: track)
        }
        setDeadline(ofRoom: index)
    }

    /// Sets a room's next deadline.
    func setDeadline(ofRoom index: Int) {
        let room = tables.rooms[index]
        let fading = room.pointee.fading.nextDeadline(in: tables)
        deadlines.set(.room(index), to: min(room.pointee.speakers.nextDeadline, fading))
    }

    func collectSpeakerEvents(of room: Int) {
        let speakers = tables.rooms[room].pointee.speakers
        guard speakers.hasEvents else { return }
        for event in speakers.consumeEvents() {
            if case .dominantSpeakerChanged(_, let track) = event { dominantChanged(in: room, to: track, at: clock) }
            emit(event)
        }
    }

    /// This many decisions, of 5 to 10 us each (estimated), leave most of a millisecond to packets.
    private static let decisionsPerMillisecond = 32

    /// The room's dominant speaker changed: its subscribers' videos are evaluated at once, those of a large room within some milliseconds. A thousand
    /// decisions in one turn would keep packets waiting for milliseconds.
    func dominantChanged(in room: Int, to track: TrackID?, at now: MonotonicTime) {
        let owner = track.flatMap { tables.trackIndex[$0.rawValue] }.map { tables.tracks[$0].pointee.peer } ?? -1
        guard tables.rooms[room].pointee.dominantPeer != owner else { return }
        tables.rooms[room].pointee.dominantPeer = owner
        var evaluated = 0
        for index in tables.rooms[room].pointee.peers.from(0) {
            guard let downlink = tables.peers[index].pointee.downlink else { continue }
            if downlink.pointee.condition(at: now).certainty != .unknown || downlink.pointee.hasVideoLimit {
                scheduleAllocation(of: index, at: now + .milliseconds(Int64(evaluated / Self.decisionsPerMillisecond)))
                evaluated += 1
            }
        }
    }
}
