import MediaControl
import Primitives
import SDP

/// What all parts of a room share: who is in it, the routing between them, and the rules and limits.
struct RoomState: Sendable {
    /// The room's number, which also makes the numbers of everything in it unique in the process.
    let id: RoomID
    /// `RM_…`, one for each life of the room.
    let sid: String
    let name: String
    private(set) var policy: RoomPolicy
    /// Grows with each change of the rules, beginning at 1.
    private(set) var policyRevision: UInt64 = 1
    private(set) var context: RoomContext
    var roster = Roster()
    var routing = Routing()
    /// Members whose descriptions no longer match what they are sent.
    var outdated = OutdatedDescriptions()
    /// Tracks that are sent in their backup codec to everybody.
    var regressions = Regressions()
    /// The budgets of members that have left.
    private var formerBudgets = FormerBudgets()
    /// The speakers, as last announced.
    private var speakers: [SpeakerInfo] = []
    private var counter: UInt64 = 0

    /// An empty room.
    init(id: RoomID, sid: String, name: String, policy: RoomPolicy, context: RoomContext) {
        self.id = id
        self.sid = sid
        self.name = name
        self.policy = policy
        self.context = context
    }

    /// Adds a member to the roster.
    mutating func admit(_ member: Member) {
        var member = member
        formerBudgets.restore(to: &member)
        roster.insert(member)
    }

    /// Removes a member from the roster.
    mutating func dismiss(_ member: Member, at now: MonotonicTime) {
        formerBudgets.keep(roster[member.session] ?? member, at: now)
        roster.remove(member.session)
    }

    /// A number that is unique in the process: the room's in the high half, a count in the low.
    mutating func nextNumber() -> UInt64 {
        counter += 1
        return id.rawValue << 32 | counter
    }

    /// Whether somebody speaks, as last announced.
    var isAnybodySpeaking: Bool { !speakers.isEmpty }

    /// Announces the speakers to those who want to know.
    mutating func announceSpeakers(_ speakers: [SpeakerInfo], _ turn: inout RoomTurn) {
        self.speakers = speakers
        for session in roster.sessions { announceSpeakers(to: session, &turn) }
    }

    /// Sends the same to one member that has missed it.
    mutating func announceSpeakers(to session: SessionID, _ turn: inout RoomTurn) {
        guard roster[session]?.options.wantsSpeakers == true else { return }
        let present = speakers.filter { roster.session(sid: $0.participant) != nil }
        roster.notify(session, .speakersChanged(present), &turn)
    }

    /// Repeats to a member what is announced only when it changes: the speakers, which videos are held for lack of bandwidth, and which tracks their publishers
    /// permit it.
    mutating func sendCurrentState(to session: SessionID, _ turn: inout RoomTurn) {
        announceSpeakers(to: session, &turn)
        for id in routing.subscriptions(of: session) where routing[id]?.kind == .video && routing[id]?.track != nil {
            announceHeld(id, &turn)
        }
        // Only tracks of members that ever chose an audience: a large room has more tracks than events may wait for one reader, whose stream would end with its
        // start.
        for publisher in roster.sessions where publisher != session && roster[publisher]?.hasChosenAudience == true {
            for track in routing.tracks(of: publisher) {
                notify(session, of: track, isAllowed: permits(track, for: session), &turn)
            }
        }
    }

    /// Notifies the subscriber why a video has stopped.
    mutating func announceHeld(_ id: SubscriptionID, _ turn: inout RoomTurn) {
        guard let subscription = routing[id] else { return }
        let track = routing.track(of: subscription)?.info
        roster.notify(
            subscription.member,
            .subscriptionHeld(
                subscription: subscription.sid, participant: track?.participant, track: track?.sid,
                isHeld: subscription.isHeld), &turn)
    }

    /// Sets other rules; the caller applies them to members.
    mutating func set(_ policy: RoomPolicy) {
        self.policy = policy
        policyRevision += 1
    }

    /// Sets the addresses at which clients reach the room's worker from now on; existing descriptions are not changed.
    mutating func set(candidates: [Candidate]) { context.candidates = candidates }

    /// Sets the maximum number of members from the next join on, if the policy permits more.
    mutating func set(participants: Int) { context.limits.participants = participants }
}

// MARK: - Finding things

extension RoomState {
    func member(_ session: SessionID) throws(RoomError) -> Member {
        guard let member = roster[session] else { throw RoomError(.sessionNotFound, "there is no such session") }
        return member
    }

    func connection(_ id: String, of session: SessionID) throws(RoomError) -> Connection {
        let member = try member(session)
        guard let index = member.connectionIndex(id) else {
            throw RoomError(.connectionNotFound, "there is no such connection")
        }
        return member.connections[index]
    }

    /// The member whose sid or identity is `name`, if others may know of it.
    func session(named name: String) throws(RoomError) -> SessionID {
        guard let session = find(name) else {
            throw RoomError(.participantNotFound, "there is no such participant")
        }
        return session
    }

    func track(_ sid: String) throws(RoomError) -> RoomTrack {
        guard let track = routing.track(sid: sid) else {
            throw RoomError(.trackNotFound, "there is no such track")
        }
        return track
    }

    /// The member's own subscription to the track `sid`.
    func subscription(of member: Member, to sid: String) throws(RoomError) -> RoomSubscription {
        guard let subscription = routing.subscription(of: member.session, to: try track(sid).id) else {
            throw RoomError(.subscriptionNotFound, "not subscribed to this track")
        }
        return subscription
    }

    /// The session whose sid or identity is `name`.
    func find(_ name: String) -> SessionID? { roster.session(sid: name) ?? roster.session(identity: name) }
}

// MARK: - Changes that are announced

extension RoomState {
    /// The participant changed: a new version, for everybody.
    mutating func participantChanged(_ session: SessionID, _ turn: inout RoomTurn) {
        roster.nextVersion(of: session)
        guard let info = participant(session) else { return }
        roster.notify(about: session, .participantUpdated(info), includingSubject: true, &turn)
    }

    /// A connection of the participant is up. If it is the first, members that want to know are notified.
    mutating func connected(_ session: SessionID, _ turn: inout RoomTurn) {
        guard roster[session]?.info.hasConnected == false else { return }
        roster.update(session) { $0.info.hasConnected = true }
        roster.nextVersion(of: session)
        guard let info = participant(session) else { return }
        roster.notify(
            about: session, .participantUpdated(info), includingSubject: true, where: { $0.wantsConnections }, &turn)
    }

    /// A track changed, for everybody.
    mutating func trackChanged(_ id: TrackID, _ turn: inout RoomTurn) {
        guard let track = routing[id], track.main == nil else { return }
        roster.nextVersion(of: track.publisher)
        roster.notify(about: track.publisher, .trackUpdated(track.info), includingSubject: true, &turn)
    }

    /// A subscription changed, for its member.
    mutating func subscriptionChanged(_ id: SubscriptionID, _ turn: inout RoomTurn) {
        guard let subscription = routing[id] else { return }
        roster.notify(subscription.member, .subscriptionUpdated(info(of: subscription)), &turn)
    }

    /// A subscription's section must be negotiated anew.
    mutating func renegotiate(_ id: SubscriptionID) {
        guard let subscription = routing[id] else { return }
        if subscription.state == .noCommonCodec { routing.update(id) { $0.state = .pending } }
        if let connection = subscription.connection {
            roster.updateConnection(connection, of: subscription.member) { $0.needsOffer = true }
        }
        outdated.insert(subscription.member)
    }

    /// Notifies the publisher of a track, once, that somebody has agreed to receive it; not before packets of it have arrived, because LiveKit's JavaScript SDK
    /// may not know the track by its sid earlier. The track may be muted by then.
    mutating func announceSubscribed(_ id: TrackID?, _ turn: inout RoomTurn) {
        guard let track = id.flatMap({ routing[$0] }), track.info.codec != nil, !track.hasSubscriber,
            routing.subscribers(of: track.id).contains(where: { routing[$0]?.description?.track != nil })
        else { return }
        routing.update(track.id) { $0.hasSubscriber = true }
        roster.notify(track.publisher, .trackSubscribed(track: track.info.sid), &turn)
    }

    /// Commands what each video of a member may send: the room's cap for one track, and an equal share of the cap on all. Muted
    /// tracks, and encodings that nobody needs, leave their share to the others.
    mutating func capTracks(of session: SessionID, _ turn: inout RoomTurn) {
        guard let member = roster[session] else { return }
        let videos = routing.encodings(of: member.session).filter { routing[$0]?.info.kind == .video }
        let sending = videos.count { routing[$0].map { !$0.info.muted && !isStopped($0) } ?? false }
        let part = settings(of: member).maxUplinkBitrate.map { limit in
            Bitrate.bitsPerSecond(max(limit.value.bitsPerSecond / Int64(max(sending, 1)), Self.leastCap))
        }
        for id in videos {
            let cap = [policy.maxVideoBitrate, part].compactMap { $0 }.min()
            guard routing[id]?.description.maximumBitrate != cap else { continue }
            routing.update(id) { $0.description.maximumBitrate = cap }
            turn.media(.setTrackMaximumBitrate(id, cap))
        }
    }

    /// Below this a sender can only stop; muting exists for that.
    private static let leastCap: Int64 = 30_000

    /// A member may receive a track from now on, or no longer may.
    mutating func notify(_ member: SessionID, of track: TrackID, isAllowed: Bool, _ turn: inout RoomTurn) {
        guard let receiver = roster[member], receiver.permissions.canSubscribe, receiver.profile != .publishOnly,
            let track = routing[track], let owner = roster[track.publisher], !owner.isHidden
        else { return }
        roster.notify(
            member, .trackPermission(participant: owner.info.sid, track: track.info.sid, isAllowed: isAllowed), &turn)
    }

    /// Notifies a member that joined, or may subscribe, only after publishers chose their audiences which tracks it may not receive.
    mutating func announceForbiddenTracks(to session: SessionID, _ turn: inout RoomTurn) {
        for publisher in roster.sessions where roster[publisher]?.audience != nil {
            for track in routing.tracks(of: publisher) { announceIfForbidden(track, to: session, &turn) }
        }
    }

    /// Notifies a member of a track that its publisher does not permit it to receive.
    mutating func announceIfForbidden(_ id: TrackID, to session: SessionID, _ turn: inout RoomTurn) {
        guard routing[id]?.publisher != session, !permits(id, for: session) else { return }
        notify(session, of: id, isAllowed: false, &turn)
    }

    /// Whether the publisher of a track permits a member to receive it.
    private func permits(_ id: TrackID, for session: SessionID) -> Bool {
        guard let track = routing[id], let audience = roster[track.publisher]?.audience, let member = roster[session]
        else { return true }
        return audience.permits(track.info.sid, for: member.info.identity)
    }

    /// A member does not want a track unless it requests it later. Tracks that have ended are removed if the list grows beyond what a member may receive.
    mutating func note(_ track: TrackID, asUnwantedBy session: SessionID) {
        let (routing, most) = (routing, context.limits.subscriptionsPerParticipant)
        roster.update(session) { member in
            member.asked.remove(track)
            member.unwanted.insert(track)
            if member.unwanted.count > most { member.unwanted = member.unwanted.filter { routing[$0] != nil } }
        }
    }

    /// A member requests a track that it may not be permitted to receive, or for which it has no room. The list keeps as many tracks as a member may receive,
    /// and as many that wait.
    mutating func note(_ track: TrackID, asAskedForBy session: SessionID) {
        let (routing, most) = (routing, 2 * context.limits.subscriptionsPerParticipant)
        roster.update(session) { member in
            member.unwanted.remove(track)
            guard member.options.awaitsPermission else { return }
            if member.asked.count >= most { member.asked = member.asked.filter { routing[$0] != nil } }
            if member.asked.count < most { member.asked.insert(track) }
        }
    }

    /// A member's preferences for a track that it does not receive yet apply from its subscription on; they are kept for no more tracks than a member may
    /// receive.
    mutating func keep(_ view: TrackView, of track: TrackID, for session: SessionID) {
        let (routing, most) = (routing, context.limits.subscriptionsPerParticipant)
        roster.update(session) { member in
            if member.views.count >= most { member.views = member.views.filter { routing[$0.key] != nil } }
            if member.views.count < most || member.views[track] != nil { member.views[track] = view }
        }
    }

    /// Removes and returns a member's preferences for a track from before its subscription, which has them from now on.
    mutating func removeView(of track: TrackID, for session: SessionID) -> TrackView? {
        guard let view = roster[session]?.views[track] else { return nil }
        roster.update(session) { $0.views[track] = nil }
        return view
    }
}

// MARK: - What others see, made on demand

extension RoomState {
    /// A member with its tracks.
    func participant(_ session: SessionID) -> ParticipantInfo? {
        roster[session].map(info(of:))
    }

    func info(of member: Member) -> ParticipantInfo {
        var info = member.info
        info.tracks = routing.tracks(of: member.session).compactMap { routing[$0]?.info }
        return info
    }

    /// All members that `session` may know of, in the order of joining.
    func others(than session: SessionID) -> [ParticipantInfo] {
        roster.sessions.compactMap { other in
            guard other != session, let member = roster[other], !member.isHidden else { return nil }
            return info(of: member)
        }
    }

    func info(of subscription: RoomSubscription) -> SubscriptionInfo {
        let track = routing.track(of: subscription)
        var info = SubscriptionInfo(
            sid: subscription.sid, track: track?.info.sid, publisher: track?.info.participant,
            subscriber: roster[subscription.member]?.info.sid ?? "", kind: subscription.kind,
            connection: subscription.connection, mid: subscription.mid, paused: isPaused(subscription),
            preference: subscription.preference, state: subscription.state)
        info.display = subscription.display
        info.freezes = subscription.freezes.total
        return info
    }

    /// mid -> sid of the track that comes in or goes out on it.
    func shown(on name: String, of session: SessionID) -> [String: String] {
        guard let connection = try? connection(name, of: session) else { return [:] }
        var shown: [String: String] = [:]
        for (mid, id) in connection.subscriptionByMid {
            if let subscription = routing[id] { shown[mid] = routing.track(of: subscription)?.info.sid }
        }
        for (mid, id) in connection.trackByMid { shown[mid] = routing[id]?.info.sid }
        return shown
    }
}
