import AccessTokens
import MediaControl
import Primitives
public import Rooms
import SDP
import Synchronization

/// Hosts the rooms: serialises what sessions ask, sends commands to workers, delivers events.
///
/// Every step is: the room decides (``Rooms/Room``), events go into mailboxes at once and in order, commands go to the room's
/// worker, and the caller goes on when the worker has carried them out. Nothing here waits for a reader of events.
public actor RoomService {
    private let live: Mutex<RoomServiceConfiguration>
    let media: any MediaPlane
    private let log: @Sendable (RoomLogEntry) -> Void
    private let stayEnded: @Sendable (StaySummary) -> Void
    /// For the recorder; nil: nothing can be recorded.
    let recorder: (any RecordingPlane)?
    /// For the player; nil: nothing can be played.
    let player: (any PlaybackPlane)?
    /// nil: nobody traces joins.
    private let traced: (@Sendable (JoinTrace) -> Void)?
    /// Rules that steps of rooms have made and that are not written down yet.
    var unkept: [StandingRule] = []
    let keep: @Sendable (StandingRule) async -> Void
    /// Tokens that are good for nothing any more.
    public nonisolated let revocations: RevocationList
    /// What the server has used up, before joins are refused for it.
    public nonisolated let load: LoadGate
    private var events: EventLog
    /// By the name of their protocol.
    let codecs: [String: MessageCodec]

    var rooms: [String: HostedRoom] = [:]
    var nameByID: [RoomID: String] = [:]
    var nameBySession: [SessionID: String] = [:]
    /// Peers and tracks that are in another room than the one that made them.
    var moved = MovedNumbers()
    var mailboxes: [SessionID: SessionMailbox] = [:]
    var totals = RoomServiceStatistics()
    var joins = RateLimit()
    var cutoffs = TokenCutoffs()
    var bans = Bans()
    /// Captures that go on, and those that wait to be fetched.
    var captures: [RunningCapture] = []
    nonisolated let passwords = PasswordDoor()
    /// Named rules that a token or the creation of a room may refer to.
    var presets: [String: PolicyDocument] = [:]
    /// The server is about to end: no new rooms.
    private(set) var drain: DrainNotice?
    /// It ends now.
    var isEnding = false
    /// Of all rooms together.
    var reservedConnections = 0
    private var lastRoom: UInt64 = 0
    /// Asks for a tick soon: a room has something to tell. The server of an unchanged room sleeps.
    nonisolated let alarms: AsyncStream<Void>
    nonisolated let alarm: AsyncStream<Void>.Continuation

    /// Asks for captures to be looked after: one has begun.
    nonisolated let captureStarts: AsyncStream<Void>
    nonisolated let captureStart: AsyncStream<Void>.Continuation

    /// A service without rooms. `log`, `stayEnded` and `traced` must return at once; `keep` returns when a rule is written down, which whoever made it waits for.
    public init(
        configuration: RoomServiceConfiguration = RoomServiceConfiguration(), media: any MediaPlane,
        log: @escaping @Sendable (RoomLogEntry) -> Void = { _ in },
        stayEnded: @escaping @Sendable (StaySummary) -> Void = { _ in },
        traced: (@Sendable (JoinTrace) -> Void)? = nil,
        keep: @escaping @Sendable (StandingRule) async -> Void = { _ in },
        recorder: (any RecordingPlane)? = nil, player: (any PlaybackPlane)? = nil,
        revocations: RevocationList = RevocationList(), load: LoadGate = LoadGate(workers: 0),
        codecs: [String: MessageCodec] = [:]
    ) {
        live = Mutex(configuration)
        self.media = media
        self.log = log
        self.stayEnded = stayEnded
        self.traced = traced
        self.keep = keep
        self.recorder = recorder
        self.player = player
        self.revocations = revocations
        self.load = load
        self.codecs = codecs
        var random = SystemRandomNumberGenerator()
        events = EventLog(epoch: EventCursor.newEpoch(using: &random), maxEntries: configuration.maxKeptEvents)
        (alarms, alarm) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (captureStarts, captureStart) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// The configuration in force.
    public nonisolated var configuration: RoomServiceConfiguration { live.withLock { $0 } }

    /// Another configuration: limits hold from the next join on, in rooms that are here too; the default policy and timeouts of sessions for rooms that are made from now on.
    /// How many events are kept does not change.
    public func set(_ configuration: RoomServiceConfiguration) {
        live.withLock { $0 = configuration }
        for hosted in rooms.values { hosted.room.set(participants: configuration.maxParticipantsPerRoom) }
    }

    /// The addresses of the media workers have changed: descriptions that are made from now on name the new ones.
    public func addressesChanged() {
        for hosted in rooms.values { hosted.room.set(candidates: context(of: hosted.worker).candidates) }
    }

    /// Milliseconds since 1970, as the rooms see them.
    public nonisolated var wallClockMilliseconds: Int64 { media.wallClockMilliseconds() }

    func newTurn() -> RoomTurn {
        RoomTurn(
            at: media.now(), wallClock: media.wallClockMilliseconds(), random: SystemRandomNumberGenerator(),
            connectionsLeft: configuration.maxConnections - reservedConnections, recordingRefusal: recordingRefusal)
    }

    /// Makes a room that does not exist yet; its first command goes out with the caller's. `check`: the rules of a pre-call check's room; `beside`: the room
    /// whose worker it shares, so that participants can be moved between the two.
    func makeRoom(
        named name: String, preset: String?, document: PolicyDocument = PolicyDocument(), metadata: String = "",
        forJoin: Bool = false, check: RoomPolicy? = nil, beside neighbour: HostedRoom? = nil, turn: inout RoomTurn
    ) throws(RoomError) -> HostedRoom {
        guard drain == nil, !isEnding else { throw RoomError(.draining, "the server is about to end") }
        guard rooms.count < configuration.maxRooms else {
            throw RoomError(.limitExceeded, "room limit of the server reached")
        }
        try RoomNames.check(name)
        var base = check ?? configuration.defaultPolicy
        if let preset {
            guard let named = presets[preset] else {
                throw RoomError(.presetNotFound, "there is no preset of the name that the room asks for")
            }
            base = named.applied(to: base)
        }
        let policy = document.applied(to: base)
        try Room.checkRecording(policy, after: nil, turn)
        let worker = if let neighbour { neighbour.worker } else { try workerForRoom(forJoin: forJoin) }
        lastRoom += 1
        let id = RoomID(lastRoom)
        let room = Room(
            id: id, name: name, policy: policy, metadata: metadata, context: context(of: worker), turn: &turn)
        let hosted = HostedRoom(
            room: room, worker: worker, base: base, preset: preset, document: document, isCheck: check != nil)
        rooms[name] = hosted
        nameByID[id] = name
        totals.roomsCreated += 1
        return hosted
    }

    /// The server is about to end, or (nil) is not any more. While it is, no room is made and joins to those that are here are served; members are told.
    public func setDrain(_ notice: DrainNotice?) async {
        drain = notice
        for hosted in rooms.values { await step(hosted) { $0.setDrain(notice, turn: &$1) } }
    }

    private func context(of worker: WorkerIndex) -> RoomContext {
        let datagrams = media.candidates(of: worker), streams = media.tcpCandidates(of: worker)
        let candidates = (datagrams + streams).enumerated().map { index, address in
            let isTCP = index >= datagrams.count
            return Candidate(
                foundation: "\(index + 1)", address: address.host, port: address.port, transport: isTCP ? .tcp : .udp,
                localPreference: isTCP
                    ? Candidate.passivePreference(index - datagrams.count)
                    : UInt16.max - UInt16(truncatingIfNeeded: index), tcpType: isTCP ? "passive" : nil)
        }
        return RoomContext(
            fingerprintSHA256: media.fingerprintSHA256, candidates: candidates,
            ufragMark: WorkerMark.text(worker: worker.rawValue), limits: RoomLimits(configuration))
    }

    /// Writes down what happened in a room, and tells everybody who follows.
    func record(_ event: RoomLogEvent, in hosted: HostedRoom) {
        guard !hosted.isCheck else { return }
        let at = media.wallClockMilliseconds()
        write(event, room: hosted.room.name, roomSID: hosted.room.sid, sequence: hosted.nextEvent(), at: at)
        if case .participantLeft(let info, _, _) = event { trace(hosted, leaving: info.sid) }
        switch hosted.stays.note(event, at: at, room: hosted.room.name, roomSID: hosted.room.sid) {
        case .connected(let milliseconds): totals.connectTimes.add(milliseconds)
        case .ended(let summary): stayEnded(summary)
        case nil: break
        }
    }

    /// Writes down what concerns no room's state, such as what happens to a recording after its room has ended.
    func write(_ event: RoomLogEvent, room: String, roomSID: String, sequence: UInt64, at: Int64) {
        log(events.append(room: room, roomSID: roomSID, sequence: sequence, at: at, event))
    }

    /// Hands on how the joins went that have come to their end, one way or the other.
    func trace(_ hosted: HostedRoom, leaving: String? = nil) {
        guard let traced else { return }
        let at = media.wallClockMilliseconds()
        for trace in hosted.stays.takeTraces(at: at, room: hosted.room.name, leaving: leaving) { traced(trace) }
    }

    /// The same for a join that was refused.
    func trace(_ refusal: RoomError.Code, of request: JoinRequest) {
        traced?(
            JoinTrace(
                room: request.claims.video.room ?? request.room ?? configuration.defaultRoom, participant: nil,
                profile: request.profile, client: request.client, joinedAt: media.wallClockMilliseconds(),
                origin: request.origin, outcome: .refused(refusal)))
    }

    /// Follows the events of one room, or with nil of all: first those after `cursor` that are kept, then each as it happens. Without a cursor from now
    /// on. A reader that does not keep up comes to the end of its stream, and follows again with its last cursor.
    public func follow(room: String?, after cursor: EventCursor?) -> EventFeed {
        events.follow(room: room, after: cursor) { [weak self] reader in
            Task { await self?.endFollowing(reader) }
        }
    }

    private func endFollowing(_ reader: UInt64) { events.endFollowing(reader) }

    /// At most `limit` events after `cursor` of one room, or with nil of all.
    public func pastEvents(room: String?, after cursor: EventCursor, limit: Int) -> EventPage {
        events.page(room: room, after: cursor, limit: limit)
    }

    /// No further events come: all who follow come to the end.
    func closeEvents() { events.close() }

    func hosted(named name: String) throws(RoomError) -> HostedRoom {
        guard let hosted = rooms[name] else { throw counted(RoomError(.roomNotFound, "there is no such room")) }
        return hosted
    }

    func hosted(of session: SessionID) throws(RoomError) -> HostedRoom {
        guard let name = nameBySession[session], let hosted = rooms[name] else {
            throw counted(RoomError(.sessionNotFound, "there is no such session"))
        }
        return hosted
    }

    func counted(_ error: RoomError) -> RoomError {
        totals.refusals[error.code.rawValue, default: 0] += 1
        return error
    }
}

extension RoomLimits {
    /// The configured bounds; what is not configurable keeps its default.
    init(_ configuration: RoomServiceConfiguration) {
        self.init()
        participants = configuration.maxParticipantsPerRoom
        connectionsPerParticipant = configuration.maxConnectionsPerParticipant
        tracksPerParticipant = min(configuration.maxTracksPerParticipant, tracksPerParticipant)
        subscriptionsPerParticipant = min(configuration.maxSubscriptionsPerParticipant, subscriptionsPerParticipant)
        acceptedMessageBytes = configuration.maxMessageBytes
        resumeWindow = configuration.resumeWindow
        keepAliveTimeout = configuration.keepAliveTimeout
    }
}
