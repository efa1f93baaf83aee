import MediaControl
import Primitives
import SDP

// Backup codecs: a publisher announces a second codec of a video, and sends that too once somebody is here who cannot play the first.
//
// Everybody sees and subscribes to the one track. Which of its two encodings the worker sends on a subscription follows from the formats that its section
// agreed to, and from what the publisher wants (``BackupCodecPolicy``).

extension RoomState {
    /// What a section may carry of a track: the formats of both encodings, the first choice first.
    func formats(of track: RoomTrack) -> [NegotiatedFormat] {
        guard let codec = track.info.backupCodec else { return track.formats }
        let backup = track.backup.flatMap { routing[$0] }?.formats
        return track.formats + (backup ?? NegotiatedFormat.expected(codec))
    }

    /// The encoding of a track that a section with these formats gets; nil while there is none that it plays.
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

    /// The encodings of a track have changed: each of its subscribers gets the one that it plays.
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

    /// Tells the publisher of a track whether somebody needs its backup codec, where that is news. The worker says which of its layers are wanted then; without
    /// subscribers it would keep the smallest, which only the first codec needs, so that whoever comes sees something at once.
    mutating func reviewBackupDemand(of id: TrackID, _ turn: inout RoomTurn) {
        guard let track = routing[id], let codec = track.info.backupCodec, track.main == nil else { return }
        let isWanted = routing.subscribers(of: id).contains { subscriber in
            guard let description = routing[subscriber]?.description else { return false }
            return description.track == track.backup
        }
        if isWanted, track.backup != nil, track.info.backupCodecPolicy == .regression, !regressions.contains(id) {
            regressions.insert(id)
            return chooseEncodings(of: id, &turn)
        }
        guard isWanted != track.wantsBackup else { return }
        routing.update(id) { $0.wantsBackup = isWanted }
        let layers = [WantedLayer(rid: nil, isWanted: isWanted)]
        roster.notify(track.publisher, .backupWanted(track: track.info.sid, codec: codec, layers: layers), &turn)
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
    /// The second codec of a video, where it is another one.
    var backupCodec: Codec? {
        guard codecs.count > 1, codecs[1] != codecs[0], codecs[0].kind == .video, codecs[1].kind == .video else {
            return nil
        }
        return codecs[1]
    }
}

extension NegotiatedFormat {
    /// How a client is expected to send a codec that it has announced and not offered yet.
    static func expected(_ codec: Codec) -> [NegotiatedFormat] {
        codec.names.map { name in
            switch name {
            // Constrained baseline of level 3.1, which all clients have (RFC 7742 section 6.2).
            case .h264: .h264(payloadType: 0, profileLevelID: "42e01f")
            // Profile 0.
            case .vp9, .av1: NegotiatedFormat(codec: name, clockRateHz: 90_000, variant: "0")
            default: NegotiatedFormat(codec: name, clockRateHz: 90_000)
            }
        }
    }
}
