public import AccessTokens
public import Rooms

// Events are logged, and sent to everybody who follows.

extension RoomHost {
    /// Logs an event of a room, and sends it to everybody who follows.
    func record(_ event: RoomLogEvent, in hosted: HostedRoom) {
        guard let milliseconds = journal.record(event, in: hosted, at: media.wallClockMilliseconds()) else { return }
        totals.connectTimes.add(milliseconds)
    }

    /// Logs an event of something that has outlived its room.
    func record(_ event: RoomLogEvent, ofRoom name: String, sid: String) {
        journal.write(event, room: name, roomSID: sid, sequence: 0, at: media.wallClockMilliseconds())
    }

    /// Logs an event that concerns the server rather than one room.
    func record(_ event: RoomLogEvent) { journal.write(event, at: media.wallClockMilliseconds()) }

    /// No more events follow: the streams of all followers end.
    func closeEvents() { journal.close() }

    /// Follows the events of one room, or, with nil, of all; if `types` are given, only those: first the kept ones after `cursor`, then each as it
    /// happens. Without a cursor, from now on. The stream of a reader that does not keep up ends, and the reader follows again with its last cursor; so
    /// does the stream of a reader whose token, `bearer`, has expired or was revoked.
    public func follow(
        room: String?, types: Set<RoomLogEventType>? = nil, after cursor: EventCursor?, bearer: AccessClaims? = nil
    ) -> EventFeed {
        let feed = journal.follow(room: room, types: types, after: cursor, bearer: bearer) { [weak self] reader in
            Task { await self?.endFollowing(reader) }
        }
        endOutdatedFeeds()
        return feed
    }

    /// Ends the streams of events whose readers' tokens are outdated.
    func endFeeds(where isOutdated: (AccessClaims) -> Bool) { journal.endFollowing(where: isOutdated) }

    /// The position of the last event in the log of all rooms, as cursors have it; 0: there was none.
    public var lastEvent: UInt64 { journal.lastEvent }

    private func endFollowing(_ reader: UInt64) { journal.endFollowing(reader) }

    /// At most `limit` events after `cursor` of one room, or, with nil, of all; if `types` are given, only those.
    public func pastEvents(
        room: String?, types: Set<RoomLogEventType>? = nil, after cursor: EventCursor, limit: Int
    ) -> EventPage { journal.page(room: room, types: types, after: cursor, limit: limit) }
}
