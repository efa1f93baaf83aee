import CLiveKitProtocol
import Foundation

/// LiveKit's signalling with two peer connections (`/rtc`): the client offers what it publishes, the server what it sends.
struct LiveKitDriver: SignallingDriver {
    let base: String
    let http: SoupClient
    let tokens: TokenSource
    private let pinger = Pinger(.binary(LiveKitRequest.ping.packed()))

    init(base: String, http: SoupClient, tokens: TokenSource) {
        self.base = base
        self.http = http
        self.tokens = tokens
    }

    func join(_ peer: PeerSpec, hub: ConnectionHub) async throws(LoadError) -> any JoinedPeer {
        let since = ConnectionHub.now()
        let query = "protocol=15&sdk=go&auto_subscribe=\(peer.receives ? 1 : 0)"
        let socket = try await http.webSocket(
            "\(WebSocketClient.address(base))/rtc?\(query)", token: tokens.token(for: peer))
        let session = LiveKitSession(socket: socket, peer: peer, hub: hub, since: since)
        try await session.start()
        pinger.add(socket)
        return session
    }
}

/// One member's signalling.
private actor LiveKitSession: JoinedPeer {
    /// The messages of the server on which the driver acts.
    private enum Incoming: Sendable {
        case join
        case answer(String)
        case offer(sdp: String, id: UInt32)
        case published(cid: String)
        case leave
        case other
    }

    private let socket: WebSocketClient
    private let peer: PeerSpec
    private let hub: ConnectionHub
    private let since: Int64
    /// The task that waits for the next message, and the number of that wait.
    private var waiting: (number: Int, continuation: CheckedContinuation<Incoming?, Never>)?
    private var waits = 0
    private var publishing: ConnectionID?
    /// The connection that the server offers, and its credentials, which stay the same over renegotiations.
    private var receiving: (id: ConnectionID, local: LocalSide)?
    private var reading: Task<Void, Never>?
    private var isOver = false

    init(socket: WebSocketClient, peer: PeerSpec, hub: ConnectionHub, since: Int64) {
        self.socket = socket
        self.peer = peer
        self.hub = hub
        self.since = since
    }

    func start() async throws(LoadError) {
        reading = Task { await self.read() }
        guard case .join = try await next("join") else {
            throw .signalling("LiveKit: the first message is not a join")
        }
        if peer.sends { try await publish() }
    }

    private func publish() async throws(LoadError) {
        let offered = OfferedMedia(sendsAudio: peer.sendsAudio, videoLayers: peer.videoLayers)
        let offer = hub.makeOffer(offered, for: peer)
        for kind in [peer.sendsAudio ? "audio" : nil, peer.videoLayers > 0 ? "video" : nil].compactMap({ $0 }) {
            // The track's id in the offer.
            post(.addTrack(cid: "\(peer.identity)-\(kind)", isVideo: kind == "video"))
            guard case .published = try await next("track_published") else {
                throw .signalling("LiveKit: a track was not published")
            }
        }
        post(.offer(offer.sdp))
        guard case .answer(let sdp) = try await next("answer") else {
            throw .signalling("LiveKit: an offer was not answered")
        }
        publishing = hub.open(offer, try RemoteSide(sdp), for: peer, since: since)
    }

    /// How long a server may take for an answer.
    private static let patience = Duration.seconds(30)

    /// The next message that a request waits for; one at a time.
    private func next(_ what: String) async throws(LoadError) -> Incoming {
        waits += 1
        let number = waits
        let watchdog = Task {
            try await Task.sleep(for: Self.patience)
            self.expire(number)
        }
        defer { watchdog.cancel() }
        let message: Incoming? = isOver ? nil : await withCheckedContinuation { waiting = (number, $0) }
        guard let message else {
            throw .signalling(isOver ? "the WebSocket closed" : "no \(what) within \(Self.patience)")
        }
        return message
    }

    private func expire(_ number: Int) {
        if waiting?.number == number { resume(nil) }
    }

    private func resume(_ message: Incoming?) {
        let continuation = waiting?.continuation
        waiting = nil
        continuation?.resume(returning: message)
    }

    private func read() async {
        for await bytes in socket.messages {
            switch Self.read(bytes) {
            case .offer(let sdp, let id): answer(sdp, id)
            case .other: break
            case .leave: socket.close()
            case let message: resume(message)
            }
        }
        isOver = true
        resume(nil)
    }

    private static func read(_ bytes: [UInt8]) -> Incoming {
        guard let response = livekit__signal_response__unpack(nil, bytes.count, bytes) else { return .other }
        defer { livekit__signal_response__free_unpacked(response, nil) }
        switch response.pointee.message_case {
        case LIVEKIT__SIGNAL_RESPONSE__MESSAGE_JOIN: return .join
        case LIVEKIT__SIGNAL_RESPONSE__MESSAGE_ANSWER:
            return .answer(String(cString: response.pointee.answer.pointee.sdp))
        case LIVEKIT__SIGNAL_RESPONSE__MESSAGE_OFFER:
            let offer = response.pointee.offer.pointee
            return .offer(sdp: String(cString: offer.sdp), id: offer.id)
        case LIVEKIT__SIGNAL_RESPONSE__MESSAGE_TRACK_PUBLISHED:
            return .published(cid: String(cString: response.pointee.track_published.pointee.cid))
        case LIVEKIT__SIGNAL_RESPONSE__MESSAGE_LEAVE: return .leave
        default: return .other
        }
    }

    /// Answers the server's offer, the first or a later one. Its data section is rejected, because messages are not measured.
    private func answer(_ sdp: String, _ id: UInt32) {
        guard let remote = try? RemoteSide(sdp) else { return }
        let local = receiving?.local ?? hub.makeLocal(for: peer)
        post(.answer(makeAnswer(to: remote, from: local), id: id))
        if let receiving {
            hub.update(receiving.id, remote, for: peer)
        } else {
            receiving = (hub.open(local, remote, for: peer, since: since), local)
        }
    }

    private func post(_ request: LiveKitRequest) { socket.send(.binary(request.packed())) }

    func leave() async {
        for id in [publishing, receiving?.id].compactMap({ $0 }) { hub.close(id, of: peer) }
        post(.leave)
        socket.close()
    }
}

/// A `SignalRequest`, written with protobuf-c's own structures, so that the server's writer is not used on both ends.
private enum LiveKitRequest {
    case offer(String)
    case answer(String, id: UInt32)
    case addTrack(cid: String, isVideo: Bool)
    case ping
    case leave

    func packed() -> [UInt8] {
        switch self {
        case .offer(let sdp):
            return Self.description("offer", sdp, id: 1) {
                $0.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_OFFER
                $0.offer = $1
            }
        case .answer(let sdp, let id):
            return Self.description("answer", sdp, id: id) {
                $0.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_ANSWER
                $0.answer = $1
            }
        case .addTrack(let cid, let isVideo):
            var message = Livekit__AddTrackRequest()
            livekit__add_track_request__init(&message)
            message.type = isVideo ? LIVEKIT__TRACK_TYPE__VIDEO : LIVEKIT__TRACK_TYPE__AUDIO
            message.source = isVideo ? LIVEKIT__TRACK_SOURCE__CAMERA : LIVEKIT__TRACK_SOURCE__MICROPHONE
            return cid.withCString { cid in
                message.cid = UnsafeMutablePointer(mutating: cid)
                return Self.pack(&message) {
                    $0.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_ADD_TRACK
                    $0.add_track = $1
                }
            }
        case .ping:
            var message = Livekit__Ping()
            livekit__ping__init(&message)
            return Self.pack(&message) {
                $0.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_PING_REQ
                $0.ping_req = $1
            }
        case .leave:
            var message = Livekit__LeaveRequest()
            livekit__leave_request__init(&message)
            message.reason = LIVEKIT__DISCONNECT_REASON__CLIENT_INITIATED
            return Self.pack(&message) {
                $0.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_LEAVE
                $0.leave = $1
            }
        }
    }

    private typealias Filling<Message> = (inout Livekit__SignalRequest, UnsafeMutablePointer<Message>) -> Void

    private static func description(
        _ type: String, _ sdp: String, id: UInt32, _ fill: Filling<Livekit__SessionDescription>
    ) -> [UInt8] {
        var message = Livekit__SessionDescription()
        livekit__session_description__init(&message)
        message.id = id
        return type.withCString { type in
            sdp.withCString { sdp in
                message.type = UnsafeMutablePointer(mutating: type)
                message.sdp = UnsafeMutablePointer(mutating: sdp)
                return pack(&message, fill)
            }
        }
    }

    /// The bytes of a request to which `fill` gives its message; everything that it points to is read before this returns.
    private static func pack<Message>(_ message: inout Message, _ fill: Filling<Message>) -> [UInt8] {
        withUnsafeMutablePointer(to: &message) { message in
            var request = Livekit__SignalRequest()
            livekit__signal_request__init(&request)
            fill(&request, message)
            let size = livekit__signal_request__get_packed_size(&request)
            return [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                count = livekit__signal_request__pack(&request, buffer.baseAddress)
            }
        }
    }
}
