import MediaControl
import Primitives

/// The effects of a change of a room's rules on its participants: the room, and a copy of it in which the rules were changed.
struct RoomComparison {
    private let room: Room
    private let copy: Room

    init(_ room: Room, _ copy: Room) {
        self.room = room
        self.copy = copy
    }

    /// Participants that the change affects, in the order in which they joined.
    func changes(at turn: borrowing RoomTurn) -> [PolicyImpact.Participant] {
        var changes: [PolicyImpact.Participant] = []
        for session in room.sessions {
            guard var change = change(of: session) else { continue }
            let end = copy.state.roster[session].map { copy.endOfStay($0) } ?? .distantFuture
            if change.changesEnd, end < .distantFuture {
                change.endsAt = turn.wallClock + (end - turn.now).milliseconds
            }
            changes.append(change)
        }
        return changes
    }

    /// How the change affects `session`; nil if it does not.
    private func change(of session: SessionID) -> PolicyImpact.Participant? {
        guard let member = room.state.roster[session] else { return nil }
        let none = PolicyImpact.Participant(sid: member.info.sid, identity: member.info.identity)
        var change = none
        guard let other = copy.state.roster[session] else {
            change.leaves = true
            return change
        }
        change.changesEnd = room.endOfStay(member) != copy.endOfStay(other)
        for id in room.state.routing.tracks(of: session) {
            guard let track = room.state.routing[id] else { continue }
            if let kept = copy.state.routing[id] {
                if kept.description.maximumBitrate != track.description.maximumBitrate {
                    change.cappedTracks.append(track.info.sid)
                }
            } else {
                change.endedTracks.append(track.info.sid)
            }
        }
        let before = Self.subscribedTracks(of: session, in: room)
        let after = Self.subscribedTracks(of: session, in: copy)
        change.endedSubscriptions = before.filter { !after.contains($0) }
        change.newSubscriptions = after.filter { !before.contains($0) }
        let recorded = Self.recordedTracks(of: session, in: room)
        let recordedLater = Self.recordedTracks(of: session, in: copy)
        change.endedRecordings = recorded.filter { !recordedLater.contains($0) }
        change.newRecordings = recordedLater.filter { !recorded.contains($0) }
        change.changesBandwidth =
            room.state.settings(of: member).downlinkPolicy != copy.state.settings(of: other).downlinkPolicy
        return change == none ? nil : change
    }

    private static func recordedTracks(of session: SessionID, in room: Room) -> [String] {
        room.state.routing.tracks(of: session).filter { room.recordings.isRecorded($0) }.compactMap {
            room.state.routing[$0]?.info.sid
        }
    }

    private static func subscribedTracks(of session: SessionID, in room: Room) -> [String] {
        room.state.routing.subscriptions(of: session).compactMap { room.state.routing[$0] }.compactMap {
            room.state.routing.track(of: $0)?.info.sid
        }
    }
}
