import MediaControl
import MediaWorkers
import Primitives
public import Rooms
import SDP
import Synchronization

/// Hosts the rooms: serialises the requests of sessions, sends commands to workers, delivers events.
///
/// Every step is: the room decides (``Rooms/Room``), events go into mailboxes at once and in order, commands go to the room's
/// worker, and the caller continues when the worker has carried them out. Nothing here waits for a reader of events.
public actor RoomHost {
    private let live: Mutex<RoomServiceConfiguration>
    let media: any MediaPlane
    /// The recorder; nil: nothing can be recorded.
    let recorder: (any RecordingPlane)?
    /// The player; nil: nothing can be played.
    let player: (any PlaybackPlane)?
    /// The revoked tokens.
    public nonisolated let revocations: RevocationList
    /// What the server has used up, which decides whether joins are refused.
    public nonisolated let load: LoadGate
    let codecs: MessageCodecs
    nonisolated let passwords = PasswordDoor()
    /// Requests a tick soon: a room has something to announce. A server whose rooms do not change sleeps.
    nonisolated let alarm = Signal()

    var rooms = HostedRooms()
    var mailboxes = Mailboxes()
    var rules: StandingRules
    var ruleWriter: RuleWriter
    var capacity: Capacity
    var captures = Captures()
    var calls = MemberCalls()
    var journal: RoomJournal
    var totals = RoomServiceStatistics()
    /// The server is about to end: no new rooms are created.
    private(set) var drain: DrainNotice?
    /// The server ends now.
    private(set) var isEnding = false

    /// A service without rooms. `log`, `stayEnded` and `traced` must return at once; `keep` returns when a rule is stored, which the caller that made it waits
    /// for.
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
        ruleWriter = RuleWriter(keep)
        self.recorder = recorder
        self.player = player
        self.revocations = revocations
        self.load = load
        self.codecs = MessageCodecs(codecs)
        journal = RoomJournal(
            maxEntries: configuration.maxKeptEvents, log: log, stayEnded: stayEnded, traced: traced)
        rules = StandingRules(revocations: revocations)
        capacity = Capacity(load: load)
    }

    /// The configuration in force.
    public nonisolated var configuration: RoomServiceConfiguration { live.withLock { $0 } }

    /// Changes the configuration: limits apply from the next join on, in existing rooms, too; the default policy and timeouts of sessions apply to rooms that
    /// are created later. The number of kept events does not change.
    public func set(_ configuration: RoomServiceConfiguration) {
        live.withLock { $0 = configuration }
        for hosted in rooms.all { hosted.room.set(participants: configuration.maxParticipantsPerRoom) }
    }

    /// The addresses of the media workers have changed: later descriptions contain the new ones.
    public func addressesChanged() {
        for hosted in rooms.all { hosted.room.set(candidates: context(of: hosted.worker).candidates) }
    }

    /// Milliseconds since 1970, as the rooms see them.
    public nonisolated var wallClockMilliseconds: Int64 { media.wallClockMilliseconds() }

    func newTurn() -> RoomTurn {
        RoomTurn(
            at: media.now(), wallClock: media.wallClockMilliseconds(), random: SystemRandomNumberGenerator(),
            connectionsLeft: configuration.maxConnections - capacity.reservedConnections,
            recordingAdmission: recordingAdmission)
    }

    /// Creates a room that does not exist yet; its first command is sent with the caller's. `checker`: the client whose pre-call check it serves; `beside`: the
    /// room whose worker it shares, so that participants can be moved between the two.
    func makeRoom(
        named name: String, preset: String?, document: PolicyDocument = PolicyDocument(), metadata: String = "",
        forJoin: Bool = false, checker: ClientMark? = nil, beside neighbour: HostedRoom? = nil, turn: inout RoomTurn
    ) throws(RoomError) -> HostedRoom {
        try checkNewRoom(named: name, forJoin: forJoin)
        var base = configuration.defaultPolicy
        if checker != nil { base = PreCallCheck.policy(base) }
        if let preset {
            guard let named = rules.preset(preset) else {
                throw RoomError(.presetNotFound, "there is no preset of the name that the room asks for")
            }
            base = named.applied(to: base)
        }
        let policy = document.applied(to: base)
        try Room.checkRecording(policy, after: nil, turn)
        let worker = if let neighbour { neighbour.worker } else { try capacity.worker(in: media, forJoin: forJoin) }
        let room = Room(
            id: rooms.nextID(), name: name, policy: policy, metadata: metadata, context: context(of: worker),
            turn: &turn)
        let hosted = HostedRoom(
            room: room, worker: worker, base: base, preset: preset, document: document, checker: checker)
        rooms.insert(hosted)
        totals.roomsCreated += 1
        return hosted
    }

    /// The server is about to end, or (nil) no longer is. While it is, no room is created, joins to existing ones are accepted, and members are notified.
    /// Returns false, and does nothing, if `begin` does not permit it: this is checked in the same step, so that of two concurrent calls the later one wins
    /// everywhere.
    @discardableResult
    public func setDrain(_ notice: DrainNotice?, if begin: @Sendable () -> Bool = { true }) async -> Bool {
        guard begin() else { return false }
        drain = notice
        // Not `notice`: another call may have changed it.
        for hosted in rooms.all { await step(hosted) { $0.setDrain(drain, turn: &$1) } }
        return true
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

    func hosted(named name: String) throws(RoomError) -> HostedRoom {
        guard let hosted = rooms[name] else { throw counted(RoomError(.roomNotFound, "there is no such room")) }
        return hosted
    }

    func hosted(of session: SessionID) throws(RoomError) -> HostedRoom {
        guard let name = rooms.name(of: session), let hosted = rooms[name] else {
            throw counted(RoomError(.sessionNotFound, "there is no such session"))
        }
        return hosted
    }

    func counted(_ error: RoomError) -> RoomError {
        totals.refusals[error.code.rawValue, default: 0] += 1
        return error
    }
}

// MARK: - Steps

extension RoomHost {
    /// One step of a room: decide, deliver events, then let the worker catch up.
    func step<Reply: Sendable>(
        _ hosted: HostedRoom, _ turn: consuming RoomTurn? = nil,
        _ body: (inout Room, inout RoomTurn) throws(RoomError) -> Reply
    ) async throws(RoomError) -> Reply {
        var turn = turn ?? newTurn()
        // Refused before anything has changed; a room that was just created is closed by the caller that created it.
        guard !turn.effects.isEmpty || !media.hangs(hosted.worker) else { throw counted(.workerHangs) }
        let outcome: Result<Reply, RoomError>
        do throws(RoomError) {
            outcome = .success(try body(&hosted.room, &turn))
        } catch {
            outcome = .failure(counted(error))
        }
        // No await before this: events of two steps must not overtake each other.
        let commands = carryOut(turn.effects, hosted)
        let written = ruleWriter.write(rules.consumeUnkept())
        if hosted.room.hasNews { alarm.raise() }
        do throws(WorkerHangs) {
            if !commands.isEmpty {
                try await media.apply(commands, on: hosted.worker)
                hosted.hasWorked = true
            }
        } catch {
            await written?.value
            throw counted(.workerHangs)
        }
        await written?.value
        return try outcome.get()
    }

    /// A step that cannot be refused. A worker that hangs carries it out when it recovers. `waits` for it, and for the disk: reports of workers are
    /// for all rooms, which must not wait for one of them.
    func step(_ hosted: HostedRoom, waits: Bool = true, _ body: (inout Room, inout RoomTurn) -> Void) async {
        var turn = newTurn()
        body(&hosted.room, &turn)
        let commands = carryOut(turn.effects, hosted)
        let written = ruleWriter.write(rules.consumeUnkept())
        if hosted.room.hasNews { alarm.raise() }
        if !waits, !commands.isEmpty { media.post(commands, on: hosted.worker) }
        guard waits else { return }
        if !commands.isEmpty { try? await media.apply(commands, on: hosted.worker) }
        await written?.value
    }

    /// Delivers effects for sessions and the log; returns those for the worker.
    func carryOut(_ effects: [RoomEffect], _ hosted: HostedRoom) -> [MediaCommand] {
        capacity.update(hosted)
        var commands: [MediaCommand] = []
        for effect in effects {
            switch effect {
            case .media(let command):
                hosted.note(command)
                commands.append(command)
            case .send(let message, let receivers, let source):
                commands += codecs.commands(for: message, to: receivers, from: source)
            case .notify(let session, let event):
                if case .publicationRefused(_, _, _, let code, _) = event.event {
                    recordRefusedPublication(code, of: session, in: hosted)
                }
                deliver(event, to: session, hosted)
            case .sessionEnded(let session, let reason): forget(session, reason)
            case .recording(let effect):
                recorder?.apply(effect, room: hosted.room.name, roomSID: hosted.room.sid)
            case .playback(let effect): player?.apply(effect)
            case .log(let event):
                note(event, in: hosted)
                record(event, in: hosted)
            case .joinStep(let participant, let step):
                guard let after = hosted.stays.reach(step, by: participant, at: media.wallClockMilliseconds()) else {
                    break
                }
                totals.joinSteps[step, default: ConnectTimes()].add(after)
            case .freezesReported(let participant, let new):
                hosted.stays.add(new, of: participant)
                totals.freezes = totals.freezes + new
            case .roomEnded:
                rooms.remove(hosted)
            }
        }
        return commands
    }

    /// A reader that does not keep up loses its stream and may resume, as after a dropped socket.
    private func deliver(_ event: SequencedEvent, to session: SessionID, _ hosted: HostedRoom) {
        totals.eventsDelivered += 1
        if case .offer = event.event { totals.offersMade += 1 }
        guard !mailboxes.deliver(event, to: session) else { return }
        totals.slowReaders += 1
        var turn = newTurn()
        // The step that made these events may have moved it.
        (rooms.name(of: session).flatMap { rooms[$0] } ?? hosted).room.detach(session, turn: &turn)
    }

    private func forget(_ session: SessionID, _ reason: LeaveReason) {
        totals.departures[reason.rawValue, default: 0] += 1
        mailboxes.remove(session)
        calls.end(to: session)
        rooms.forget(session)
    }
}

// MARK: - Running

extension RoomHost {
    /// How often deadlines are checked after a change: members are notified of a changed room within 300 ms.
    static let tickInterval = Duration.milliseconds(100)
    /// How often all deadlines are checked if nothing has changed: they are seconds or more away.
    private static let quietInterval = TimeSpan.seconds(1)

    /// Serves until the task is cancelled: handles media events and deadlines. Call once.
    public func run() async {
        let media = media, begun = captures.begun
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for await events in media.events { await self.receive(events) } }
            group.addTask {
                for await _ in self.alarm.raised {
                    guard (try? await Task.sleep(for: Self.tickInterval)) != nil else { return }
                    await self.tick()
                }
            }
            group.addTask {
                while (try? await Task.sleep(for: .seconds(1))) != nil { await self.tick() }
            }
            group.addTask {
                for await _ in begun.raised {
                    while await self.continueCaptures() {
                        guard (try? await Task.sleep(for: Self.captureInterval)) != nil else { return }
                    }
                }
            }
            group.addTask {
                while (try? await Task.sleep(for: .seconds(5))) != nil { await self.measureQuality() }
            }
        }
    }

    /// Passes workers' events to the rooms.
    func receive(_ events: [MediaEvent]) async {
        for event in events {
            if case .peerMeasured(let peer, let last) = event { peerMeasured(peer, last, rooms.room(of: event)) }
            guard let hosted = rooms.room(of: event) else { continue }
            if case .dataReceived(let peer, let label, let payload) = event {
                await receive(payload, label: label, from: peer, hosted)
            } else {
                await step(hosted, waits: false) { $0.receive(event, turn: &$1) }
                // Each step has made its part of the offers that are due: others have their turn before the next.
                if hosted.room.owesOffers { await Task.yield() }
            }
        }
    }

    /// A connection has ended; its participant may have left before, and its room may have ended.
    private func peerMeasured(_ peer: PeerID, _ last: EndedPeer, _ hosted: HostedRoom?) {
        let at = media.wallClockMilliseconds()
        guard hosted?.stays.finish(peer, last, at: at, names: hosted?.trackNames ?? TrackNames()) != true else {
            return
        }
        journal.finish(peer, last, at: at)
    }

    /// No more peers end: stays that have ended are reported as far as they are known.
    public func endStays() { journal.endOverdueStays(at: nil) }

    /// Handles deadlines; a worker that hangs delays nothing.
    func tick() async {
        journal.endOverdueStays(at: media.wallClockMilliseconds())
        endOutdatedFeeds()
        let now = media.now()
        rooms.forgetRemoved()
        for name in rooms.due(at: now) {
            guard let hosted = rooms[name], hosted.nextDeadline <= now else { continue }
            await step(hosted, waits: false) { $0.advance(turn: &$1) }
        }
        await makeOwedOffers(until: now + Self.quietInterval)
        if rooms.all.contains(where: { $0.nextDeadline < now + Self.quietInterval }) { alarm.raise() }
    }

    /// Makes the offers that steps have left over: a step of each room in turn, and other work has its turn in between. If a room always has more of them to
    /// make, the deadlines of all rooms come first again from `end` on.
    private func makeOwedOffers(until end: MonotonicTime) async {
        while media.now() < end {
            let owing = rooms.all.filter { $0.room.owesOffers }
            guard !owing.isEmpty else { return }
            for hosted in owing { await step(hosted, waits: false) { $0.makeOwedOffers(turn: &$1) } }
            await Task.yield()
        }
    }

    /// Notifies every member of `server_shutdown`, ends every session, refuses new ones. Followers of events still get what `lastNews` waits for.
    public func shutDown(_ lastNews: @Sendable () async -> Void = {}) async {
        isEnding = true
        for name in rooms.names {
            guard let hosted = rooms[name] else { continue }
            await step(hosted) { $0.close(reason: .serverShutdown, turn: &$1) }
        }
        _ = await continueCaptures()
        await lastNews()
        closeEvents()
    }
}
