import MediaControl
import Primitives
import SDP

// What members do as often as they like is sent to all others: in a large room one of them could fill the server's link, and keep the room service busy.

extension Room {
    /// Counts a change that a member makes of itself. Each sends everybody all that it says about itself, whatever its token permits: in a large room one viewer could
    /// fill the server's link.
    mutating func chargeChange(of member: Member, adding bytes: Int, at now: MonotonicTime) throws(RoomError) {
        let info = member.info
        let all = info.name.utf8.count + info.metadata.utf8.count + Self.bytes(of: info.attributes) + bytes
        var charged = try state.member(member.session)
        try charged.chargeChange(to: state.roster.count, bytes: all, state.context.limits, at: now)
        let budgets = charged.budgets
        state.roster.update(member.session) { $0.budgets = budgets }
    }

    /// Counts what a member does with `tracks` of its tracks, or refuses it for all of them.
    mutating func charge(
        _ change: TrackChange, tracks: Int = 1, of member: Member, at now: MonotonicTime
    ) throws(RoomError) {
        var charged = try state.member(member.session)
        try charged.charge(change, tracks: tracks, to: state.roster.count, state.context.limits, at: now)
        let budgets = charged.budgets
        state.roster.update(member.session) { $0.budgets = budgets }
    }

    /// Counts what an offer makes of tracks that go on, or refuses it: another source behind a section is news to everybody, and other formats are an offer to each receiver.
    mutating func chargeChanges(
        by sections: [NegotiatedSection], on connection: Connection, of member: Member, at now: MonotonicTime
    ) throws(RoomError) {
        var formats = 0, details = 0
        for section in sections {
            guard let sending = section.receiving, let kind = MediaKind(section.kind),
                let track = connection.trackByMid[section.mid].flatMap({ state.routing[$0] })
            else { continue }
            if !track.formats.lookTheSame(as: sending.formats) {
                formats += 1
            } else if track.info.sent(as: sending) != track.info
                || awaitedTrack(sending, kind, section.mid, on: connection, by: member) != nil
            {
                details += 1
            }
        }
        if formats > 0 { try charge(.publication, tracks: formats, of: member, at: now) }
        if details > 0 { try charge(.details, tracks: details, of: member, at: now) }
    }

    /// Counts another audience, to whom each of a member's tracks comes, or for whom it ends: all of them together, since whoever is refused and asks again would
    /// use up each time what it waits for. That nobody is to receive them is never refused.
    mutating func chargeAudience(
        _ audience: Audience?, of member: Member, at now: MonotonicTime
    ) throws(RoomError) {
        let tracks = state.routing.tracks(of: member.session).count
        guard audience != member.audience, audience?.identityCount != 0, tracks > 0 else { return }
        try charge(.publication, tracks: tracks, of: member, at: now)
    }
}
