public import AccessTokens
public import Rooms

// What happens is written down, and told to whoever follows.

extension RoomHost {
    /// Writes down what happened in a room, and tells everybody who follows.
    func record(_ event: RoomLogEvent, in hosted: HostedRoom) {
        guard let milliseconds = journal.record(event, in: hosted, at: media.wallClockMilliseconds()) else { return }
        totals.connectTimes.add(milliseconds)
    }

    /// Writes down what happened to what outlives its room, which is no longer here.
    func record(_ event: RoomLogEvent, ofRoom name: String, sid: String) {
        journal.write(event, room: name, roomSID: sid, sequence: 0, at: media.wallClockMilliseconds())
    }

    /// Writes down what concerns the server rather than one room.
    func record(_ event: RoomLogEvent) { journal.write(event, at: media.wallClockMilliseconds()) }

    /// No further events come: all who follow come to the end.
    func closeEvents() { journal.close() }

    /// Follows the events of one room, or with nil of all, of `types` alone where there are some: first those after `cursor` that are kept, then each as it
    /// happens. Without a cursor from now on. A reader that does not keep up comes to the end of its stream, and follows again with its last cursor; so
    /// does one whose token, `bearer`, has expired or was revoked.
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

    /// At most `limit` events after `cursor` of one room, or with nil of all; of `types` alone where there are some.
    public func pastEvents(
        room: String?, types: Set<RoomLogEventType>? = nil, after cursor: EventCursor, limit: Int
    ) -> EventPage { journal.page(room: room, types: types, after: cursor, limit: limit) }
}
