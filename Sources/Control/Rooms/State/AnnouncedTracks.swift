import MediaControl
import SDP

/// The tracks that a member has announced but not offered yet.
struct AnnouncedTracks: Sendable {
    private var tracks: [AnnouncedTrack] = []

    /// The announcement for a section with this track id and mid; otherwise the oldest one of its kind.
    func find(_ trackID: String?, _ mid: String, _ kind: MediaKind) -> AnnouncedTrack? {
        tracks.first { $0.announcement.clientTrackID == trackID }
            ?? tracks.first { $0.announcement.clientTrackID == mid }
            ?? tracks.first { $0.announcement.kind == kind }
    }

    /// Sections whose track was announced under its own id come before those that match by kind: a client continues to send what the server has ended. Second
    /// encodings come after their tracks.
    func inOrder(_ sections: [NegotiatedSection]) -> [NegotiatedSection] {
        func isAnnounced(_ section: NegotiatedSection) -> Bool { names(section.receiving?.trackID) }
        func isBackup(_ section: NegotiatedSection) -> Bool { namesBackup(section.receiving?.trackID, section.mid) }
        let tracks = sections.filter { !isBackup($0) }
        return tracks.filter(isAnnounced) + tracks.filter { !isAnnounced($0) } + sections.filter(isBackup)
    }

    /// Whether a track with this id was announced.
    private func names(_ trackID: String?) -> Bool { tracks.contains { $0.announcement.clientTrackID == trackID } }

    /// Whether this id or mid was announced as a track's encoding in its backup codec.
    private func namesBackup(_ trackID: String?, _ mid: String) -> Bool {
        tracks.contains { track in
            let id = track.announcement.clientTrackID
            return track.announcement.backupOf != nil && (id == trackID || id == mid)
        }
    }

    func has(_ sid: String) -> Bool { self[sid] != nil }

    subscript(sid: String) -> AnnouncedTrack? { tracks.first { $0.sid == sid } }

    var sids: [String] { tracks.map(\.sid) }

    /// If the track is announced already, an announcement changes the values that it contains, and keeps the sid; otherwise `sid` makes one. Refused beyond
    /// `most`. An announcement that names the track in its backup codec, too, announces both.
    mutating func add(
        _ announcement: TrackAnnouncement, most: Int, sid: () -> String
    ) throws(RoomError) -> AnnouncedTrack {
        let earlier = tracks.first { track in
            announcement.sid.map { $0 == track.sid }
                ?? (track.announcement.clientTrackID == announcement.clientTrackID)
        }
        guard announcement.sid == nil || earlier != nil else {
            throw RoomError(.trackNotFound, "there is no such track")
        }
        tracks.removeAll { $0.sid == earlier?.sid }
        guard tracks.count < most else { throw RoomError(.limitExceeded, "limit of announced tracks reached") }
        if let main = announcement.backupOf { removeBackup(of: main) }
        let complete = earlier.map { announcement.completed(by: $0.announcement) } ?? announcement
        let announced = AnnouncedTrack(sid: earlier?.sid ?? sid(), announcement: complete)
        tracks.append(announced)
        if let backup = complete.backup(of: announced.sid) { expect(backup, sid: sid) }
        return announced
    }

    /// The announcement of a track's encoding in its backup codec; it replaces an earlier one.
    mutating func expect(_ backup: TrackAnnouncement, sid: () -> String) {
        tracks.removeAll { track in
            track.announcement.clientTrackID == backup.clientTrackID || track.announcement.backupOf == backup.backupOf
        }
        tracks.append(AnnouncedTrack(sid: sid(), announcement: backup))
    }

    /// It was offered.
    mutating func remove(_ sid: String) { tracks.removeAll { $0.sid == sid } }

    /// A track has ended, or was refused: its encoding in the backup codec is no longer expected.
    mutating func removeBackup(of sid: String) { tracks.removeAll { $0.announcement.backupOf == sid } }

    mutating func setMuted(_ sid: String, _ muted: Bool) {
        guard let index = tracks.firstIndex(where: { $0.sid == sid }) else { return }
        tracks[index].announcement.muted = muted
    }
}

/// A track that a member has announced but not offered yet.
struct AnnouncedTrack: Sendable {
    /// The sid that it will have.
    let sid: String
    fileprivate(set) var announcement: TrackAnnouncement
}

extension AnnouncedTrack {
    /// The track as it will be, as far as that is known before it is offered.
    func info(of member: Member) -> TrackInfo {
        var info = TrackInfo(
            sid: sid, participant: member.info.sid, identity: member.info.identity, name: "",
            kind: announcement.kind ?? (announcement.source.fits(.audio) ? .audio : .video),
            source: announcement.source, mid: "", clientTrackID: announcement.clientTrackID)
        info.describe(as: announcement)
        info.simulcast = info.details.layers.count > 1
        return info
    }
}

extension TrackAnnouncement {
    /// The announcement of the encoding in the backup codec of this track, whose sid is `sid`, if its id is known. Only that id identifies it.
    func backup(of sid: String) -> TrackAnnouncement? {
        guard let id = backupTrackID, id != clientTrackID, let codec = backupCodec else { return nil }
        return .backup(id, in: codec, of: sid, from: source)
    }

    /// The announcement of the encoding of the track `sid` in its backup codec, which has the id `id`.
    static func backup(_ id: String, in codec: Codec, of sid: String, from source: TrackSource) -> TrackAnnouncement {
        var backup = TrackAnnouncement(id, source: source)
        backup.codecs = [codec]
        backup.backupOf = sid
        return backup
    }

    /// This announcement, completed by the one before. One with a kind announces the publication anew, and replaces the other completely.
    fileprivate func completed(by earlier: TrackAnnouncement) -> TrackAnnouncement {
        guard kind == nil else { return self }
        var complete = earlier
        complete.source = source
        complete.name = name ?? earlier.name
        complete.muted = muted ?? earlier.muted
        complete.width = width ?? earlier.width
        complete.height = height ?? earlier.height
        complete.hint = hint ?? earlier.hint
        complete.priority = priority ?? earlier.priority
        complete.details = details ?? earlier.details
        complete.backupOf = backupOf ?? earlier.backupOf
        if !codecs.isEmpty {
            complete.codecs = codecs
            complete.backupTrackID = backupTrackID
            complete.backupCodecPolicy = backupCodecPolicy
        }
        return complete
    }
}

extension TrackInfo {
    /// Updates a published track from another announcement; omitted values stay.
    func changed(by announcement: TrackAnnouncement) -> TrackInfo {
        var info = self
        info.source = announcement.source
        info.name = announcement.name ?? name
        info.width = announcement.width ?? width
        info.height = announcement.height ?? height
        info.hint = announcement.hint ?? hint
        info.priority = announcement.priority ?? priority
        info.details = announcement.details ?? details
        // A track that arrived before its announcement is sent in the codec that its offer prefers, which may be the second one.
        if kind == .video, backupCodec == nil, let codec = announcement.backupCodec, codec != agreedCodec {
            info.backupCodec = codec
            info.backupCodecPolicy = announcement.backupCodecPolicy
        }
        return info
    }

    /// Updates a published track from a description.
    func sent(as sending: RemoteSending) -> TrackInfo {
        var info = self
        info.simulcast = sending.encodings.count > 1
        info.clientTrackID = sending.shownTrackID ?? clientTrackID
        return info
    }

    /// Applies the publisher's announcement to a track of which nothing else is known yet.
    mutating func describe(as announcement: TrackAnnouncement) {
        name = announcement.name ?? ""
        muted = announcement.muted ?? false
        width = announcement.width
        height = announcement.height
        hint = announcement.hint
        priority = announcement.priority ?? .standard
        details = announcement.details ?? TrackDetails()
        backupCodec = kind == .video ? announcement.backupCodec : nil
        backupCodecPolicy = announcement.backupCodecPolicy
    }
}
