import MediaControl
import Primitives
import RoomService
import Rooms

/// Turns a room's events into LiveKit's messages. These always show a participant as a whole, so the participants are kept here.
struct EventTranslator: Sendable {
    private var people: [String: ParticipantInfo] = [:]
    /// What was last reported of each speaker; the protocol reports differences.
    private var levels: [String: Float] = [:]
    /// What was last reported of the layers of one's own videos; the protocol reports all of a track together.
    private var layers: [String: [WantedLayer]] = [:]
    private var backups: [String: Backup] = [:]
    /// The track that ended last: a refusal of what the client still sends there follows, though not at once.
    private var ended: TrackInfo?
    /// One of one's own connections has come up.
    private var hasConnected = false

    /// The second codec of a track.
    private struct Backup: Sendable {
        var codec: Codec
        var layers: [WantedLayer]
    }

    /// Makes a token for a room to which the participant is moved.
    private let token: @Sendable (_ room: String) -> String?

    /// `people`: the participants before the first event, the client's own included. `resumes`: the client remembers what it was sent on another socket.
    init(
        people: [ParticipantInfo], resumes: Bool = false,
        token: @escaping @Sendable (_ room: String) -> String? = { _ in nil }
    ) {
        self.token = token
        for person in people {
            self.people[person.sid] = person
            // A level that is never reported: so the next list of speakers says for everybody whether they speak.
            if resumes { levels[person.sid] = -1 }
        }
    }

    /// What a client is sent for `event`.
    mutating func signals(for sequenced: SequencedEvent) -> [ServerSignal] {
        switch sequenced.event {
        case .participantJoined(let info), .participantUpdated(let info):
            people[info.sid] = info
            return [.update([info])]
        case .participantLeft(let participant, let identity, let reason):
            return [.left(remove(participant, identity), reason)]
        case .trackPublished(let track), .trackUpdated(let track): return update(track)
        case .trackUnpublished(let participant, let track):
            layers[track] = nil
            backups[track] = nil
            self.ended = people[participant]?.tracks.first { $0.sid == track }
            return change(participant) { $0.tracks.removeAll { $0.sid == track } }
        case .offer(_, let sdp, _):
            // The numbers must increase, even across sockets; those of events do.
            return [.offer(sdp: sdp, id: UInt32(truncatingIfNeeded: sequenced.sequence))]
        case .sectionsNeeded(_, let audio, let video): return [.sectionsNeeded(audio: audio, video: video)]
        case .subscriptionHeld(_, let participant?, let track?, let isHeld):
            return [.streamState(participant: participant, track: track, isPaused: isHeld)]
        case .trackPermission(let participant, let track, let isAllowed):
            return [.subscriptionPermission(participant: participant, track: track, allowed: isAllowed)]
        case .trackSubscribed(let track): return [.trackSubscribed(track: track)]
        // It was sent with the move.
        case .connectionChanged(_, .closed, LeaveReason.moved.rawValue): return []
        case .connectionChanged(_, .connected, _): return connected()
        case .connectionChanged(_, .closed, _):
            // Both sides have to forget it: the client cannot restart a connection that no longer exists.
            return [.leave(.connectionTimeout, .reconnect)]
        case .channelClosed:
            // The client read too slowly. SDKs create their channels once per connection, so only a new one receives messages again.
            return [.leave(.stateMismatch, .reconnect)]
        case .publicationRefused(_, let mid, let track, let code, let announced):
            return [refusal(of: track ?? "", mid: mid, code, announced: announced)]
        case .speakersChanged(let speakers): return report(speakers)
        case .qualityChanged(let list): return apply(list)
        case .layersWanted(let track, let layers):
            self.layers[track] = layers
            return [demand(for: track)]
        case .backupWanted(let track, let codec, let layers):
            backups[track] = Backup(codec: codec, layers: layers)
            return [demand(for: track)]
        case .trackMutedByOther(let track, _): return [.mute(track: track, true)]
        case .dataTrackPublished, .dataTrackUnpublished, .dataTracksReceived: return dataTracks(sequenced.event)
        case .roomUpdated(let info): return [.room(info)]
        case .moved(let snapshot): return move(snapshot)
        case .ended(let reason, _): return Self.farewell(reason)
        case .subscriptionUpdated, .subscriptionEnded, .subscriptionsWaiting, .subscriptionStarted, .connectionChanged,
            .subscriptionHeld, .dominantSpeakerChanged, .relayed, .waitingRoomChanged, .drainChanged, .captureChanged,
            // Clients unmute on the protocol's message of an unmuted track without asking the person; it has no request.
            .unmuteRequested,
            // Messages use data channels only, and the protocol has no message for a refusal.
            .messageReceived, .messageRefused:
            return []
        }
    }

    /// Whether a client whose stay has ended is to come back.
    private static func farewell(_ reason: LeaveReason) -> [ServerSignal] {
        switch reason {
        // A client that said goodbye needs none.
        case .left: []
        // The protocol has no word for a drain. The rooms have ended, but the server, or another behind the same name, is there again soon.
        case .serverShutdown: [.leave(.serverShutdown, .reconnect)]
        // Nobody removed it: its app was in the background, for example, and reads this when it is back. It tries to resume, and is then asked to join
        // anew, or refused because a newer session has its identity, which a join would end.
        case .timeout, .connectionLost, .tooSlow: [.leave(.init(reason), .resume)]
        case .duplicateIdentity, .removed, .roomDeleted, .roomDurationReached, .stayDurationReached, .tokenExpired,
            .tokenRevoked, .policyChanged, .moved:
            [.leave(.init(reason), .disconnect)]
        }
    }

    private func dataTracks(_ event: RoomEvent) -> [ServerSignal] {
        switch event {
        case .dataTrackPublished(let track): [.dataTrackPublished(track)]
        case .dataTrackUnpublished(let track): [.dataTrackUnpublished(track)]
        case .dataTracksReceived(let tracks): [.dataTracksReceived(tracks)]
        default: []
        }
    }

    private mutating func apply(_ list: [ParticipantQuality]) -> [ServerSignal] {
        for one in list { people[one.participant]?.quality = one.quality }
        return [.quality(list)]
    }

    /// For participants who were here already, the next change may take long. A client that is still connecting cannot show them yet.
    private mutating func connected() -> [ServerSignal] {
        guard !hasConnected else { return [] }
        hasConnected = true
        return Self.quality(of: people.values)
    }

    /// The network quality of each participant, as far as it is known.
    static func quality(of people: some Sequence<ParticipantInfo>) -> [ServerSignal] {
        let known = people.compactMap { person in
            person.quality.map { ParticipantQuality(participant: person.sid, quality: $0) }
        }
        return known.isEmpty ? [] : [.quality(known.sorted { $0.participant < $1.participant })]
    }

    /// A participant who has left, as it was, without its tracks. SDKs built on the Rust one first update what they know of it: an app saw its name, metadata
    /// and attributes become empty, and then a participant without any of them leave.
    private mutating func remove(_ participant: String, _ identity: String) -> ParticipantInfo {
        var gone = people.removeValue(forKey: participant) ?? ParticipantInfo(sid: participant, identity: identity)
        (gone.tracks, gone.dataTracks) = ([], [])
        return gone
    }

    private mutating func move(_ snapshot: SessionSnapshot) -> [ServerSignal] {
        self = EventTranslator(people: snapshot.others + [snapshot.participant], token: token)
        return Self.moved(snapshot, token: token(snapshot.room.name)) + Self.quality(of: people.values)
            + (snapshot.isAwaited ? [.leave(.migration, .reconnect)] : [])
    }

    /// The messages that notify a client that it is in another room. A client returns with the last of the refreshed tokens; none reads the token of a move.
    static func moved(_ snapshot: SessionSnapshot, token: String?) -> [ServerSignal] {
        (token.map { [.refreshToken($0)] } ?? []) + [.moved(snapshot, token: token ?? "")]
            + [.dataTracksReceived(snapshot.dataTracks)]
    }

    private mutating func update(_ track: TrackInfo) -> [ServerSignal] {
        change(track.participant) { person in
            if let index = person.tracks.firstIndex(where: { $0.sid == track.sid }) {
                person.tracks[index] = track
            } else {
                person.tracks.append(track)
            }
        }
    }

    /// Clients skip a participant whose version is not higher than the one they know.
    private mutating func change(
        _ participant: String, _ change: (inout ParticipantInfo) -> Void
    ) -> [ServerSignal] {
        guard var person = people[participant] else { return [] }
        change(&person)
        person.version += 1
        people[participant] = person
        return [.update([person])]
    }

    /// Loudness in eighths; a participant who is no longer among the speakers is silent.
    private mutating func report(_ speakers: [SpeakerInfo]) -> [ServerSignal] {
        var now: [String: Float] = [:]
        for speaker in speakers {
            let level = (Float(speaker.loudness) / 127 * 8).rounded(.up) / 8
            now[speaker.participant] = max(now[speaker.participant] ?? 0, level)
        }
        let news = Set(now.keys).union(levels.keys).sorted().compactMap { participant -> ServerSignal.Speaker? in
            guard now[participant] != levels[participant] else { return nil }
            let level = now[participant] ?? 0
            return ServerSignal.Speaker(participant: participant, level: level, isActive: level > 0)
        }
        levels = now
        return news.isEmpty ? [] : [.speakers(news)]
    }

    /// The refusal of a track that is being published, or of one that its client considers published and sends until it is notified: its announcement was
    /// answered with the sid `announced`, or it is no longer permitted (`ended`).
    private mutating func refusal(
        of clientID: String, mid: String, _ code: RoomError.Code, announced: String?
    ) -> ServerSignal {
        if let announced { return .trackUnpublished(track: announced) }
        let ended = self.ended?.mid == mid ? self.ended.take() : nil
        if let ended, ended.clientTrackID == clientID { return .trackUnpublished(track: ended.sid) }
        var request = TrackRequest()
        request.clientID = clientID
        return .trackRefused(request, ServerSignal.Refusal(code), "the track is not published")
    }

    /// Which layers of the client's own track are received in each codec; where nothing is known, all may be.
    private func demand(for track: String) -> ServerSignal {
        let codec = people.values.lazy.flatMap(\.tracks).first { $0.sid == track }?.shownCodec
        let layers = layers[track] ?? [WantedLayer(rid: nil, isWanted: true)]
        var demands = [ServerSignal.CodecDemand(codec: codec, qualities: Self.demands(layers))]
        if let backup = backups[track] {
            demands.append(ServerSignal.CodecDemand(codec: backup.codec, qualities: Self.demands(backup.layers)))
        }
        return .subscribedQuality(track: track, demands)
    }

    /// Which of three qualities somebody receives. In a track with fewer layers, the highest stands for all above it.
    static func demands(_ layers: [WantedLayer]) -> [ServerSignal.QualityDemand] {
        var wanted: [Int: Bool] = [:]
        for (index, layer) in layers.enumerated() { wanted[rank(layer) ?? index] = layer.isWanted }
        let highest = wanted.keys.max() ?? 0
        return ServerSignal.Quality.allCases.map { quality in
            let rank = min(Int(quality.rawValue), highest)
            return ServerSignal.QualityDemand(quality: quality, isEnabled: wanted[rank] ?? false)
        }
    }

    /// LiveKit's names of layers, from the lowest; a few clients count from the highest.
    private static func rank(_ layer: WantedLayer) -> Int? {
        switch layer.rid {
        case "q", "2": 0
        case "h", "1": 1
        case "f", "0": 2
        default: layer.spatial
        }
    }
}
