import AccessTokens
import EdgeSupport
import HTTPServing
import Logging
import MediaControl
import Primitives
import RoomService
import Rooms
import Synchronization

/// One socket of a participant that is in the room already. Requests are carried out one after the other; events are sent concurrently.
struct LiveKitSession: Sendable {
    let context: EdgeContext
    let claims: AccessClaims
    let parameters: JoinParameters
    /// The first messages to the client.
    let greeting: [ServerSignal]
    /// nil: the client is only notified to join anew.
    let stay: Stay?

    /// The session with its events.
    struct Stay: Sendable {
        let session: SessionID
        let events: SessionEvents
        /// The number of the stream of events, so that a socket that closes late does not detach its successor.
        let attachment: UInt64
        /// The participants before the first event, the client's own included.
        let people: [ParticipantInfo]
        let start: SessionStart
    }

    /// Half of a token's validity, so that a client that returns late has a valid one.
    private static let tokenInterval = Duration.seconds(300)

    /// How long after the end of its socket a client's close_notify may arrive: longer than usual round trips.
    private static let closeNotifyDelay = Duration.seconds(1)

    /// Serves the socket until it closes. Media continues: the session is detached, not left.
    func run(on socket: some LiveKitSocket) async {
        for signal in greeting { socket.send(signal) }
        guard let stay else { return socket.close(code: 1000, reason: "join again") }
        var budget = RequestBudget()
        await publishFirst(stay.session, socket, &budget)
        let closure = ConnectionClosure()
        let pump = Task { await self.pump(stay, to: socket, closure) }
        let tokens = Task { await refreshTokens(of: stay.session, socket) }
        for await message in socket.messages {
            // In a separate task: a task keeps the memory of its deepest stack, and this one waits for hours.
            let before = budget
            budget = await Task { await serve(message, before, stay, socket) }.value
        }
        tokens.cancel()
        // The end of the socket and close_notify arrive in either order.
        if !closure.isObserved { try? await Task.sleep(for: Self.closeNotifyDelay) }
        pump.cancel()
        // A socket that took over keeps the session.
        guard await context.rooms.detach(stay.session, attachment: stay.attachment), closure.isObserved else { return }
        await leave()
    }

    /// Undoes the admission because the socket has not opened.
    func abandon() async {
        guard let stay else { return }
        await context.rooms.abandon(stay.session, attachment: stay.attachment, start: stay.start)
    }

    /// Ends the stay, unless another socket has taken it over.
    func leave() async {
        guard let stay else { return }
        await context.rooms.leave(stay.session, attachment: stay.attachment)
    }

    /// Publishes what came with the join itself: tracks, and the offer of the only connection.
    private func publishFirst(
        _ session: SessionID, _ socket: some LiveKitSocket, _ budget: inout RequestBudget
    ) async {
        guard parameters.resumes == nil else { return }
        for track in parameters.tracks where budget.spendMore(1, at: context.now()) == .go {
            await handle(.addTrack(track), session, socket)
        }
        if let offer = parameters.offer { await handle(.offer(offer), session, socket) }
    }

    private func serve(
        _ message: WebSocketMessage, _ budget: RequestBudget, _ stay: Stay, _ socket: some LiveKitSocket
    ) async -> RequestBudget {
        var budget = budget
        guard case .binary(let bytes) = message else {
            socket.close(code: 1003, reason: "binary frames only")
            return budget
        }
        switch budget.spend(bytes.count, at: context.now()) {
        case .go:
            guard let signal = ClientSignal(frame: bytes) else {
                socket.close(code: 1007, reason: "not a SignalRequest")
                return budget
            }
            guard await context.rooms.keepAlive(stay.session, attachment: stay.attachment) else { return budget }
            switch budget.spendMore(signal.requests - 1, at: context.now()) {
            case .go: await handle(signal, stay.session, socket)
            case .refuse: break
            case .close: socket.close(code: 1008, reason: "too many requests")
            }
        // The protocol has no message for it; a client that continues is disconnected.
        case .refuse: break
        case .close: socket.close(code: 1008, reason: "too many requests")
        }
        return budget
    }

    /// Sends the events to the socket, in order, and closes it when there are no more.
    private func pump(_ stay: Stay, to socket: some LiveKitSocket, _ closure: ConnectionClosure) async {
        var translator = EventTranslator(people: stay.people, resumes: stay.start == .resumed) { token(for: $0) }
        for await event in stay.events {
            closure.observe(event.event)
            for signal in translator.signals(for: event) { socket.send(signal) }
            guard case .ended = event.event else { continue }
            return socket.close(code: 1000, reason: "")
        }
        guard !Task.isCancelled else { return }
        // The session continues without this socket: another one has it, or the client did not keep up.
        if await context.rooms.detach(stay.session, attachment: stay.attachment) {
            socket.close(code: 1013, reason: "the client reads too slowly")
        } else {
            socket.close(code: 1000, reason: "resumed on another socket")
        }
    }

    private func token(for room: String) -> String? { context.gate.returnToken(claims, room: room) }

    /// A client presents its token again when it returns; by then the first one may have expired.
    private func refreshTokens(of session: SessionID, _ socket: some LiveKitSocket) async {
        while await context.rooms.mayOutlastToken(session), let room = await context.rooms.roomName(of: session),
            let token = token(for: room)
        {
            socket.send(.refreshToken(token))
            guard (try? await Task.sleep(for: Self.tokenInterval)) != nil else { return }
        }
    }
}

extension TokenGate {
    /// A token with which a client can return to `room`, which may not be the one that it joined, valid for ten minutes as from LiveKit's own server;
    /// nil if no key makes tokens. Clients present it in place of the one that they have, so for that one's room it is valid just as long: an app may be in the
    /// background for more than ten minutes.
    func returnToken(_ claims: AccessClaims, room: String) -> String? {
        let earliest = claims.video.room == room ? claims.expiresAt : .min
        var claims = claims
        if claims.video.room != room {
            // A moved participant arrives as a participant only: its token's API grants are for the room that the token names.
            (claims.video.roomAdmin, claims.video.roomCreate, claims.video.roomList) = (false, false, false)
            (claims.video.roomRecord, claims.video.destinationRoom) = (false, nil)
        }
        claims.video.room = room
        return try? mint(claims, seconds: 600, until: earliest)
    }
}

/// Whether the client has closed a peer connection (DTLS close_notify).
///
/// The Rust SDK closes its connection without sending `leave` when it is closed right after its join (measured): such a client has left. One that loses its
/// network closes no connection, and may resume.
private final class ConnectionClosure: Sendable {
    private let observed = Mutex(false)

    var isObserved: Bool { observed.withLock { $0 } }

    func observe(_ event: RoomEvent) {
        guard case .connectionChanged(_, .closed, let reason) = event, reason == PeerEndReason.closedByPeer.rawValue
        else { return }
        observed.withLock { $0 = true }
    }
}
