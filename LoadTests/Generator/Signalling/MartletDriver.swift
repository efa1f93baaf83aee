import Foundation

/// `martlet.v1` over a WebSocket: publishes on connection `pub`, receives on `sub`, which the server opens.
struct MartletDriver: SignallingDriver {
    let base: String
    let http: SoupClient
    let tokens: TokenSource
    /// A ping without `id` is not answered.
    private let pinger = Pinger(.text(#"{"type":"ping"}"#))

    init(base: String, http: SoupClient, tokens: TokenSource) {
        self.base = base
        self.http = http
        self.tokens = tokens
    }

    func join(_ peer: PeerSpec, hub: ConnectionHub) async throws(LoadError) -> any JoinedPeer {
        let since = ConnectionHub.now()
        let url = WebSocketClient.address(base) + "/v1/signal"
        let socket = try await http.webSocket(url, subprotocol: "martlet.v1", token: tokens.token(for: peer))
        let session = MartletSession(socket: socket, peer: peer, hub: hub, since: since)
        try await session.start()
        pinger.add(socket)
        return session
    }
}

/// One member's signalling.
private actor MartletSession: JoinedPeer {
    private struct Incoming: Decodable {
        var type: String
        var id: Int?
        var connection: String?
        var sdp: String?
        var code: String?
        var message: String?
        var cancelled: Bool?
    }

    private let socket: WebSocketClient
    private let peer: PeerSpec
    private let hub: ConnectionHub
    private let since: Int64
    private var nextID = 1
    private var waiting: [Int: CheckedContinuation<Incoming?, Never>] = [:]
    private var connections: [String: ConnectionID] = [:]
    /// The ICE credentials of connections that the server offered; they stay the same over renegotiations.
    private var locals: [String: LocalSide] = [:]
    private var reading: Task<Void, Never>?
    private var isDraining = false
    private var moved: (@Sendable () -> Void)?

    init(socket: WebSocketClient, peer: PeerSpec, hub: ConnectionHub, since: Int64) {
        self.socket = socket
        self.peer = peer
        self.hub = hub
        self.since = since
    }

    func start() async throws(LoadError) {
        reading = Task { await self.read() }
        let profile = peer.receives ? (peer.sends ? "full" : "viewer") : "publishOnly"
        let join: [String: Any] = [
            "type": "join", "room": peer.room, "profile": profile, "roster": false, "autoSubscribe": peer.receives,
            "audioOnly": peer.receives && !peer.receivesVideo,
        ]
        let reply = try await request(join)
        guard reply.type == "joined" else { throw .signalling("join: \(reply.code ?? reply.type)") }
        if peer.sends { try await publish() }
    }

    private func publish() async throws(LoadError) {
        let offered = OfferedMedia(sendsAudio: peer.sendsAudio, videoLayers: peer.videoLayers)
        let offer = hub.makeOffer(offered, for: peer)
        let reply = try await request(["type": "offer", "connection": "pub", "sdp": offer.sdp])
        guard reply.type == "answer", let sdp = reply.sdp else {
            throw .signalling("offer: \(reply.code ?? reply.type) \(reply.message ?? "")")
        }
        connections["pub"] = hub.open(offer, try RemoteSide(sdp), for: peer, since: since)
    }

    private func read() async {
        for await text in socket.messages {
            guard let message = try? JSONDecoder().decode(Incoming.self, from: Data(text)) else { continue }
            if let id = message.id, let continuation = waiting.removeValue(forKey: id) {
                continuation.resume(returning: message)
            } else if message.type == "migrate", message.cancelled != true {
                isDraining = true
                moved?()
            } else if message.type == "offer", let connection = message.connection, let sdp = message.sdp {
                answer(connection, sdp)
            }
        }
        for continuation in waiting.values { continuation.resume(returning: nil) }
        waiting = [:]
    }

    /// Answers the server's offer, the first or a later one.
    private func answer(_ connection: String, _ sdp: String) {
        guard let remote = try? RemoteSide(sdp) else { return }
        let local =
            locals[connection]
            ?? hub.makeLocal(for: peer)
        locals[connection] = local
        let text = makeAnswer(to: remote, from: local)
        post(["type": "answer", "connection": connection, "sdp": text])
        if let id = connections[connection] {
            hub.update(id, remote, for: peer)
        } else {
            connections[connection] = hub.open(local, remote, for: peer, since: since)
        }
    }

    private func request(_ message: [String: Any]) async throws(LoadError) -> Incoming {
        let id = post(message)
        let reply = await withCheckedContinuation { waiting[id] = $0 }
        guard let reply else { throw .signalling("the WebSocket closed") }
        return reply
    }

    @discardableResult
    private func post(_ message: [String: Any]) -> Int {
        var message = message
        let id = nextID
        nextID += 1
        message["id"] = id
        if let data = try? JSONSerialization.data(withJSONObject: message) {
            socket.send(.text(String(decoding: data, as: UTF8.self)))
        }
        return id
    }

    func onDrain(_ moved: @escaping @Sendable () -> Void) {
        self.moved = moved
        if isDraining { moved() }
    }

    func leave() async {
        for id in connections.values { hub.close(id, of: peer) }
        post(["type": "leave"])
        socket.close()
    }
}
