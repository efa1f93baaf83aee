import Primitives

// What members do as often as they like is sent to all others: in a large room one of them could fill the server's link, and keep the room service busy.

extension Room {
    /// Counts a change that a member makes of itself. Each sends everybody all that it says about itself, whatever its token permits: in a large room one viewer could
    /// fill the server's link.
    mutating func chargeChange(of member: Member, adding bytes: Int, at now: MonotonicTime) throws(RoomError) {
        let info = member.info
        let all = info.name.utf8.count + info.metadata.utf8.count + Self.bytes(of: info.attributes) + bytes
        var charged = member
        try charged.chargeChange(to: state.roster.count, bytes: all, state.context.limits, at: now)
        let changes = charged.changes
        state.roster.update(member.session) { $0.changes = changes }
    }

    /// Counts what a member does with its tracks, or refuses it.
    mutating func charge(_ change: TrackChange, of member: Member, at now: MonotonicTime) throws(RoomError) {
        var charged = member
        try charged.charge(change, to: state.roster.count, state.context.limits, at: now)
        let publications = charged.publications
        state.roster.update(member.session) { $0.publications = publications }
    }

    /// Counts another audience, to whom each of a member's tracks comes, or for whom it ends. That nobody is to receive them is never refused.
    mutating func chargeAudience(
        _ audience: Audience?, of member: Member, at now: MonotonicTime
    ) throws(RoomError) {
        guard audience != member.audience, audience?.identityCount != 0 else { return }
        for _ in state.routing.tracks(of: member.session) {
            try charge(.publication, of: try state.member(member.session), at: now)
        }
    }
}
