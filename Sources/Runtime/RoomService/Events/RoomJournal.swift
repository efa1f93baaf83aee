import AccessTokens
import MediaControl
import Primitives
import Rooms

/// Records what happens in rooms: for followers of events, for the log, for summaries of stays, and for traces of joins.
struct RoomJournal: Sendable {
    private let log: @Sendable (RoomLogEntry) -> Void
    private let stayEnded: @Sendable (StaySummary) -> Void
    /// nil: joins are not traced.
    private let traced: (@Sendable (JoinTrace) -> Void)?
    private var events: EventLog
    private var departing = DepartingStays()
    /// The number of events that concern the server so far.
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

    /// Records an event of a room, and sends it to all followers. If it is a stay's first connection, returns the milliseconds that this took since the join.
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

    /// Adds the final counters of a connection whose stay has ended.
    mutating func finish(_ peer: PeerID, _ last: EndedPeer, at: Int64) {
        if let summary = departing.finish(peer, last, at: at) { stayEnded(summary) }
    }

    /// The last counters of stays that ended before `at`, or, with nil, of any, are no longer awaited.
    mutating func endOverdueStays(at: Int64?) {
        for summary in departing.removeOverdue(at: at) { stayEnded(summary) }
    }

    /// Records an event that does not concern the state of a room, for example of a recording after its room has ended.
    mutating func write(_ event: RoomLogEvent, room: String, roomSID: String, sequence: UInt64, at: Int64) {
        log(events.append(room: room, roomSID: roomSID, sequence: sequence, at: at, event))
    }

    /// Records an event that concerns the server rather than one room.
    mutating func write(_ event: RoomLogEvent, at: Int64) {
        serverEvents += 1
        write(event, room: "", roomSID: "", sequence: serverEvents, at: at)
    }

    /// Passes on the traces of joins that have completed or failed.
    func trace(_ hosted: HostedRoom, at: Int64, leaving: String? = nil) {
        guard let traced else { return }
        for trace in hosted.stays.consumeTraces(at: at, room: hosted.room.name, leaving: leaving) { traced(trace) }
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

    /// The streams of all readers whose tokens are no longer valid end.
    mutating func endFollowing(where isOutdated: (AccessClaims) -> Bool) { events.endFollowing(where: isOutdated) }

    func page(room: String?, types: Set<RoomLogEventType>?, after cursor: EventCursor, limit: Int) -> EventPage {
        events.page(room: room, types: types, after: cursor, limit: limit)
    }

    /// No more events follow: the streams of all followers end.
    mutating func close() { events.close() }
}
