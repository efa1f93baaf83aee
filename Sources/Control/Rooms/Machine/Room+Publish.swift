import MediaControl
import Primitives
import SDP

// Tracks: they come with descriptions, are announced and muted.

extension Room {
    /// A track arrives on a section: a new one, or one that continues under new terms.
    mutating func receive(
        _ sending: RemoteSending, section: NegotiatedSection, on name: String, of session: SessionID,
        _ turn: inout RoomTurn
    ) {
        guard let kind = MediaKind(section.kind), let connection = try? state.connection(name, of: session),
            let member = state.roster[session]
        else { return }
        let pending = state.awaitedTrack(sending, kind, section.mid, on: connection, by: member)
        let announced = pending?.announcement
        if let pending {
            state.roster.update(session) { member in member.announcements.remove(pending.sid) }
        }
        if let id = connection.trackByMid[section.mid], let track = state.routing[id] {
            // Another track of the client on the same section (replaceTrack), which may have been announced as something else.
            if let announced { update(track, announced, &turn) }
            if let track = state.routing[id] { update(track, with: sending, &turn) }
            return
        }
        guard let source = state.permittedSource(kind, sending, mid: section.mid, of: name, member) else { return }
        // An offer was checked as a whole; a client's answer to the server's offer may bring back a track that has ended since.
        if let code = refusal(of: kind, by: member, at: turn.now) {
            return refuse(sending, code, mid: section.mid, on: name, of: session, &turn)
        }
        if let main = announced?.backupOf {
            return state.receiveBackup(of: main, sending, mid: section.mid, on: connection, of: session, &turn)
        }
        let id = TrackID(state.nextNumber())
        var info = TrackInfo(
            sid: pending?.sid ?? turn.sid("TR_"), participant: member.info.sid, identity: member.info.identity,
            name: "", kind: kind, source: source, mid: section.mid,
            clientTrackID: sending.shownTrackID)
        if let announced { info.describe(as: announced) }
        info.agreedCodec = sending.formats.first.map { Codec($0.codec) }
        info.simulcast = sending.encodings.count > 1
        let description = TrackDescription(
            id, peer: connection.peer, info, sending,
            maximumBitrate: kind == .video ? state.negotiatedCap(of: member) : nil)
        state.routing.insert(
            RoomTrack(
                id: id, publisher: session, connection: connection.id, info: info, description: description,
                formats: sending.formats, packetTime: sending.packetTime, preferredCodec: announced?.codecs.first,
                isAnnounced: announced != nil))
        state.roster.updateConnection(name, of: session) { $0.trackByMid[section.mid] = id }
        roomChanged()
        turn.media(.addTrack(description))
        if info.muted { turn.media(.setTrackMuted(id, true)) }
        if kind == .audio, state.isAlwaysHeard(member.info.identity) { turn.media(.setTrackAlwaysForwarded(id, true)) }
        if kind == .video {
            if TrackTraits(info) != TrackTraits() { turn.media(.setTrackTraits(id, TrackTraits(info))) }
            state.capTracks(of: session, &turn)
        }
        announcePublished(info, of: session, notifiesPublisher: true, &turn)
        distribution.offer(id, &state, &turn)
        trackMayBeRecorded(id, &turn)
    }

    /// Why a member that may publish `kind` cannot publish another track of it; nil: it can, and the track is counted. Files are played by operators.
    private mutating func refusal(of kind: MediaKind, by member: Member, at now: MonotonicTime) -> RoomError.Code? {
        if kind == .video, policy.audioOnly { return .permissionDenied }
        let count = state.routing.encodings(of: member.session).count
        guard count < state.context.limits.tracksPerParticipant else { return .limitExceeded }
        do throws(RoomError) {
            try state.checkPublisherLimit(member)
            if member.playback == nil { try state.charge(.publication, of: member.session, at: now) }
            return nil
        } catch { return error.code }
    }

    /// Notifies a client that what it sends on a section is not published.
    private mutating func refuse(
        _ sending: RemoteSending?, _ code: RoomError.Code, mid: String, on connection: String, of session: SessionID,
        announced: String? = nil, _ turn: inout RoomTurn
    ) {
        state.roster.notify(
            session,
            .publicationRefused(
                connection: connection, mid: mid, track: sending?.trackID, code: code, announced: announced), &turn)
    }

    /// A section of an offer was answered without its track, because a limit is reached. A client that joins again to recover knows the track by the sid in the
    /// reply to its announcement; that announcement is withdrawn. Others may offer the track again later.
    mutating func refuseBeyondLimit(
        _ section: OfferedSection, _ code: RoomError.Code, on connection: String, of session: SessionID,
        _ turn: inout RoomTurn
    ) {
        var announced: String?
        if let member = state.roster[session], member.options.recovery == .byJoining,
            let kind = MediaKind(section.kind),
            let pending = member.announcements.find(section.remoteSends?.trackID, section.mid, kind)
        {
            announced = pending.sid
            state.roster.update(session) { member in
                member.announcements.remove(pending.sid)
                member.announcements.removeBackup(of: pending.sid)
            }
        }
        refuse(
            section.remoteSends, code, mid: section.mid, on: connection, of: session, announced: announced,
            &turn)
    }

    /// A track of `session` is in the room from now on.
    mutating func announcePublished(
        _ info: TrackInfo, of session: SessionID, notifiesPublisher: Bool, _ turn: inout RoomTurn
    ) {
        state.roster.nextVersion(of: session)
        turn.log(.trackPublished(info))
        state.roster.notify(about: session, .trackPublished(info), includingSubject: notifiesPublisher, &turn)
    }

    /// New formats, layers or extensions of a track that continues.
    private mutating func update(_ track: RoomTrack, with sending: RemoteSending, _ turn: inout RoomTurn) {
        var description = track.description
        description.formats = sending.formats.map(PayloadFormat.init)
        description.encodings = sending.encodings.map(EncodingDescription.init)
        description.extensions = HeaderExtensionIDs(sending.extensions)
        description.feedback = FeedbackKinds(sending.feedback)
        state.routing.update(track.id) { track in
            track.packetTime = sending.packetTime
            track.info.agreedCodec = sending.formats.first.map { Codec($0.codec) }
        }
        if description != track.description {
            state.routing.update(track.id) { $0.description = description }
            turn.media(.updateTrack(description))
        }
        let info = track.info.sent(as: sending)
        if info != track.info {
            state.routing.update(track.id) { track in
                track.info.simulcast = info.simulcast
                track.info.clientTrackID = info.clientTrackID
            }
            state.trackChanged(track.id, &turn)
        }
        guard !track.formats.lookTheSame(as: sending.formats) else { return }
        state.routing.update(track.id) { $0.formats = sending.formats }
        for id in state.routing.subscribers(of: track.main ?? track.id) { state.renegotiate(id) }
    }

    /// Removes a track and ends others' subscriptions to it.
    mutating func unpublish(_ id: TrackID, commandsWorker: Bool = true, _ turn: inout RoomTurn) {
        guard let track = state.routing[id] else { return }
        if let main = track.main {
            state.endBackup(track, of: main, &turn)
        } else {
            withdraw(track, notifiesPublisher: true, &turn)
            state.roster.update(track.publisher) { $0.announcements.removeBackup(of: track.info.sid) }
        }
        if commandsWorker { turn.media(.removeTrack(id)) }
        state.roster.updateConnection(track.connection, of: track.publisher) { $0.trackEnded(track.info) }
        if let backup = track.backup { unpublish(backup, commandsWorker: commandsWorker, &turn) }
        distribution.follow(&state, &turn)
        if track.info.kind == .video { state.capTracks(of: track.publisher, &turn) }
    }

    /// Removes a track from the room and ends others' subscriptions to it.
    mutating func withdraw(_ track: RoomTrack, notifiesPublisher: Bool, _ turn: inout RoomTurn) {
        let id = track.id
        distribution.trackEnds(id, &state, &turn)
        state.routing.remove(id)
        roomChanged()
        state.roster.nextVersion(of: track.publisher)
        turn.log(.trackUnpublished(track.info))
        state.roster.notify(
            about: track.publisher,
            .trackUnpublished(participant: track.info.participant, track: track.info.sid),
            includingSubject: notifiesPublisher, &turn)
        endsRecording(of: track, &turn)
    }

    /// Mutes or unmutes; forwarding stops at once.
    mutating func setMuted(_ id: TrackID, _ muted: Bool, _ turn: inout RoomTurn) {
        guard var track = state.routing[id], track.info.muted != muted else { return }
        track.info.muted = muted
        for encoding in track.encodings {
            state.routing.update(encoding) { $0.info.muted = muted }
            turn.media(.setTrackMuted(encoding, muted))
        }
        if track.info.kind == .video { state.capTracks(of: track.publisher, &turn) }
        turn.log(.trackMuted(track.info))
        state.trackChanged(id, &turn)
    }
}

// MARK: - Announcing and muting

extension Room {
    /// The client announces what a track is, before or after the offer that contains it. Returns the track as it is or will be.
    public mutating func announce(
        _ announcement: TrackAnnouncement, session: SessionID, turn: inout RoomTurn
    ) throws(RoomError) -> TrackInfo {
        let info = try announce(announcement, try state.member(session), &turn)
        makeOffers(&turn)
        return info
    }

    /// The client announces what a track is, before or after the offer that contains it.
    @discardableResult
    mutating func announce(
        _ announcement: TrackAnnouncement, _ member: Member, _ turn: inout RoomTurn
    ) throws(RoomError) -> TrackInfo {
        guard !announcement.clientTrackID.isEmpty else { throw RoomError(.invalidRequest, "the track id is empty") }
        for id in [announcement.clientTrackID, announcement.backupTrackID ?? ""] {
            try TextRule.label.check(id, "the track", tooLong: .invalidRequest)
        }
        try TextRule.label.check(announcement.name ?? "", "the track's name", tooLong: .invalidRequest)
        try announcement.details?.check()
        guard state.mayPublish(announcement.source, member) else {
            throw RoomError(.permissionDenied, "not permitted to publish \(announcement.source.rawValue)")
        }
        // Before the offer, because some clients treat a refused offer as the end of the call.
        try state.checkPublisherLimit(member)
        if let track = publishedTrack(of: announcement, by: member.session) {
            guard announcement.source.fits(track.info.kind) else {
                throw RoomError(
                    .invalidRequest, "\(announcement.source.rawValue) is not a source of \(track.info.kind) tracks")
            }
            let unmutes = announcement.muted == false && track.info.muted
            if unmutes || track.info.changed(by: announcement) != track.info {
                let isOtherSource = announcement.source != track.info.source
                try state.charge(
                    isOtherSource ? .publication : unmutes ? .unmute : .details, of: member.session, at: turn.now)
            }
            update(track, announcement, &turn)
            return state.routing[track.id]?.info ?? track.info
        }
        var request = announcement
        let main = try announcement.backupOf.map { sid throws(RoomError) in try state.trackForBackup(sid, member) }
        if let main {
            request.source = main.info.source
            request.codecs = main.info.backupCodec.map { [$0] } ?? []
        }
        var announcements = member.announcements
        defer { state.roster.update(member.session) { $0.announcements = announcements } }
        let announced = try announcements.add(
            request, most: state.context.limits.announcementsPerParticipant
        ) { turn.sid("TR_") }
        return main?.info ?? announced.info(of: member)
    }

    /// A track that a session publishes or has announced, as it is or will be.
    public func ownTrack(_ sid: String, of session: SessionID) -> TrackInfo? {
        guard let member = state.roster[session] else { return nil }
        guard let track = state.routing.track(sid: sid) else { return member.announcements[sid]?.info(of: member) }
        return track.publisher == session ? track.info : nil
    }

    /// The track that an announcement is about, if it is published already.
    ///
    /// A client that also announces the kind announces each publication anew, and publishes the same track object again before the offer that ends its former
    /// publication. So a published track that was announced before is meant only if its sid is named.
    private func publishedTrack(of announcement: TrackAnnouncement, by session: SessionID) -> RoomTrack? {
        if let sid = announcement.sid {
            return state.routing.track(sid: sid).flatMap { $0.publisher == session ? $0 : nil }
        }
        let id = announcement.clientTrackID
        return state.routing.tracks(of: session).compactMap { state.routing[$0] }.first { track in
            (track.info.clientTrackID == id || track.info.mid == id)
                && (announcement.kind == nil || !track.isAnnounced || announcement.backupOf == track.info.sid)
        }
    }

    /// The announcement came after the offer, or its track took over a section that had another.
    mutating func update(_ track: RoomTrack, _ announcement: TrackAnnouncement, _ turn: inout RoomTurn) {
        state.routing.update(track.id) { $0.isAnnounced = true }
        let info = track.info.changed(by: announcement)
        if info != track.info {
            state.routing.update(track.id) { $0.info = info }
            if info.kind == .video, TrackTraits(info) != TrackTraits(track.info) {
                for encoding in track.encodings { turn.media(.setTrackTraits(encoding, TrackTraits(info))) }
            }
            if info.source != track.info.source {
                state.routing.update(track.id) { $0.description.source = info.source }
                if let description = state.routing[track.id]?.description { turn.media(.updateTrack(description)) }
                trackMayBeRecorded(track.id, &turn)
            }
            if info.backupCodec != track.info.backupCodec { state.expectBackup(of: track.id, announcement, &turn) }
            state.trackChanged(track.id, &turn)
            if info.source != track.info.source { distribution.sourceChanged(of: track.id, &state, &turn) }
            if info.source.isOfScreen != track.info.source.isOfScreen { state.streamNameChanged(of: track.id) }
        }
        if let muted = announcement.muted { setMuted(track.id, muted, &turn) }
    }

    /// A publisher mutes and unmutes its own tracks; a moderator only mutes.
    mutating func setMuted(
        _ sid: String, _ muted: Bool, _ member: Member, _ turn: inout RoomTurn
    ) throws(RoomError) {
        if state.routing.track(sid: sid) == nil, member.announcements.has(sid) {
            state.roster.update(member.session) { $0.announcements.setMuted(sid, muted) }
            return
        }
        let track = try state.track(sid)
        if track.publisher == member.session {
            if !muted, track.info.muted { try state.charge(.unmute, of: member.session, at: turn.now) }
            return setMuted(track.id, muted, &turn)
        }
        guard member.permissions.roomAdmin, muted else {
            throw RoomError(
                .permissionDenied,
                muted ? "only a moderator (roomAdmin) may do this" : "only the publisher can unmute a track")
        }
        try muteByOther(sid, by: member.info.sid, turn: &turn)
    }

    /// Mutes a track; nil: an operator did. Only the publisher can unmute it. Refused if it is not a track of the participant with this `identity` (nil: of
    /// any participant).
    @discardableResult
    public mutating func muteByOther(
        _ sid: String, of identity: String? = nil, by: String?, turn: inout RoomTurn
    ) throws(RoomError) -> TrackInfo {
        let track = try state.track(sid)
        guard identity == nil || track.info.identity == identity else {
            throw RoomError(.trackNotFound, "the participant has no such track")
        }
        guard !track.info.muted else { return track.info }
        // Before the track's new state: a LiveKit client that is notified of a mute that it did not make sends its own state, which unmutes the track.
        state.roster.notify(track.publisher, .trackMutedByOther(track: sid, by: by), &turn)
        setMuted(track.id, true, &turn)
        return try state.track(sid).info
    }

    /// Asks the publisher of a muted track to unmute it; nil: an operator does. The publisher decides.
    @discardableResult
    public mutating func requestUnmute(
        _ sid: String, by: String?, turn: inout RoomTurn
    ) throws(RoomError) -> TrackInfo {
        let track = try state.track(sid)
        guard try state.member(track.publisher).options.understandsUnmuteRequests else {
            throw RoomError(
                .notAvailable, "the publisher's client has no way to be asked for an unmute: ask the person")
        }
        if track.info.muted { state.roster.notify(track.publisher, .unmuteRequested(track: sid, by: by), &turn) }
        return track.info
    }
}

extension RemoteSending {
    /// The client's id of the track as it is announced to others; nil if it cannot be displayed.
    var shownTrackID: String? { trackID.flatMap { TextRule.label.fault(in: $0) == nil ? $0 : nil } }
}

extension TrackTraits {
    /// The publisher's announcement.
    init(_ info: TrackInfo) {
        self.init()
        hint = info.hint
        priority = info.priority
    }
}
