import AccessTokens
import MediaControl
import SDP

// What may be played into a room, and how a file's tracks appear as if a client had negotiated them.

extension PlaybackRequest {
    func check(in state: RoomState) throws(RoomError) {
        let policy = state.policy
        guard policy.topology == .routed else {
            throw RoomError(.notRouted, "the room is peer to peer: its media does not pass the server")
        }
        // A file never replaces a member, whatever the policy says about two participants.
        guard state.roster.session(identity: identity) == nil else {
            throw RoomError(.identityTaken, "a participant with this identity is in the room")
        }
        if let most = policy.maxPublishers, state.routing.publisherCount >= most {
            throw RoomError(.limitExceeded, "publisher limit of the room reached")
        }
        for format in formats {
            let source = source(of: format.codec.kind)
            guard policy.publishSources?.contains(source) ?? true, !policy.moderatorSources.contains(source) else {
                throw RoomError(.permissionDenied, "the room does not permit publishing \(source.rawValue)")
            }
            guard format.codec.kind == .audio || !policy.audioOnly else {
                throw RoomError(.permissionDenied, "the room permits no video")
            }
            if let reason = format.refusal(NegotiationPolicy(policy)) { throw RoomError(.codecNotAllowed, reason) }
        }
    }

    /// The file joins as a participant that only publishes, without a token. `sid`: the playback's.
    func joinRequest(_ sid: String) -> JoinRequest {
        var grant = VideoGrant.join(nil)
        grant.canSubscribe = false
        grant.canPublishData = false
        var claims = AccessClaims(apiKey: "", identity: identity, name: name, expiresAt: .max, video: grant)
        claims.attributes = ["playback": sid]
        var request = JoinRequest(claims: claims)
        request.profile = .publishOnly
        request.autoSubscribe = false
        return request
    }

    /// The source as which a track of the file appears.
    func source(of kind: MediaKind) -> TrackSource {
        switch kind {
        case .audio: isScreen ? .screenAudio : .microphone
        case .video: isScreen ? .screen : .camera
        }
    }
}

extension PlaybackFormat {
    /// Why the room does not permit a format; nil if it does.
    fileprivate func refusal(_ rules: NegotiationPolicy) -> String? {
        let allowed = rules.codecs(for: codec.kind.sectionKind).allowed
        guard codec.names.contains(where: allowed.contains) else {
            return "the room does not permit the codec \(codec.names[0].rawValue)"
        }
        switch codec {
        case .h264:
            guard let text = profileLevelID, let profile = H264Profile(profileLevelID: text) else {
                return "the H.264 profile \(profileLevelID ?? "of the file") is none that browsers receive"
            }
            return rules.h264Profiles.contains(profile)
                ? nil : "the room does not permit the H.264 profile \(profile.rawValue)"
        case .vp9: return profileRefusal("VP9", rules.vp9Profiles)
        case .av1: return profileRefusal("AV1", rules.av1Profiles)
        default: return nil
        }
    }

    private func profileRefusal(_ codec: String, _ allowed: [Int]) -> String? {
        allowed.contains(profile ?? 0) ? nil : "the room does not permit the \(codec) profile \(profile ?? 0)"
    }

    /// Dynamic payload types (RFC 3551 section 6), one for each kind; only this server sees them.
    var payloadType: UInt8 { codec.kind == .audio ? 111 : 96 }

    /// The track as a client would have announced it.
    func announcement(from source: TrackSource) -> TrackAnnouncement {
        TrackAnnouncement("\(codec.kind)", source: source, width: width, height: height)
    }

    /// The media as in a client's offer. No feedback: a file cannot send keyframes or packets on request.
    func sending(_ ssrc: UInt32) -> RemoteSending {
        RemoteSending(
            formats: [negotiated(payloadType)], encodings: [RemoteEncoding(ssrc: ssrc)], trackID: "\(codec.kind)")
    }

    /// The format as a client would have negotiated it.
    private func negotiated(_ payloadType: UInt8) -> NegotiatedFormat {
        let name = codec.names[0]
        switch codec {
        case .h264:
            return .h264(payloadType: payloadType, profileLevelID: profileLevelID ?? "42e01f")
        case .vp9, .av1:
            let profile = String(self.profile ?? 0)
            let parameter = codec == .vp9 ? "profile-id" : "profile"
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
