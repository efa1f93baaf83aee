import AccessTokens
import Rooms

/// Writes down what happens in rooms: for all who follow events, for the log, for stays' summaries, and for traces of joins.
struct RoomJournal: Sendable {
    private let log: @Sendable (RoomLogEntry) -> Void
    private let stayEnded: @Sendable (StaySummary) -> Void
    /// nil: nobody traces joins.
    private let traced: (@Sendable (JoinTrace) -> Void)?
    private var events: EventLog

    init(
        maxEntries: Int, log: @escaping @Sendable (RoomLogEntry) -> Void,
        stayEnded: @escaping @Sendable (StaySummary) -> Void, traced: (@Sendable (JoinTrace) -> Void)?
    ) {
        self.log = log
        self.stayEnded = stayEnded
        self.traced = traced
        var random = SystemRandomNumberGenerator()
        events = EventLog(epoch: EventCursor.newEpoch(using: &random), maxEntries: maxEntries)
    }

    /// Writes down what happened in a room, and tells everybody who follows. Returns how long a stay has taken to connect, in milliseconds, where this
    /// says so.
    mutating func record(_ event: RoomLogEvent, in hosted: HostedRoom, at: Int64) -> Int64? {
        guard !hosted.isCheck else { return nil }
        write(event, room: hosted.room.name, roomSID: hosted.room.sid, sequence: hosted.nextEvent(), at: at)
        if case .participantLeft(let info, _, _) = event { trace(hosted, at: at, leaving: info.sid) }
        switch hosted.stays.note(event, at: at, room: hosted.room.name, roomSID: hosted.room.sid) {
        case .connected(let milliseconds): return milliseconds
        case .ended(let summary): stayEnded(summary)
        case nil: break
        }
        return nil
    }

    /// Writes down what concerns no room's state, such as what happens to a recording after its room has ended.
    mutating func write(_ event: RoomLogEvent, room: String, roomSID: String, sequence: UInt64, at: Int64) {
        log(events.append(room: room, roomSID: roomSID, sequence: sequence, at: at, event))
    }

    /// Hands on how the joins went that have come to their end, one way or the other.
    func trace(_ hosted: HostedRoom, at: Int64, leaving: String? = nil) {
        guard let traced else { return }
        for trace in hosted.stays.takeTraces(at: at, room: hosted.room.name, leaving: leaving) { traced(trace) }
    }

    /// The same for a join that was refused.
    func trace(_ refusal: RoomError.Code, of request: JoinRequest, defaultRoom: String, at: Int64) {
        traced?(
            JoinTrace(
                room: request.claims.video.room ?? request.room ?? defaultRoom, participant: nil,
                profile: request.profile, client: request.client, joinedAt: at, origin: request.origin,
                outcome: .refused(refusal)))
    }
}

// MARK: - Following

extension RoomJournal {
    mutating func follow(
        room: String?, after cursor: EventCursor?, _ ended: @escaping @Sendable (UInt64) -> Void
    ) -> EventFeed {
        events.follow(room: room, after: cursor, onEnd: ended)
    }

    mutating func endFollowing(_ reader: UInt64) { events.endFollowing(reader) }

    func page(room: String?, after cursor: EventCursor, limit: Int) -> EventPage {
        events.page(room: room, after: cursor, limit: limit)
    }

    /// No further events come: all who follow come to the end.
    mutating func close() { events.close() }
}
