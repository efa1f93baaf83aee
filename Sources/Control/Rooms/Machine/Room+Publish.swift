import MediaControl
import Primitives
import SDP

extension Room {
    /// What a section is, as announced or as its kind suggests; nil where the member may not publish it.
    ///
    /// Unannounced sections are the first of microphone and screen audio, or of camera and screen, that is permitted: so
    /// a WHIP broadcaster whose token says `screen_share` needs no announcement. A video that was announced as a microphone is neither.
    func permittedSource(
        _ kind: MediaKind, _ sending: RemoteSending, mid: String, member: Member
    ) -> TrackSource? {
        if let announced = announcement(sending.trackID, mid, member) {
            return announced.source.fits(kind) && member.permissions.mayPublish(announced.source)
                ? announced.source : nil
        }
        var guesses: [TrackSource] = kind == .audio ? [.microphone, .screenAudio] : [.camera, .screen]
        if kind == .video, sending.contentHint == "slides" { guesses.reverse() }
        return guesses.first(where: member.permissions.mayPublish)
    }

    func announcement(_ trackID: String?, _ mid: String, _ member: Member) -> TrackAnnouncement? {
        member.announcements.first { $0.clientTrackID == trackID }
            ?? member.announcements.first { $0.clientTrackID == mid }
    }

    /// Something comes in on a section: a new track, or one that goes on under new terms.
    mutating func receive(
        _ sending: RemoteSending, section: NegotiatedSection, on name: String, of session: SessionID,
        _ turn: inout RoomTurn
    ) {
        guard let kind = MediaKind(section.kind), let connection = try? connection(name, of: session),
            let member = members[session]
        else { return }
        let announced = announcement(sending.trackID, section.mid, member)
        if let announced { members[session]?.announcements.removeAll { $0.clientTrackID == announced.clientTrackID } }
        if let id = connection.trackByMid[section.mid], let track = tracks[id] {
            // Another track of the client in the same section (replaceTrack), which may have been announced as something else.
            if let announced { update(track, announced, &turn) }
            if let track = tracks[id] { update(track, with: sending, &turn) }
            return
        }
        guard let source = permittedSource(kind, sending, mid: section.mid, member: member) else { return }
        let id = TrackID(nextNumber())
        var info = TrackInfo(
            sid: turn.sid("TR_"), participant: member.info.sid, identity: member.info.identity,
            name: announced?.name ?? "", kind: kind, source: source, mid: section.mid,
            clientTrackID: sending.shownTrackID)
        info.muted = announced?.muted ?? false
        info.width = announced?.width
        info.height = announced?.height
        info.hint = announced?.hint
        info.priority = announced?.priority ?? .standard
        info.simulcast = sending.encodings.count > 1
        let description = TrackDescription(
            id: id, peer: connection.peer, kind: kind, source: source, mid: section.mid,
            formats: sending.formats.map(PayloadFormat.init),
            encodings: sending.encodings.map(EncodingDescription.init),
            extensions: HeaderExtensionIDs(sending.extensions), feedback: FeedbackKinds(sending.feedback),
            maximumBitrate: kind == .video ? negotiatedCap(of: member) : nil)
        tracks[id] = PublishedTrack(
            id: id, publisher: session, connection: connection.id, info: info, description: description,
            formats: sending.formats, packetTime: sending.packetTime)
        trackBySID[info.sid] = id
        if let index = members[session]?.connectionIndex(name) {
            members[session]?.connections[index].trackByMid[section.mid] = id
        }
        members[session]?.tracks.append(id)
        mayHaveChanged = true
        members[session]?.info.version += 1
        turn.media(.addTrack(description))
        if info.muted { turn.media(.setTrackMuted(id, true)) }
        if kind == .video {
            if TrackTraits(info) != TrackTraits() { turn.media(.setTrackTraits(id, TrackTraits(info))) }
            capTracks(of: session, &turn)
        }
        turn.log(.trackPublished(participant: info.participant, track: info.sid))
        tellAbout(session, .trackPublished(info), includingSubject: true, &turn)
        offerToSubscribers(id, &turn)
    }

    /// New formats, layers or extensions of a track that goes on.
    private mutating func update(_ track: PublishedTrack, with sending: RemoteSending, _ turn: inout RoomTurn) {
        var description = track.description
        description.formats = sending.formats.map(PayloadFormat.init)
        description.encodings = sending.encodings.map(EncodingDescription.init)
        description.extensions = HeaderExtensionIDs(sending.extensions)
        description.feedback = FeedbackKinds(sending.feedback)
        tracks[track.id]?.packetTime = sending.packetTime
        if description != track.description {
            tracks[track.id]?.description = description
            turn.media(.updateTrack(description))
        }
        let isSimulcast = sending.encodings.count > 1
        let clientTrackID = sending.shownTrackID ?? track.info.clientTrackID
        if track.info.simulcast != isSimulcast || track.info.clientTrackID != clientTrackID {
            tracks[track.id]?.info.simulcast = isSimulcast
            tracks[track.id]?.info.clientTrackID = clientTrackID
            trackChanged(track.id, &turn)
        }
        guard !Self.subscribersSeeTheSame(track.formats, sending.formats) else { return }
        tracks[track.id]?.formats = sending.formats
        for id in track.subscribers { renegotiate(id) }
    }

    /// Whether the change stays between the publisher and the server: payload types differ anyway.
    private static func subscribersSeeTheSame(_ a: [NegotiatedFormat], _ b: [NegotiatedFormat]) -> Bool {
        a.count == b.count
            && zip(a, b).allSatisfy {
                $0.codec == $1.codec && $0.variant == $1.variant && $0.parameters == $1.parameters
                    && $0.clockRateHz == $1.clockRateHz && $0.channels == $1.channels
            }
    }

    /// Takes a track away, with what others receive of it.
    mutating func unpublish(_ id: TrackID, tellsMedia: Bool = true, _ turn: inout RoomTurn) {
        guard let track = tracks[id] else { return }
        for subscription in track.subscribers {
            if subscriptions[subscription]?.slot != nil {
                show(TrackID?.none, in: subscription, &turn)
            } else {
                endSubscription(subscription, tells: true, &turn)
            }
        }
        if tellsMedia { turn.media(.removeTrack(id)) }
        tracks[id] = nil
        forgetWaiting(for: id)
        trackBySID[track.info.sid] = nil
        members[track.publisher]?.tracks.removeAll { $0 == id }
        mayHaveChanged = true
        members[track.publisher]?.info.version += 1
        if let index = members[track.publisher]?.connectionIndex(track.connection) {
            members[track.publisher]?.connections[index].trackByMid[track.info.mid] = nil
        }
        turn.log(.trackUnpublished(participant: track.info.participant, track: track.info.sid))
        tellAbout(
            track.publisher, .trackUnpublished(participant: track.info.participant, track: track.info.sid),
            includingSubject: true, &turn)
        follow(&turn)
        if track.info.kind == .video { capTracks(of: track.publisher, &turn) }
    }

    /// Mutes or unmutes; forwarding stops at once.
    mutating func setMuted(_ id: TrackID, _ muted: Bool, _ turn: inout RoomTurn) {
        guard let track = tracks[id], track.info.muted != muted else { return }
        tracks[id]?.info.muted = muted
        turn.media(.setTrackMuted(id, muted))
        if track.info.kind == .video { capTracks(of: track.publisher, &turn) }
        turn.log(.trackMuted(track: track.info.sid, muted))
        trackChanged(id, &turn)
    }
}

extension RemoteSending {
    /// The client's id of the track as others are told it; nil where it is no text to show.
    fileprivate var shownTrackID: String? { trackID.flatMap { TextRule.label.fault(in: $0) == nil ? $0 : nil } }
}

extension TrackTraits {
    /// What the publisher said.
    init(_ info: TrackInfo) {
        self.init()
        hint = info.hint
        priority = info.priority
    }
}
