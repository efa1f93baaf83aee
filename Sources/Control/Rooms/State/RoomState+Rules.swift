import AccessTokens
import MediaControl
import Primitives
import SDP

// What a member may do, receive and be sent, by the room's rules and its own.

extension RoomState {
    /// The tightest of the room's, the token's and the member's own limits.
    func settings(of member: Member) -> BandwidthSettings { settings(of: member, in: policy) }

    func settings(of member: Member, in policy: RoomPolicy) -> BandwidthSettings {
        BandwidthSettings(room: policy.bandwidth, token: member.options.grantedBandwidth, own: member.options.bandwidth)
    }

    /// The cap in descriptions. It does not include the member's own preference, which may be withdrawn without a new description.
    func negotiatedCap(of member: Member) -> Bitrate? {
        let uplink = BandwidthSettings(
            room: policy.bandwidth, token: member.options.grantedBandwidth, own: BandwidthProfile()
        ).maxUplinkBitrate?.value
        return [policy.maxVideoBitrate, uplink].compactMap { $0 }.min()
    }

    /// Refuses a member that may not send messages or frames of data tracks.
    func checkSendsMessages(_ member: Member) throws(RoomError) {
        guard member.permissions.canPublishData else {
            throw RoomError(.permissionDenied, "the token does not permit sending messages (canPublishData)")
        }
        guard policy.allowsMessages else {
            throw RoomError(.permissionDenied, "the room's policy does not allow messages")
        }
    }

    /// What a description may negotiate.
    var negotiationRules: NegotiationPolicy {
        var rules = NegotiationPolicy(policy)
        rules.longestMessage = context.limits.acceptedMessageBytes
        return rules
    }

    /// Whether the member receives no video, by its own preference or the room's rules.
    func isAudioOnly(_ member: Member) -> Bool { member.options.audioOnly || policy.audioOnly }

    /// Whether the member's permissions and the room's rules allow a source.
    func mayPublish(_ source: TrackSource, _ member: Member) -> Bool {
        member.permissions.mayPublish(source) && (policy.publishSources?.contains(source) ?? true)
            && (member.permissions.roomAdmin || !policy.moderatorSources.contains(source))
    }

    /// Whether the microphones of `identity` are forwarded no matter how quiet they are.
    func isAlwaysHeard(_ identity: String) -> Bool { policy.alwaysHeard.contains(identity) }

    /// The source of a section, as announced or as its kind suggests; nil if the member may not publish it.
    ///
    /// An unannounced section is the first permitted one of microphone and screen audio, or of camera and screen: so
    /// a WHIP broadcaster with `screen_share` in its token needs no announcement. A video that was announced as a microphone is neither.
    /// A track that ended here and comes back keeps its source: a camera that was forbidden does not come back as a screen.
    func permittedSource(
        _ kind: MediaKind, _ sending: RemoteSending, mid: String, of connection: String, _ member: Member
    ) -> TrackSource? {
        if let announced = member.announcements.find(sending.trackID, mid, kind)?.announcement {
            return announced.source.fits(kind) && mayPublish(announced.source, member)
                ? announced.source : nil
        }
        let known = member.connectionIndex(connection).map { member.connections[$0] }
        if let former = known?.formerSource(of: sending.shownTrackID, mid: mid), former.fits(kind) {
            return mayPublish(former, member) ? former : nil
        }
        var guesses: [TrackSource] = kind == .audio ? [.microphone, .screenAudio] : [.camera, .screen]
        if kind == .video, sending.contentHint == "slides" { guesses.reverse() }
        return guesses.first { mayPublish($0, member) }
    }

    /// The announcement of the track on a section. A track that continues under its own id does not match an announcement for another id.
    func awaitedTrack(
        _ sending: RemoteSending, _ kind: MediaKind, _ mid: String, on connection: Connection, by member: Member
    ) -> AnnouncedTrack? {
        let known = connection.trackByMid[mid].flatMap { routing[$0]?.info.clientTrackID }
        return known != nil && known == sending.trackID ? nil : member.announcements.find(sending.trackID, mid, kind)
    }

    /// Throws `limit_exceeded` if the room's policy permits no more publishers, and this member is not one yet.
    func checkPublisherLimit(_ member: Member) throws(RoomError) {
        guard let most = policy.maxPublishers, !routing.publishes(member.session) else { return }
        guard routing.publisherCount < most else {
            throw RoomError(.limitExceeded, "publisher limit of the room reached")
        }
    }

    /// Whether rules and publisher let `member` receive `track`.
    func permits(_ track: RoomTrack, for member: Member) -> Bool {
        // A participant's own rules replace those of the room.
        guard (member.subscribeRules ?? policy.subscribeRules)?.permit(track.info) ?? true else { return false }
        return roster[track.publisher]?.audience?.permits(track.info.sid, for: member.info.identity) ?? true
    }

    /// Whether a member is to be subscribed to a track, if there is room for it.
    func wantsAutomatically(_ session: SessionID, _ id: TrackID) -> Bool {
        guard let member = roster[session],
            member.options.autoSubscribe ? !member.unwanted.contains(id) : member.asked.contains(id),
            let track = routing[id], !(roster[track.publisher]?.isHidden ?? true),
            !(track.info.kind == .video && isAudioOnly(member))
        else { return false }
        return (try? checkSubscription(member, track)) != nil
    }

    /// Checks that `member` may receive `track` in addition to what it already receives.
    func checkSubscription(_ member: Member, _ track: RoomTrack) throws(RoomError) {
        guard policy.topology == .routed else {
            throw RoomError(.notRouted, "this room is peer-to-peer: the server carries no media")
        }
        guard member.permissions.canSubscribe, member.profile != .publishOnly else {
            throw RoomError(.permissionDenied, "not permitted to subscribe")
        }
        guard track.publisher != member.session else {
            throw RoomError(.invalidRequest, "a participant cannot subscribe to its own track")
        }
        guard permits(track, for: member) else {
            throw RoomError(.permissionDenied, "not permitted to subscribe to this track")
        }
        guard routing.subscription(of: member.session, to: track.id) == nil else {
            throw RoomError(.invalidRequest, "already subscribed")
        }
        // If several may be sent, the worker decides at each moment which ones; if none may, there is nothing to decide.
        if track.info.kind == .video, settings(of: member).maxVideoSubscriptions?.value == 0 {
            throw RoomError(.limitExceeded, "video subscriptions are not allowed")
        }
    }

    /// Whether the member may have one more subscription.
    func hasRoomForSubscription(_ session: SessionID) -> Bool {
        routing.subscriptionCount(of: session) < context.limits.subscriptionsPerParticipant
    }

    /// Paused by its own request or together with all video of its member.
    func isPaused(_ subscription: RoomSubscription) -> Bool {
        subscription.paused
            || subscription.kind == .video && (roster[subscription.member]?.allVideoPaused ?? false)
    }

    /// A member that is about to be replaced does not count.
    func checkCapacity(identity: String, profile: ParticipantProfile, hidden: Bool) throws(RoomError) {
        let replaced = policy.duplicateIdentity == .allow ? nil : roster.session(identity: identity)
        let present = roster.count - (replaced == nil ? 0 : 1)
        guard present < context.limits.participants else { throw RoomError(.roomFull, "the room is full") }
        guard let most = policy.maxParticipants, counts(profile, hidden: hidden) else { return }
        let counted = roster.all.count { $0.session != replaced && counts($0.profile, hidden: $0.isHidden) }
        guard counted < most else { throw RoomError(.roomFull, "the room is full") }
    }

    func counts(_ profile: ParticipantProfile, hidden: Bool) -> Bool {
        (policy.countsHidden || !hidden) && (policy.countsPublishOnly || profile != .publishOnly)
    }

    /// What the member is to be sent on this connection, in the order of subscription.
    func wanted(on connection: Connection, of session: SessionID) -> [(id: SubscriptionID, sending: LocalSending)] {
        guard let member = roster[session] else { return [] }
        let isReceiving = member.options.receivingConnection == connection.id || member.options.follow != nil
        return routing.subscriptions(of: member.session).compactMap { id in
            guard let subscription = routing[id], subscription.state != .noCommonCodec,
                subscription.connection == connection.id || subscription.connection == nil && isReceiving
            else { return nil }
            return (id, sending(of: subscription, names: member.options.streamNames))
        }
    }

    private func sending(of subscription: RoomSubscription, names: StreamNames) -> LocalSending {
        if let slot = subscription.slot {
            // Voice keeps the parameters of the member that is followed first; video may change its codec with the member.
            let track = subscription.kind == .audio ? routing.track(of: subscription) : nil
            return LocalSending(
                kind: subscription.kind.sectionKind, ssrc: subscription.ssrc, rtxSSRC: subscription.rtxSSRC,
                cname: sid, streamID: sid, trackID: "\(subscription.kind.rawValue)\(slot)", formats: track?.formats,
                packetTime: track?.packetTime)
        }
        let track = routing.track(of: subscription)
        let publisher = track?.info.participant ?? sid
        let trackID = track?.info.sid ?? subscription.sid
        let isScreen = track?.info.source.isOfScreen ?? false
        let streamID =
            switch names {
            case .publisher: isScreen ? publisher + "-screen" : publisher
            case .publisherAndTrack: "\(publisher)|\(trackID)"
            }
        return LocalSending(
            kind: subscription.kind.sectionKind, ssrc: subscription.ssrc, rtxSSRC: subscription.rtxSSRC,
            cname: publisher, streamID: streamID, trackID: trackID, formats: track.map(formats(of:)),
            packetTime: track?.packetTime)
    }

    /// A track belongs to a screen from now on, or no longer does: sections that name its stream after that are negotiated anew.
    mutating func streamNameChanged(of track: TrackID) {
        for id in routing.subscribers(of: track) {
            guard let subscription = routing[id], subscription.slot == nil, subscription.connection != nil,
                subscription.state != .noCommonCodec,
                roster[subscription.member]?.options.streamNames == .publisher
            else { continue }
            renegotiate(id)
        }
    }

    func hasUnplaced(_ connection: Connection, _ member: Member) -> Bool {
        guard connection.id == member.options.receivingConnection else { return false }
        return routing.subscriptions(of: member.session).contains { id in
            guard let subscription = routing[id] else { return false }
            return subscription.connection == nil && subscription.state == .pending
        }
    }
}

// MARK: - Who may join

extension RoomState {
    /// Refuses a join that tokens, limits or rules do not permit; returns the newcomer's identity.
    func check(_ request: JoinRequest) throws(RoomError) -> String {
        let claims = request.claims
        try claims.checkJoins()
        guard let identity = claims.identity, !identity.isEmpty else {
            throw RoomError(.identityRequired, "the token has no identity (`sub`)")
        }
        try TextRule.identifier.check(identity, "the identity")
        try TextRule.label.check(request.shownName, "the name")
        try TextRule.metadata.check(request.shownMetadata, "the metadata")
        try TextRule.label.check(request.client ?? "", "the client's name")
        if let id = request.receivingConnection { try context.limits.check(connectionID: id) }
        let permissions = Permissions(claims.video)
        switch request.profile {
        case .publishOnly where !permissions.canPublish:
            throw RoomError(.permissionDenied, "the token does not permit publishing")
        case .viewer where !permissions.canSubscribe:
            throw RoomError(.permissionDenied, "the token does not permit subscribing")
        default: break
        }
        guard request.encrypts || !policy.requiresEncryption else {
            throw RoomError(
                .encryptionRequired, "this room admits only participants that encrypt their media end to end")
        }
        try checkCapacity(identity: identity, profile: request.profile, hidden: permissions.hidden)
        return identity
    }
}

extension TrackSource {
    /// Whether a track of this source is in its publisher's stream of the screen.
    var isOfScreen: Bool { self == .screen || self == .screenAudio }
}

extension JoinRequest {
    /// The token's values take precedence.
    var shownName: String { claims.name ?? name ?? "" }
    var shownMetadata: String { claims.metadata ?? metadata ?? "" }
}
