import MediaControl
import Primitives
import SDP

// Backup codecs: a publisher announces a second codec of a video, and sends it once somebody is in the room who cannot play the first: beside the first, or in
// its place.
//
// Everybody sees and subscribes to the one track. Which of its two encodings the worker sends on a subscription depends on the formats that its section
// negotiated, and on the publisher's preference (``BackupCodecPolicy``).

extension RoomState {
    /// The formats that a section may use for a track: those of both encodings, the first choice first.
    func formats(of track: RoomTrack) -> [NegotiatedFormat] {
        guard let codec = track.info.backupCodec else { return track.formats }
        let backup = track.backup.flatMap { routing[$0] }?.formats
        return track.formats + (backup ?? NegotiatedFormat.expected(codec))
    }

    /// The encoding of a track that a section with these formats gets; nil while there is none that it can play.
    func encoding(of id: TrackID?, for formats: [PayloadFormat]) -> TrackID? {
        guard let id, let track = routing[id], track.info.backupCodec != nil else { return id }
        let backup = track.backup.flatMap { routing[$0] }.flatMap { $0.isPlayed(by: formats) ? $0.id : nil }
        if regressions.contains(id), let backup { return backup }
        return track.isPlayed(by: formats) ? id : backup
    }

    /// The track whose backup codec a member announces.
    func trackForBackup(_ sid: String, _ member: Member) throws(RoomError) -> RoomTrack {
        let track = try track(sid)
        guard track.publisher == member.session else {
            throw RoomError(.permissionDenied, "the track belongs to another participant")
        }
        guard track.info.backupCodec != nil, track.backup == nil else {
            throw RoomError(.invalidRequest, "the track was announced without a backup codec, or has it already")
        }
        return track
    }

    /// The encodings of a track have changed: each of its subscribers gets the one that it can play.
    mutating func chooseEncodings(of id: TrackID, _ turn: inout RoomTurn) {
        for subscriber in routing.subscribers(of: id) {
            guard let description = routing[subscriber]?.description else { continue }
            let encoding = encoding(of: id, for: description.formats)
            guard encoding != description.track else { continue }
            routing.update(subscriber) { $0.description?.track = encoding }
            turn.media(.switchSubscription(subscriber, to: encoding))
        }
        reviewBackupDemand(of: id, &turn)
    }

    /// Notifies the publisher of a track whether somebody needs its backup codec, if this has changed. While it is needed, the worker reports which of its
    /// layers are in demand; without subscribers it would keep the smallest, so that a newcomer sees something at once, and only the first codec needs that.
    mutating func reviewBackupDemand(of id: TrackID, _ turn: inout RoomTurn) {
        regressions.mark(id)
        guard let track = routing[id], let codec = track.info.backupCodec, track.main == nil else { return }
        let isWanted = track.backup.map { routing.isSent($0) } ?? routing.isAwaited(id)
        if isWanted, track.info.backupCodecPolicy == .regression, !regressions.contains(id),
            track.backup.flatMap({ routing[$0] })?.isFlowing == true
        {
            regressions.insert(id)
            return chooseEncodings(of: id, &turn)
        }
        guard isWanted != track.wantsBackup else { return }
        routing.update(id) { $0.wantsBackup = isWanted }
        let layers = [WantedLayer(rid: nil, isWanted: isWanted)]
        roster.notify(track.publisher, .backupWanted(track: track.info.sid, codec: codec, layers: layers), &turn)
        capTracks(of: track.publisher, &turn)
    }
}

// MARK: - The encoding in the backup codec arrives and ends

extension RoomState {
    /// A published track was announced with a backup codec: subscribers' sections offer both from now on.
    mutating func expectBackup(of id: TrackID, _ announcement: TrackAnnouncement, _ turn: inout RoomTurn) {
        guard let track = routing[id], var announcements = roster[track.publisher]?.announcements else { return }
        if let backup = announcement.backup(of: track.info.sid) {
            announcements.expect(backup) { turn.sid("TR_") }
            roster.update(track.publisher) { $0.announcements = announcements }
        }
        for subscription in routing.subscribers(of: id) { renegotiate(subscription) }
    }

    /// Adds the encoding of the track `main` in its backup codec: nobody sees it as a separate track.
    mutating func receiveBackup(
        of main: String, _ sending: RemoteSending, mid: String, on connection: Connection, of session: SessionID,
        _ turn: inout RoomTurn
    ) {
        // Not for a track that its publisher unpublished meanwhile.
        guard let track = routing.track(sid: main), track.publisher == session, track.backup == nil,
            track.connection == connection.id
        else { return }
        let id = TrackID(nextNumber())
        var info = track.info
        info.mid = mid
        info.clientTrackID = sending.shownTrackID
        let description = TrackDescription(
            id, peer: connection.peer, info, sending, maximumBitrate: track.description.maximumBitrate)
        routing.insert(
            RoomTrack(
                id: id, publisher: session, connection: connection.id, info: info, description: description,
                formats: sending.formats, preferredCodec: info.backupCodec, main: track.id))
        roster.updateConnection(connection.id, of: session) { $0.trackByMid[mid] = id }
        turn.media(.addTrack(description))
        if info.muted { turn.media(.setTrackMuted(id, true)) }
        if TrackTraits(info) != TrackTraits() { turn.media(.setTrackTraits(id, TrackTraits(info))) }
        capTracks(of: session, &turn)
        let expected = info.backupCodec.map(NegotiatedFormat.expected) ?? []
        if !expected.lookTheSame(as: sending.formats) {
            for subscription in routing.subscribers(of: track.id) { renegotiate(subscription) }
        }
        chooseEncodings(of: track.id, &turn)
    }

    /// The second encoding of a track has ended. If the track continues, the section may come back without another announcement.
    mutating func endBackup(_ backup: RoomTrack, of main: TrackID, _ turn: inout RoomTurn) {
        routing.remove(backup.id)
        chooseEncodings(of: main, &turn)
        guard let info = routing[main]?.info, let codec = info.backupCodec,
            var announcements = roster[backup.publisher]?.announcements
        else { return }
        let id = backup.info.clientTrackID ?? backup.info.mid
        announcements.expect(.backup(id, in: codec, of: info.sid, from: info.source)) { turn.sid("TR_") }
        roster.update(backup.publisher) { $0.announcements = announcements }
    }
}

// MARK: - The backup codec replaces the first

extension RoomState {
    /// Packets of a track arrive, or no longer do. Subscribers change to the backup codec when it flows, and back when it has stopped.
    mutating func setFlowing(_ id: TrackID, _ flows: Bool, _ turn: inout RoomTurn) {
        guard let track = routing[id], track.isFlowing != flows else { return }
        routing.update(id) { $0.isFlowing = flows }
        guard let main = track.main else { return }
        if flows {
            reviewBackupDemand(of: main, &turn)
        } else if !track.info.muted, regressions.contains(main) {
            endRegression(of: main, &turn)
            chooseEncodings(of: main, &turn)
        }
    }

    /// Ends regressions that are over, and notifies publishers if the need for the first codec has changed: a subscriber may play only that one, and recordings
    /// use it.
    mutating func reviewRegressions(isRecorded: (TrackID) -> Bool, _ turn: inout RoomTurn) {
        for id in regressions.consumeMarked() {
            if let backup = routing[id]?.backup, routing.isSent(id) || routing.isSent(backup) {
                setFirstCodec(of: id, isWanted: isRecorded(id) || routing.isSent(id), &turn)
            } else {
                endRegression(of: id, &turn)
            }
        }
    }

    mutating func endRegression(of id: TrackID, _ turn: inout RoomTurn) {
        setFirstCodec(of: id, isWanted: true, &turn)
        regressions.remove(id)
    }

    private mutating func setFirstCodec(of id: TrackID, isWanted: Bool, _ turn: inout RoomTurn) {
        guard regressions.setFirstCodec(of: id, isWanted: isWanted), let track = routing[id] else { return }
        let layers = wantedLayers(of: track)
        roster.notify(track.publisher, .layersWanted(track: track.info.sid, layers: layers), &turn)
        capTracks(of: track.publisher, &turn)
    }

    /// What the publisher is to send of a track's first codec: everything, as long as the worker has reported nothing.
    private func wantedLayers(of track: RoomTrack) -> [WantedLayer] {
        var layers = track.wantedLayers.isEmpty ? [WantedLayer(rid: nil, isWanted: true)] : track.wantedLayers
        if regressions.stopsFirstCodec(of: track.id) { for index in layers.indices { layers[index].isWanted = false } }
        return layers
    }

    /// Repeats to a publisher which layers of its videos are in demand: its client may have missed events.
    mutating func sendDemand(to session: SessionID, _ turn: inout RoomTurn) {
        for track in routing.tracks(of: session).compactMap({ routing[$0] }) where track.info.kind == .video {
            roster.notify(session, .layersWanted(track: track.info.sid, layers: wantedLayers(of: track)), &turn)
            guard let codec = track.info.backupCodec else { continue }
            let known = track.wantsBackup ? track.backup.flatMap { routing[$0] }?.wantedLayers ?? [] : []
            let layers = known.isEmpty ? [WantedLayer(rid: nil, isWanted: track.wantsBackup)] : known
            roster.notify(session, .backupWanted(track: track.info.sid, codec: codec, layers: layers), &turn)
        }
    }

    /// Whether the publisher of an encoding was notified that nobody needs it.
    func isStopped(_ encoding: RoomTrack) -> Bool {
        encoding.main.map { routing[$0]?.wantsBackup == false } ?? regressions.stopsFirstCodec(of: encoding.id)
    }
}

extension RoomTrack {
    /// Whether a section with these formats can carry this encoding.
    fileprivate func isPlayed(by formats: [PayloadFormat]) -> Bool {
        description.formats.contains { own in
            formats.contains { $0.codec == own.codec && $0.variant == own.variant }
        }
    }
}

extension RoomSubscription {
    /// What the worker sends on it.
    var encoding: TrackID? { description.map(\.track) ?? track }
}

extension TrackAnnouncement {
    /// The second codec of a video, if it differs from the first.
    var backupCodec: Codec? {
        guard codecs.count > 1, codecs[1] != codecs[0], codecs[0].kind == .video, codecs[1].kind == .video else {
            return nil
        }
        return codecs[1]
    }
}

extension NegotiatedFormat {
    /// How a client is expected to send a codec that it has announced but not offered yet.
    static func expected(_ codec: Codec) -> [NegotiatedFormat] {
        codec.names.map { name in
            switch name {
            // Constrained baseline, level 3.1, which all clients support (RFC 7742 section 6.2).
            case .h264: .h264(payloadType: 0, profileLevelID: "42e01f")
            // Profile 0.
            case .vp9, .av1: NegotiatedFormat(codec: name, clockRateHz: 90_000, variant: "0")
            default: NegotiatedFormat(codec: name, clockRateHz: 90_000)
            }
        }
    }
}
