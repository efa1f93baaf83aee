import AccessTokens
import MediaControl
import Primitives

/// A participant with all that belongs to it.
struct Member: Sendable {
    let session: SessionID
    /// The key that signed the token it joined with.
    let apiKey: String
    /// What its token permits; an operator may have changed its permissions since.
    private(set) var granted: Permissions
    /// The id of its token, if that has one.
    private(set) var tokenID: String?
    /// When its token expires.
    private(set) var tokenExpiry: MonotonicTime
    /// How long it has been here, and what keeps it here.
    var stay: Stay
    /// Rooms that it was moved out of: its client may present a token for any of them.
    private(set) var formerRooms: Set<String> = []
    /// What others see, without tracks.
    var info: ParticipantInfo
    var options: MemberOptions
    /// In the order in which they were made.
    var connections: [Connection] = []
    /// Connections that have ended.
    private(set) var formerConnections = FormerConnections()
    /// It was moved here without its connections, and its client has not joined again yet.
    private(set) var isAwaited = false
    /// When its client said goodbye while it was awaited.
    private(set) var goodbye: MonotonicTime?
    /// This many can always be opened: the server reserves them.
    let promisedConnections: Int
    /// Tracks that it excluded although it subscribes automatically.
    var unwanted: Set<TrackID> = []
    /// Tracks that it requested, if these are subscribed as soon as it may receive them and has room for them.
    var asked: Set<TrackID> = []
    /// Its preferences for tracks that it does not receive yet.
    var views: [TrackID: TrackView] = [:]
    /// What its token permits it to receive; nil: the room's rules apply.
    private(set) var grantedRules: [SubscribeRule]?
    /// What an operator permits it to receive; nil: the token's rules apply.
    var operatorRules: [SubscribeRule]?
    /// Who may receive its tracks; nil: everybody.
    var audience: Audience? { didSet { hasChosenAudience = true } }
    /// Whether it ever chose an audience: until then, nobody is notified of what may be received from it.
    private(set) var hasChosenAudience = false
    var announcements = AnnouncedTracks()
    /// The number of the last event sent to it.
    var sequence: UInt64 = 0
    var allVideoPaused = false
    var sentMessages = SentMessages()
    /// Limits on what it causes to be sent to everybody.
    var budgets = Budgets()
    /// What it plays, if it is a file and not a client.
    var playback: ActivePlayback?

    init(
        session: SessionID, apiKey: String, granted: Permissions, tokenID: String? = nil, tokenExpiry: MonotonicTime,
        joined: MonotonicTime, info: ParticipantInfo, options: MemberOptions, promisedConnections: Int,
        grantedRules: [SubscribeRule]? = nil
    ) {
        self.session = session
        self.apiKey = apiKey
        self.granted = granted
        self.tokenID = tokenID
        self.tokenExpiry = tokenExpiry
        self.info = info
        self.options = options
        self.promisedConnections = promisedConnections
        self.grantedRules = grantedRules
        stay = Stay(joined: joined)
    }

    var profile: ParticipantProfile { info.profile }
    var permissions: Permissions { info.permissions }
    /// The number of connections that the server reserves for it: as many as its join was promised, or as it has, if these are more.
    var reservedConnections: Int { max(promisedConnections, connections.count) }
    /// Its own rules, which replace those of the room.
    var subscribeRules: [SubscribeRule]? { operatorRules ?? grantedRules }
    var isHidden: Bool { info.permissions.hidden }
    /// Whether it receives all data tracks of others automatically.
    var subscribesToDataTracks: Bool { options.subscribesToDataTracks && permissions.canSubscribe }

    /// Nothing more is to be subscribed for it.
    mutating func stopAsking() {
        options.autoSubscribe = false
        asked = []
    }

    func connectionIndex(_ id: String) -> Int? { connections.firstIndex { $0.id == id } }
}

// MARK: - Its token

extension Member {
    /// Refuses a resume unless its token could have joined this session: the bearer of another key's or identity's token learns
    /// nothing of the session. Grants take effect when somebody joins, so changed ones need a join. `room`: the room's name.
    func checkResume(_ claims: AccessClaims, room: String) throws(RoomError) {
        guard options.isSignalled, claims.identity == info.identity, claims.apiKey == apiKey else {
            throw RoomError(.sessionNotFound, "there is no such session")
        }
        try claims.checkJoins()
        try checkRoom(of: claims, room)
        var permissions = Permissions(claims.video)
        // The token with which the server lets it come back to a room that it was moved to moderates no room; the stay keeps its rights.
        if !formerRooms.isEmpty, !permissions.roomAdmin { permissions.roomAdmin = granted.roomAdmin }
        guard permissions == granted, BandwidthProfile(claims.video) == options.grantedBandwidth,
            [SubscribeRule](claims.video) == grantedRules
        else { throw RoomError(.grantsChanged, "the grants differ from those of the token that joined; join again") }
    }

    /// Refuses a token with which this member cannot continue in `room`.
    func checkRefresh(_ claims: AccessClaims, room: String) throws(RoomError) {
        guard claims.identity == info.identity, claims.apiKey == apiKey else {
            throw RoomError(.permissionDenied, "the token is not this participant's")
        }
        try claims.checkJoins()
        try checkRoom(of: claims, room)
        let permissions = Permissions(claims.video)
        guard permissions.hidden == granted.hidden, permissions.recorder == granted.recorder else {
            throw RoomError(.grantsChanged, "hidden and recorder cannot change during a stay; join again")
        }
    }

    /// Another token, whose expiry and grants apply from now on.
    mutating func apply(_ claims: AccessClaims, _ turn: RoomTurn) {
        granted = Permissions(claims.video)
        tokenID = claims.tokenID
        tokenExpiry = turn.moment(ofSecond: claims.expiresAt)
        options.grantedBandwidth = BandwidthProfile(claims.video)
        grantedRules = [SubscribeRule](claims.video)
    }

    /// The token of a resume, which permits the same as the one before: if it expires later, the stay is extended.
    mutating func prolong(_ claims: AccessClaims, _ turn: RoomTurn) {
        let expiry = turn.moment(ofSecond: claims.expiresAt)
        guard expiry > tokenExpiry else { return }
        (tokenID, tokenExpiry) = (claims.tokenID, expiry)
    }

    /// A token for this room, or for one that the member was moved out of.
    private func checkRoom(of claims: AccessClaims, _ room: String) throws(RoomError) {
        if let granted = claims.video.room, formerRooms.contains(granted) { return }
        try RoomNames.checkMatch(granted: claims.video.room, asked: room)
    }

    func checkModerates() throws(RoomError) {
        guard permissions.roomAdmin else {
            throw RoomError(.permissionDenied, "only a moderator (roomAdmin) may do this")
        }
    }
}

extension AccessClaims {
    func checkJoins() throws(RoomError) {
        guard video.roomJoin else { throw RoomError(.permissionDenied, "the token does not permit joining") }
    }
}

// MARK: - Moves

extension Member {
    /// It leaves a room for another one.
    mutating func leave(_ room: String) { formerRooms.insert(room) }

    /// It continues in another room, which does not know its preferences yet.
    mutating func enter(_ room: String, losesConnections: Bool, _ turn: RoomTurn) {
        stay.beginAnew(at: turn.now)
        info.joinedAt = turn.wallClock
        unwanted = []
        views = [:]
        // Its client may count anew in another room.
        sentMessages.countAnew()
        for index in connections.indices { connections[index].forgetRequestedSections() }
        if losesConnections { loseConnections() }
        formerRooms.remove(room)
    }

    /// A move is about to end its connections.
    mutating func rememberConnections() {
        for connection in connections { formerConnections.addMoved(connection) }
    }

    /// One of its connections has ended.
    mutating func remember(_ connection: Connection) { formerConnections.add(connection) }

    /// A move has ended its connections, if it had any. Until a client that joins again has done so, it gets no offers and no subscriptions.
    private mutating func loseConnections() {
        // It connects like a newcomer.
        info.hasConnected = false
        stay.loseConnections()
        info.dataTracks = []
        if options.recovery == .byJoining { awaitJoin() }
    }

    /// Its client continues with a join.
    mutating func awaitJoin() {
        isAwaited = true
        goodbye = nil
        options.offering = .client
        stopAsking()
    }

    /// Its client has joined again. What it was notified of before no longer counts; decisions of operators about it remain.
    mutating func rejoin(_ request: JoinRequest, _ turn: RoomTurn) {
        isAwaited = false
        goodbye = nil
        options = MemberOptions(request, isSignalled: true, follow: nil)
        formerConnections = FormerConnections()
        announcements = AnnouncedTracks()
        allVideoPaused = false
        sentMessages.countAnew()
        info.client = request.client
        info.clientTraits = request.clientTraits
        stay.attach(at: turn.now)
    }

    /// Its awaited client says goodbye. LiveKit's SDKs do so before they join again, with the same message as when a user leaves: only time shows which of them
    /// it is.
    mutating func sayGoodbye(_ turn: RoomTurn) { goodbye = goodbye ?? turn.now }

    /// The time of LiveKit's SDKs for their first four attempts to join again, which follow the goodbye at once and after pauses of 0.3, 1.2 and 2.7 s.
    private static let rejoinWindow = TimeSpan.seconds(10)

    /// When an awaited client that said goodbye has left.
    private var goodbyeDeadline: MonotonicTime { goodbye.map { $0 + Self.rejoinWindow } ?? .distantFuture }

    /// Refuses descriptions until an awaited client has joined: they come from its former socket.
    func checkNotAwaited() throws(RoomError) {
        guard isAwaited else { return }
        throw RoomError(
            .connectionNotFound, "the participant was moved without its connections: join the room that it is in now")
    }
}

// MARK: - Deadlines

extension Member {
    /// When its stay ends, if no keep-alive arrives before.
    func deadline(_ policy: RoomPolicy, _ limits: RoomLimits) -> MonotonicTime {
        min(signDeadline(limits), stayDeadline(policy))
    }

    /// Why its stay ends at its deadline.
    func reasonToEnd(at now: MonotonicTime, _ policy: RoomPolicy) -> LeaveReason {
        if stayDeadline(policy) <= now {
            return policy.endsStayWithToken && tokenExpiry <= now ? .tokenExpired : .stayDurationReached
        }
        if goodbyeDeadline <= now { return .left }
        return options.isSignalled ? .timeout : .connectionLost
    }

    /// When the policy ends the stay.
    func stayDeadline(_ policy: RoomPolicy) -> MonotonicTime {
        let longest = policy.maxStay.map { stay.joined + $0 } ?? .distantFuture
        return policy.endsStayWithToken ? min(longest, tokenExpiry) : longest
    }

    private func signDeadline(_ limits: RoomLimits) -> MonotonicTime {
        guard options.isSignalled else { return stay.connectDeadline(of: connections, limits) }
        return min(stay.signDeadline(limits), goodbyeDeadline)
    }
}

// MARK: - Messages

extension Member {
    /// The channel on which it gets messages of a kind.
    func channel(for kind: RoomMessage.Channel) -> MessageReceiver? {
        let names = options.dataProtocol
        for label in names.labels(for: kind) {
            if let connection = connections.first(where: { $0.channels.contains(label) }) {
                return MessageReceiver(peer: connection.peer, label: label, protocol: names)
            }
        }
        return nil
    }
}

/// A file that is a participant.
struct ActivePlayback: Sendable {
    let info: PlaybackInfo
    /// Why it is about to end.
    var end: PlaybackEnd?
}

/// A member's preferences for how it is served.
struct MemberOptions: Sendable {
    var autoSubscribe: Bool
    var subscribesToDataTracks = false
    var awaitsPermission = false
    /// Receives no video, whatever the room allows.
    var audioOnly: Bool
    var hasRoster: Bool
    var wantsSpeakers: Bool
    var wantsConnections = false
    /// The connection for its subscriptions; nil until one is known.
    var receivingConnection: String?
    var offering = Offering.server
    var streamNames = StreamNames.publisher
    /// The limits of the token and of the member itself for its bandwidth.
    var grantedBandwidth: BandwidthProfile
    var bandwidth: BandwidthProfile
    /// Has a socket: gets events, must send keep-alives. WHIP and WHEP sessions have none.
    var isSignalled: Bool
    /// Whether messages of others are sent to it.
    var wantsMessages: Bool
    /// How its messages are encoded on data channels.
    var dataProtocol: DataProtocol
    /// WHEP: sections of the client's offer show the member that they follow.
    var follow: FollowTarget?

    /// nil: its client opens no other connection than the one that it has (WHIP, WHEP).
    var recovery: Recovery?
    var understandsMoves = true
    var understandsUnmuteRequests = true
    /// Whether the server may make offers to it.
    var takesOffers: Bool { isSignalled && offering != .client }
}

extension MemberOptions {
    /// As a newcomer requests it.
    init(_ request: JoinRequest, isSignalled: Bool, follow: FollowTarget?) {
        let isPublishOnly = request.profile == .publishOnly
        self.init(
            autoSubscribe: request.autoSubscribe && request.profile == .full
                || request.profile == .viewer && isSignalled,
            audioOnly: request.audioOnly,
            hasRoster: isSignalled && (request.wantsRoster ?? !isPublishOnly), wantsSpeakers: request.wantsSpeakers,
            receivingConnection: request.receivingConnection,
            grantedBandwidth: BandwidthProfile(request.claims.video), bandwidth: request.bandwidth,
            isSignalled: isSignalled, wantsMessages: request.wantsMessages ?? !isPublishOnly,
            dataProtocol: request.dataProtocol, follow: follow, recovery: isSignalled ? request.recovery : nil,
            understandsMoves: request.understandsMoves,
            understandsUnmuteRequests: isSignalled && request.understandsUnmuteRequests)
        subscribesToDataTracks = request.subscribesToDataTracks
        awaitsPermission = request.awaitsPermission
        wantsConnections = request.wantsConnections
        offering = request.offering
        streamNames = request.streamNames
    }
}

extension ParticipantInfo {
    /// How a newcomer is shown.
    init(_ request: JoinRequest, identity: String, _ turn: inout RoomTurn) throws(RoomError) {
        let claims = request.claims
        let permissions = Permissions(claims.video)
        self.init(
            sid: turn.sid("PA_"), identity: identity, name: request.shownName, metadata: request.shownMetadata,
            profile: request.profile, permissions: permissions, joinedAt: turn.wallClock)
        kind = claims.kind
        encrypts = request.encrypts
        attributes = claims.attributes
        if permissions.canUpdateMetadata { attributes = try attributes.changed(by: request.attributes) }
        client = request.client
        clientTraits = request.clientTraits
    }
}
