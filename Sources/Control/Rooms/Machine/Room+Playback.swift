import AccessTokens
import MediaControl
import Primitives
import SDP

// Playbacks: a file is a participant without a client. It publishes under the room's rules, and its packets come from this process.

extension Room {
    /// How many playbacks of one room there may be at a time: a wall of screens.
    private static let maximumPlaybacks = 16
    /// Its only connection, which has no other side.
    private static let playbackConnection = "playback"
    /// Dynamic payload types (RFC 3551 section 6), one of each kind; nobody but this server sees them.
    private static let payloadTypes: [MediaKind: UInt8] = [.audio: 111, .video: 96]

    /// Lets a file in as a participant with its tracks. Refused, before anything has changed, where the room's rules do not permit it.
    public mutating func startPlayback(
        _ request: PlaybackRequest, turn: inout RoomTurn
    ) throws(RoomError) -> (session: SessionID, info: PlaybackInfo) {
        try check(request)
        var claims = AccessClaims(
            apiKey: "", identity: request.identity, name: request.name, expiresAt: .max, video: Self.playbackGrant)
        let sid = turn.sid("PB_")
        claims.attributes = ["playback": sid]
        var join = JoinRequest(claims: claims)
        join.profile = .publishOnly
        join.autoSubscribe = false
        // An operator let it in by starting it.
        waitingRoom.admit(request.identity)
        let session = try self.join(join, isSignalled: false, turn: &turn)
        do throws(RoomError) {
            let connection = try openPlaybackConnection(session, &turn)
            let info = PlaybackInfo(
                sid: sid, participant: try member(session).info.sid, identity: request.identity, peer: connection.peer,
                tracks: [], startedAt: turn.wallClock)
            playbacks.add(info, of: session)
            turn.log(.playback(PlaybackEvent(.started, info)))
            let tracks = publish(request, of: session, &turn)
            guard tracks.count == request.formats.count else {
                throw RoomError(.permissionDenied, "the room's rules do not permit a track of the file")
            }
            var complete = info
            complete.tracks = tracks
            makeOffers(&turn)
            return (session, complete)
        } catch {
            remove(session, reason: .left, turn: &turn)
            throw error
        }
    }

    /// Whether the room has this playback.
    public func hasPlayback(_ sid: String) -> Bool { playbacks.session(of: sid) != nil }

    /// Ends a playback: its participant leaves.
    public mutating func endPlayback(_ sid: String, _ end: PlaybackEnd, turn: inout RoomTurn) throws(RoomError) {
        guard let session = playbacks.session(of: sid) else {
            throw RoomError(.playbackNotFound, "the room has no such playback")
        }
        playbacks.setEnd(end, of: session)
        leave(session, turn: &turn)
    }

    /// The session is over: the player and the log are told, if it was a playback's.
    mutating func forgetPlayback(of session: SessionID, reason: LeaveReason, _ turn: inout RoomTurn) {
        guard let (info, end) = playbacks.remove(session) else { return }
        turn.effects.append(.playback(.ended(playback: info.sid)))
        turn.log(.playback(PlaybackEvent(.ended, info, reason: end?.rawValue ?? reason.rawValue)))
    }

    // MARK: - Rules

    private static var playbackGrant: VideoGrant {
        var grant = VideoGrant.join(nil)
        grant.canSubscribe = false
        grant.canPublishData = false
        return grant
    }

    private func check(_ request: PlaybackRequest) throws(RoomError) {
        guard policy.topology == .routed else {
            throw RoomError(.notRouted, "the room is peer to peer: its media does not pass the server")
        }
        guard playbacks.count < Self.maximumPlaybacks else {
            throw RoomError(.limitExceeded, "the room has as many playbacks as it may have")
        }
        // Nobody who is here gives way to a file, whatever the policy says about two people.
        guard !hasMember(identity: request.identity) else {
            throw RoomError(.identityTaken, "a participant with this identity is in the room")
        }
        if let most = policy.maxPublishers, routing.publisherCount >= most {
            throw RoomError(.limitExceeded, "publisher limit of the room reached")
        }
        for format in request.formats {
            let source = Self.source(of: format.codec.kind, request)
            guard policy.publishSources?.contains(source) ?? true, !policy.moderatorSources.contains(source) else {
                throw RoomError(.permissionDenied, "the room does not permit publishing \(source.rawValue)")
            }
            guard format.codec.kind == .audio || !policy.audioOnly else {
                throw RoomError(.permissionDenied, "the room permits no video")
            }
            if let reason = refusal(of: format) { throw RoomError(.codecNotAllowed, reason) }
        }
    }

    /// Why the room does not take a format; nil where it does.
    private func refusal(of format: PlaybackFormat) -> String? {
        let rules = NegotiationPolicy(policy)
        let allowed = rules.codecs(for: format.codec.kind.sectionKind).allowed
        guard format.codec.names.contains(where: allowed.contains) else {
            return "the room does not permit the codec \(format.codec.names[0].rawValue)"
        }
        switch format.codec {
        case .h264:
            guard let text = format.profileLevelID, let profile = H264Profile(profileLevelID: text) else {
                return "the H.264 profile \(format.profileLevelID ?? "of the file") is none that browsers receive"
            }
            return rules.h264Profiles.contains(profile)
                ? nil : "the room does not permit the H.264 profile \(profile.rawValue)"
        case .vp9: return profileRefusal("VP9", format.profile, rules.vp9Profiles)
        case .av1: return profileRefusal("AV1", format.profile, rules.av1Profiles)
        default: return nil
        }
    }

    private func profileRefusal(_ codec: String, _ profile: Int?, _ allowed: [Int]) -> String? {
        allowed.contains(profile ?? 0) ? nil : "the room does not permit the \(codec) profile \(profile ?? 0)"
    }

    private static func source(of kind: MediaKind, _ request: PlaybackRequest) -> TrackSource {
        switch kind {
        case .audio: request.isScreen ? .screenAudio : .microphone
        case .video: request.isScreen ? .screen : .camera
        }
    }

    // MARK: - Media

    /// A connection that is up from the beginning.
    private mutating func openPlaybackConnection(
        _ session: SessionID, _ turn: inout RoomTurn
    ) throws(RoomError) -> Connection {
        var connection = try makeConnection(Self.playbackConnection, for: try member(session), &turn)
        connection.isOpened = true
        connection.state = .connected
        roster.store(connection, of: session)
        roster.update(session) { $0.hasConnected = true }
        turn.media(
            .addPeer(
                PeerDescription(
                    id: connection.peer, room: id, profile: .player, localICE: connection.ice, remote: nil,
                    feedbackSSRC: connection.feedbackSSRC)))
        return connection
    }

    private mutating func publish(
        _ request: PlaybackRequest, of session: SessionID, _ turn: inout RoomTurn
    ) -> [PlaybackInfo.Track] {
        var tracks: [PlaybackInfo.Track] = []
        for (index, format) in request.formats.enumerated() {
            let kind = format.codec.kind, mid = String(index), source = Self.source(of: kind, request)
            let ssrc = turn.ssrc { ssrc in tracks.contains { $0.ssrc == ssrc } }
            let payloadType = Self.payloadTypes[kind] ?? 96
            let announcement = TrackAnnouncement(
                "\(kind)", source: source, width: format.width, height: format.height)
            roster.update(session) { member in
                member.announcements.append(AnnouncedTrack(sid: turn.sid("TR_"), announcement: announcement))
            }
            // No feedback: a file cannot be asked for keyframes or packets.
            let sending = RemoteSending(
                formats: [Self.negotiated(format, payloadType)], encodings: [RemoteEncoding(ssrc: ssrc)],
                trackID: "\(kind)")
            let section = NegotiatedSection(receivingOn: mid, index: index, kind: kind.sectionKind)
            receive(sending, section: section, on: Self.playbackConnection, of: session, &turn)
            let published = routing.tracks(of: session).compactMap { routing[$0] }
            guard let track = published.first(where: { $0.info.mid == mid }) else { continue }
            // Files tell no levels, by which the loudest are chosen.
            if kind == .audio { turn.media(.setTrackAlwaysForwarded(track.id, true)) }
            tracks.append(
                PlaybackInfo.Track(
                    sid: track.info.sid, kind: kind, codec: format.codec, ssrc: ssrc, payloadType: payloadType))
        }
        return tracks
    }

    /// The format as a client would have negotiated it.
    private static func negotiated(_ format: PlaybackFormat, _ payloadType: UInt8) -> NegotiatedFormat {
        let name = format.codec.names[0]
        switch format.codec {
        case .h264:
            return .h264(payloadType: payloadType, profileLevelID: format.profileLevelID ?? "42e01f")
        case .vp9, .av1:
            let profile = String(format.profile ?? 0)
            let parameter = format.codec == .vp9 ? "profile-id" : "profile"
            return NegotiatedFormat(
                codec: name, payloadType: payloadType, clockRateHz: 90_000,
                parameters: FormatParameters([.init(parameter, profile)]), variant: profile)
        case .opus:
            return NegotiatedFormat(
                codec: name, payloadType: payloadType, clockRateHz: 48_000, channels: 2,
                parameters: FormatParameters([.init("stereo", "1"), .init("sprop-stereo", "1")]))
        default: return NegotiatedFormat(codec: name, payloadType: payloadType, clockRateHz: 90_000)
        }
    }
}
