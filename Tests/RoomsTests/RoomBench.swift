import AccessTokens
import MediaControl
import Primitives
import SDP
import TestSupport

@testable import Rooms

/// A room with scripted members: keeps everybody's view from events alone, and answers the server's offers.
struct RoomBench {
    var room: Room
    var now = MonotonicTime(milliseconds: 0)
    var random = RandomSource(seed: 1)
    /// Since the last `consumeCommands`.
    var commands: [MediaCommand] = []
    var events: [SessionID: [SequencedEvent]] = [:]
    var ended: [SessionID: LeaveReason] = [:]
    /// What went out on data channels.
    var messages: [(message: RoomMessage, receivers: [MessageReceiver])] = []
    var log: [RoomLogEvent] = []
    var recordings: [RecordingEffect] = []
    var playbacks: [PlaybackEffect] = []
    /// By participant sid, in the order in which they were reached.
    var steps: [String: [JoinStep]] = [:]
    /// By participant sid.
    var freezes: [String: Freezes] = [:]
    var isOver = false
    /// Why the server can record nothing further, and otherwise how many tracks.
    var recordingRefusal: RecordingRefusal?
    var recordedTracksLeft = Int.max
    static let wallClock: Int64 = 1_700_000_000_000

    init(
        policy: RoomPolicy = RoomPolicy(), limits: RoomLimits = RoomLimits(), seed: UInt64 = 1, id: RoomID = RoomID(9),
        name: String = "R"
    ) {
        random = RandomSource(seed: seed)
        var turn = RoomTurn(at: now, wallClock: Self.wallClock, random: random)
        let context = RoomContext(
            fingerprintSHA256: [UInt8](repeating: 7, count: 32),
            candidates: [Candidate(foundation: "1", address: "192.0.2.1", port: 7_900)], limits: limits)
        room = Room(id: id, name: name, policy: policy, metadata: "", context: context, turn: &turn)
        apply(turn)
    }

    /// One step; what it wants done is sorted into the bench.
    @discardableResult
    mutating func step<Reply>(
        _ body: (inout Room, inout RoomTurn) throws(RoomError) -> Reply
    ) throws(RoomError) -> Reply {
        var turn = RoomTurn(
            at: now, wallClock: Self.wallClock, random: random,
            recordingAdmission: RecordingAdmission(tracksLeft: recordedTracksLeft, obstacle: recordingRefusal))
        do throws(RoomError) {
            let reply = try body(&room, &turn)
            apply(turn)
            return reply
        } catch {
            apply(turn)
            throw error
        }
    }

    private mutating func apply(_ turn: RoomTurn) {
        if let random = turn.random as? RandomSource { self.random = random }
        for effect in turn.effects {
            switch effect {
            case .media(let command): commands.append(command)
            case .send(let message, let receivers, _): messages.append((message, receivers))
            case .notify(let session, let event): events[session, default: []].append(event)
            case .sessionEnded(let session, let reason): ended[session] = reason
            case .log(let event): log.append(event)
            case .recording(let effect): recordings.append(effect)
            case .playback(let effect): playbacks.append(effect)
            case .joinStep(let participant, let step): steps[participant, default: []].append(step)
            case .freezesReported(let participant, let new):
                freezes[participant] = (freezes[participant] ?? Freezes()) + new
            case .roomEnded: isOver = true
            }
        }
    }

    mutating func consumeCommands() -> [MediaCommand] {
        defer { commands = [] }
        return commands
    }

    mutating func consumeEvents(_ session: SessionID) -> [RoomEvent] {
        defer { events[session] = [] }
        return (events[session] ?? []).map(\.event)
    }

    static func request(_ identity: String, _ change: (inout JoinRequest) -> Void = { _ in }) -> JoinRequest {
        var request = JoinRequest(
            claims: AccessClaims(apiKey: "k", identity: identity, expiresAt: 0, video: .join(nil)), room: "R")
        change(&request)
        return request
    }

    @discardableResult
    mutating func join(
        _ identity: String, isSignalled: Bool = true, follow: FollowTarget? = nil,
        _ change: (inout JoinRequest) -> Void = { _ in }
    ) throws(RoomError) -> SessionID {
        let request = Self.request(identity, change)
        return try step { (room, turn) throws(RoomError) in
            let session = try room.join(request, isSignalled: isSignalled, follow: follow, turn: &turn)
            room.settle(session, turn: &turn)
            return session
        }
    }

    @discardableResult
    mutating func offer(
        _ session: SessionID, _ sections: [ClientDescriptions.Section]
    ) throws(RoomError) -> ConnectionAnswer {
        try offer(session, "pub", sections)
    }

    @discardableResult
    mutating func offer(
        _ session: SessionID, _ connection: String, _ sections: [ClientDescriptions.Section],
        ufrag: String = "clnt"
    ) throws(RoomError) -> ConnectionAnswer {
        let sdp = ClientDescriptions(ufrag: ufrag).offer(sections)
        return try step { (room, turn) throws(RoomError) in
            try room.offer(session, connection: connection, sdp: sdp, turn: &turn)
        }
    }

    /// Both steps of a move to another room; a refusal changes neither.
    @discardableResult
    mutating func move(
        _ participant: String, to other: inout RoomBench, ofOtherWorker: Bool = false
    ) throws(RoomError) -> MovingMember {
        let before = self
        let moving = try step { (room, turn) throws(RoomError) in
            try room.moveOut(participant, toOtherWorker: ofOtherWorker, turn: &turn)
        }
        do throws(RoomError) {
            try other.step { (room, turn) throws(RoomError) in try room.moveIn(moving, turn: &turn) }
        } catch {
            self = before
            throw error
        }
        return moving
    }

    mutating func perform(_ request: SessionRequest, _ session: SessionID) throws(RoomError) {
        try step { (room, turn) throws(RoomError) in try room.perform(request, session: session, turn: &turn) }
    }

    /// Why the request is refused; nil if it is not.
    mutating func refusal(of request: SessionRequest, by session: SessionID) -> RoomError.Code? {
        do throws(RoomError) {
            try perform(request, session)
            return nil
        } catch { return error.code }
    }

    mutating func setPolicy(_ policy: RoomPolicy, removesExcess: Bool = false) throws(RoomError) {
        try step { (room, turn) throws(RoomError) in
            try room.setPolicy(policy, removesExcess: removesExcess, turn: &turn)
        }
    }

    func impact(of policy: RoomPolicy, removesExcess: Bool = false) throws(RoomError) -> PolicyImpact {
        let turn = RoomTurn(at: now, wallClock: Self.wallClock, random: random)
        return try room.impact(of: policy, removesExcess: removesExcess, turn: turn)
    }

    mutating func setPermissions(_ permissions: Permissions, _ participant: String) throws(RoomError) {
        try step { (room, turn) throws(RoomError) in
            try room.setPermissions(permissions, of: participant, turn: &turn)
        }
    }

    mutating func refresh(_ claims: AccessClaims, _ session: SessionID) throws(RoomError) {
        try step { (room, turn) throws(RoomError) in try room.refreshToken(claims, of: session, turn: &turn) }
    }

    /// A sign of life of each.
    mutating func touch(_ sessions: [SessionID]) {
        try? step { (room, turn) throws(RoomError) in for session in sessions { room.touch(session, turn: &turn) } }
    }

    mutating func media(_ event: MediaEvent) {
        try? step { (room, turn) throws(RoomError) in room.receive(event, turn: &turn) }
    }

    mutating func leave(_ session: SessionID) {
        try? step { (room, turn) throws(RoomError) in room.leave(session, turn: &turn) }
    }

    mutating func advance(by interval: TimeSpan) {
        now = now + interval
        try? step { (room, turn) throws(RoomError) in room.advance(turn: &turn) }
    }

    /// The last server offer that `session` was sent, on any connection.
    func lastOffer(_ session: SessionID) -> (connection: String, sdp: String, tracks: [String: String])? {
        for event in (events[session] ?? []).reversed() {
            if case .offer(let connection, let sdp, let tracks) = event.event { return (connection, sdp, tracks) }
        }
        return nil
    }

    /// Answers the server's offers of `session` until it makes no more; returns how many there were.
    @discardableResult
    mutating func answerOffers(
        _ session: SessionID, without refused: Set<String> = [], ufrag: String = "ansr"
    ) throws(RoomError) -> Int {
        var count = 0
        while let offer = pendingOffer(session) {
            count += 1
            let sdp = ClientDescriptions(ufrag: ufrag).answer(to: offer.sdp, without: refused)
            try step { (room, turn) throws(RoomError) in
                try room.answer(session, connection: offer.connection, sdp: sdp, turn: &turn)
            }
        }
        return count
    }

    private func pendingOffer(_ session: SessionID) -> (connection: String, sdp: String)? {
        for connection in room.state.roster[session]?.connections ?? []
        where connection.negotiation.state == .haveLocalOffer {
            for event in (events[session] ?? []).reversed() {
                if case .offer(connection.id, let sdp, _) = event.event { return (connection.id, sdp) }
            }
        }
        return nil
    }

    /// What the room's state still holds, table by table: nothing where nobody is there.
    var leftovers: [String] {
        let states: [Any] = [
            room.state.roster, room.state.routing, room.distribution.waitingTracks, room.state.outdated,
            room.state.regressions, room.dataTracks,
        ]
        return states.flatMap { state in
            Mirror(reflecting: state).children.compactMap { table in
                let content = Mirror(reflecting: table.value)
                guard
                    content.displayStyle == .dictionary || content.displayStyle == .collection
                        || content.displayStyle == .set
                else { return nil }
                return content.children.isEmpty
                    ? nil : "\(type(of: state)).\(table.label ?? ""): \(content.children.count)"
            }
        }
    }

    func info(_ session: SessionID) -> ParticipantInfo? { room.participant(session) }
    func trackSID(_ session: SessionID, _ kind: MediaKind) -> String {
        info(session)?.tracks.first { $0.kind == kind }?.sid ?? ""
    }
}
