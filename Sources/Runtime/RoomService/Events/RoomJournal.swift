import AccessTokens
import MediaControl
import Primitives
import Rooms

/// Writes down what happens in rooms: for all who follow events, for the log, for stays' summaries, and for traces of joins.
struct RoomJournal: Sendable {
    private let log: @Sendable (RoomLogEntry) -> Void
    private let stayEnded: @Sendable (StaySummary) -> Void
    /// nil: nobody traces joins.
    private let traced: (@Sendable (JoinTrace) -> Void)?
    private var events: EventLog
    private var departing = DepartingStays()
    /// Events that concern the server so far.
    private var serverEvents: UInt64 = 0

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
        if case .participantLeft(let info, _, _, _) = event { trace(hosted, at: at, leaving: info.sid) }
        switch hosted.stays.note(event, at: at, room: hosted.room.name, roomSID: hosted.room.sid) {
        case .connected(let milliseconds): return milliseconds
        case .ended(var stay):
            stay.names = hosted.trackNames
            if let summary = departing.add(stay, at: at) { stayEnded(summary) }
        case nil: break
        }
        return nil
    }

    /// What a connection of a stay that is over has carried at last.
    mutating func finish(_ peer: PeerID, _ last: EndedPeer, at: Int64) {
        if let summary = departing.finish(peer, last, at: at) { stayEnded(summary) }
    }

    /// Nobody waits any longer for the last counters of stays that ended before `at`, or with nil of any.
    mutating func endOverdueStays(at: Int64?) {
        for summary in departing.takeOverdue(at: at) { stayEnded(summary) }
    }

    /// Writes down what concerns no room's state, such as what happens to a recording after its room has ended.
    mutating func write(_ event: RoomLogEvent, room: String, roomSID: String, sequence: UInt64, at: Int64) {
        log(events.append(room: room, roomSID: roomSID, sequence: sequence, at: at, event))
    }

    /// Writes down what concerns the server rather than one room.
    mutating func write(_ event: RoomLogEvent, at: Int64) {
        serverEvents += 1
        write(event, room: "", roomSID: "", sequence: serverEvents, at: at)
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
        room: String?, types: Set<RoomLogEventType>?, after cursor: EventCursor?, bearer: AccessClaims?,
        _ ended: @escaping @Sendable (UInt64) -> Void
    ) -> EventFeed {
        events.follow(room: room, types: types, after: cursor, bearer: bearer, onEnd: ended)
    }

    /// The position of the last event in the log.
    var lastEvent: UInt64 { events.last }

    mutating func endFollowing(_ reader: UInt64) { events.endFollowing(reader) }

    /// All whose tokens are no longer good come to the end.
    mutating func endFollowing(where isOutdated: (AccessClaims) -> Bool) { events.endFollowing(where: isOutdated) }

    func page(room: String?, types: Set<RoomLogEventType>?, after cursor: EventCursor, limit: Int) -> EventPage {
        events.page(room: room, types: types, after: cursor, limit: limit)
    }

    /// No further events come: all who follow come to the end.
    mutating func close() { events.close() }
}
