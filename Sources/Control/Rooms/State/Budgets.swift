import MediaControl
import Primitives
import SDP

// Changes that members can make as often as they like are sent to all others: in a large room, one member could fill the server's link, and keep the room
// service busy.

extension Member {
    /// Limits on what it causes to be sent to everybody.
    struct Budgets: Sendable {
        /// How often it changes its name, metadata and attributes.
        private var changes = RateLimit()
        /// How often it begins to publish, unmutes, and changes a track's properties.
        var publications = RateLimit()

        /// Counts a change of its name, metadata or attributes, `bytes` of which are sent to each of `count` members.
        mutating func chargeChange(
            to count: Int, bytes: Int, _ limits: RoomLimits, at now: MonotonicTime
        ) throws(RoomError) {
            let most = limits.notificationsPerSecond * 5
            let interval = TimeSpan.nanoseconds(1_000_000_000 / Int64(limits.notificationsPerSecond))
            let cost = min(count * (1 + bytes / 1_024), most)
            guard changes.accept(cost, every: interval, atOnce: most, at: now) else {
                throw RoomError(
                    .rateLimited, "too many changes of name, metadata and attributes for a room of this size",
                    retryAfter: .seconds(1))
            }
        }

        /// Counts a change of its tracks, of which each of `count` members is notified. The burst is five seconds' worth, or twice the publication of all
        /// tracks that it may have, whichever is more: a member that comes back publishes anew.
        mutating func charge(
            _ change: TrackChange, tracks: Int = 1, to count: Int, _ limits: RoomLimits, at now: MonotonicTime
        ) throws(RoomError) {
            let (count, perSecond) = (max(count, 1), limits.notificationsPerSecond)
            let atOnce = max(2 * limits.tracksPerParticipant * TrackChange.publication.rawValue, perSecond * 5 / count)
            let interval = TimeSpan.nanoseconds(1_000_000_000 * Int64(count) / Int64(perSecond))
            guard publications.accept(change.rawValue * tracks, every: interval, atOnce: atOnce, at: now) else {
                throw RoomError(
                    .rateLimited, "too many changes of what is published for a room of this size",
                    retryAfter: .seconds(1))
            }
        }

        func areWhole(at now: MonotonicTime) -> Bool { changes.isWhole(at: now) && publications.isWhole(at: now) }

        /// Charges these budgets with what another stay of the same participant has used up.
        mutating func add(_ other: Budgets) {
            changes.usesUp(asMuchAs: other.changes)
            publications.usesUp(asMuchAs: other.publications)
        }
    }
}

/// A change of a member's tracks, with the number of notifications that each other member gets.
enum TrackChange: Int {
    /// Another name or size.
    case details = 1
    /// Includes the mute before it, which is never refused.
    case unmute = 2
    /// For the track, its codec, its size and its end; those for its subscription and its offer only go to their receivers. A changed source may begin and end
    /// as many subscriptions.
    case publication = 4
}

// MARK: - What a member of this room does

extension RoomState {
    /// Counts a change that a member makes to itself. Each sends all its details to everybody, whatever its token permits: in a large room one viewer could
    /// fill the server's link.
    mutating func chargeChange(of member: Member, adding bytes: Int, at now: MonotonicTime) throws(RoomError) {
        let info = member.info
        let all = info.name.utf8.count + info.metadata.utf8.count + info.attributes.byteCount + bytes
        var budgets = try self.member(member.session).budgets
        try budgets.chargeChange(to: roster.count, bytes: all, context.limits, at: now)
        set(budgets, of: member.session)
    }

    /// Counts a change of `tracks` of a member's tracks, or refuses it for all of them.
    mutating func charge(
        _ change: TrackChange, tracks: Int = 1, of session: SessionID, at now: MonotonicTime
    ) throws(RoomError) {
        var budgets = try member(session).budgets
        try budgets.charge(change, tracks: tracks, to: roster.count, context.limits, at: now)
        set(budgets, of: session)
    }

    private mutating func set(_ budgets: Member.Budgets, of session: SessionID) {
        roster.update(session) { $0.budgets = budgets }
    }

    /// Counts the changes that an offer makes to existing tracks, or refuses it: everybody is notified of another track on a section, and other formats cause
    /// an offer to each receiver, as another source may.
    mutating func chargeChanges(
        by sections: [NegotiatedSection], on connection: Connection, of member: Member, at now: MonotonicTime
    ) throws(RoomError) {
        var publications = 0, details = 0
        for section in sections {
            guard let sending = section.receiving, let kind = MediaKind(section.kind),
                let track = connection.trackByMid[section.mid].flatMap({ routing[$0] })
            else { continue }
            let awaited = awaitedTrack(sending, kind, section.mid, on: connection, by: member)
            let source = awaited?.announcement.source ?? track.info.source
            if source != track.info.source || !track.formats.lookTheSame(as: sending.formats) {
                publications += 1
            } else if awaited != nil || track.info.sent(as: sending) != track.info {
                details += 1
            }
        }
        if publications > 0 { try charge(.publication, tracks: publications, of: member.session, at: now) }
        if details > 0 { try charge(.details, tracks: details, of: member.session, at: now) }
    }

    /// Counts a change of the audience, which begins or ends subscriptions to each of a member's tracks: all of them together, because a client that is refused
    /// and asks again would use up its budget each time. An empty audience is never refused.
    mutating func chargeAudience(
        _ audience: Audience?, of member: Member, at now: MonotonicTime
    ) throws(RoomError) {
        let tracks = routing.tracks(of: member.session).count
        guard audience != member.audience, audience?.identityCount != 0, tracks > 0 else { return }
        try charge(.publication, tracks: tracks, of: member.session, at: now)
    }
}
