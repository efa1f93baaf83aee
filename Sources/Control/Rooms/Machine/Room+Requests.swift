import MediaControl
import Primitives

extension Room {
    /// Carries out what a session asks for.
    public mutating func perform(
        _ request: SessionRequest, session: SessionID, turn: inout RoomTurn
    ) throws(RoomError) {
        let member = try member(session)
        switch request {
        case .announce(let announcement): try announce(announcement, member, &turn)
        case .setMuted(let track, let muted): try setMuted(track, muted, member, &turn)
        case .unpublish(let track):
            let published = try self.track(track)
            guard published.publisher == session else {
                throw RoomError(.permissionDenied, "the track belongs to another participant")
            }
            unpublish(published.id, &turn)
        case .subscribe, .unsubscribe, .setAutoSubscribe, .setPaused, .setPreference, .setView, .setBandwidth,
            .pauseAllVideo, .setAudioOnly, .requestKeyframe:
            try performSubscribing(request, member, &turn)
        case .setMetadata(let name, let metadata): try setMetadata(name, metadata, member, &turn)
        case .relay(let to, let payload): try relay(payload, to: to, from: member, &turn)
        case .remove(let participant):
            guard member.permissions.roomAdmin else {
                throw RoomError(.permissionDenied, "only a moderator (roomAdmin) may do this")
            }
            remove(try self.session(named: participant), reason: .removed, turn: &turn)
        case .requestRoster: giveRoster(session, &turn)
        case .wantSpeakers(let wants): members[session]?.options.wantsSpeakers = wants
        }
        makeOffers(&turn)
    }

    private mutating func announce(
        _ announcement: TrackAnnouncement, _ member: Member, _ turn: inout RoomTurn
    ) throws(RoomError) {
        guard !announcement.clientTrackID.isEmpty else { throw RoomError(.invalidRequest, "the track id is empty") }
        try TextRule.label.check(announcement.clientTrackID, "the track", tooLong: .invalidRequest)
        try TextRule.label.check(announcement.name ?? "", "the track's name", tooLong: .invalidRequest)
        guard member.permissions.mayPublish(announcement.source) else {
            throw RoomError(.permissionDenied, "not permitted to publish \(announcement.source.rawValue)")
        }
        let id = announcement.clientTrackID
        if let track = member.tracks.compactMap({ tracks[$0] }).first(where: {
            $0.info.clientTrackID == id || $0.info.mid == id
        }) {
            guard announcement.source.fits(track.info.kind) else {
                throw RoomError(
                    .invalidRequest, "\(announcement.source.rawValue) is not a source of \(track.info.kind) tracks")
            }
            update(track, announcement, &turn)
            return
        }
        members[member.session]?.announcements.removeAll { $0.clientTrackID == id }
        guard (members[member.session]?.announcements.count ?? 0) < context.limits.announcementsPerParticipant else {
            throw RoomError(.limitExceeded, "limit of announced tracks reached")
        }
        members[member.session]?.announcements.append(announcement)
    }

    /// The announcement came after the offer, or its track took over a section that had another.
    mutating func update(_ track: PublishedTrack, _ announcement: TrackAnnouncement, _ turn: inout RoomTurn) {
        var info = track.info
        info.source = announcement.source
        info.name = announcement.name ?? info.name
        info.width = announcement.width ?? info.width
        info.height = announcement.height ?? info.height
        info.hint = announcement.hint ?? info.hint
        info.priority = announcement.priority ?? info.priority
        if info != track.info {
            tracks[track.id]?.info = info
            if info.kind == .video, TrackTraits(info) != TrackTraits(track.info) {
                turn.media(.setTrackTraits(track.id, TrackTraits(info)))
            }
            if info.source != track.info.source {
                tracks[track.id]?.description.source = info.source
                if let description = tracks[track.id]?.description { turn.media(.updateTrack(description)) }
            }
            trackChanged(track.id, &turn)
        }
        if let muted = announcement.muted { setMuted(track.id, muted, &turn) }
    }

    private mutating func setMuted(
        _ sid: String, _ muted: Bool, _ member: Member, _ turn: inout RoomTurn
    ) throws(RoomError) {
        let track = try track(sid)
        if track.publisher == member.session {
            setMuted(track.id, muted, &turn)
            return
        }
        guard member.permissions.roomAdmin, muted else {
            throw RoomError(
                .permissionDenied,
                muted ? "only a moderator (roomAdmin) may do this" : "only the publisher can unmute a track")
        }
        try muteByOther(sid, by: member.info.sid, turn: &turn)
    }

    /// Mutes somebody's track; nil: an operator did. Only the publisher can unmute.
    @discardableResult
    public mutating func muteByOther(
        _ sid: String, by: String?, turn: inout RoomTurn
    ) throws(RoomError) -> TrackInfo {
        let track = try track(sid)
        guard !track.info.muted else { return track.info }
        setMuted(track.id, true, &turn)
        tell(track.publisher, .trackMutedByOther(track: sid, by: by), &turn)
        return try self.track(sid).info
    }

    private mutating func setMetadata(
        _ name: String?, _ metadata: String?, _ member: Member, _ turn: inout RoomTurn
    ) throws(RoomError) {
        try TextRule.label.check(name ?? "", "the name")
        try TextRule.metadata.check(metadata ?? "", "the metadata")
        if let name { members[member.session]?.info.name = name }
        if let metadata { members[member.session]?.info.metadata = metadata }
        participantChanged(member.session, &turn)
    }

    private mutating func relay(
        _ payload: String, to name: String, from member: Member, _ turn: inout RoomTurn
    ) throws(RoomError) {
        guard policy.topology == .peerToPeer else {
            throw RoomError(.relayNotAllowed, "only rooms with topology peerToPeer relay messages")
        }
        guard member.permissions.canPublishData else {
            throw RoomError(.permissionDenied, "not permitted to send data")
        }
        guard payload.utf8.count <= context.limits.relayBytes else {
            throw RoomError(.tooLarge, "the payload is too long")
        }
        let target = try session(named: name)
        guard target != member.session, members[target]?.isHidden == false else {
            throw RoomError(.participantNotFound, "there is no such participant")
        }
        tell(target, .relayed(from: member.info.sid, identity: member.info.identity, payload: payload), &turn)
    }

    /// A member that joined without a roster asks for it.
    private mutating func giveRoster(_ session: SessionID, _ turn: inout RoomTurn) {
        guard members[session]?.options.hasRoster == false else { return }
        members[session]?.options.hasRoster = true
        for info in others(than: session) { tell(session, .participantJoined(info), &turn) }
        if let dominant, let sid = members[dominant]?.info.sid {
            tell(session, .dominantSpeakerChanged(participant: sid), &turn)
        }
    }
}
