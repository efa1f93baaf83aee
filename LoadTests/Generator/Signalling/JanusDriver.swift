import Foundation

/// Janus VideoRoom over its HTTP interface: publishers join and configure, subscribers attach to feeds and answer offers.
///
/// All peers are handles of one Janus session, so that one long poll serves them all: signalling is not measured.
struct JanusDriver: SignallingDriver {
    private let session: JanusSession

    init(base: String, http: SoupClient) { session = JanusSession(base: base, http: http) }

    func prepare(room: String) async throws(LoadError) {
        let handle = try await session.attach()
        // No bit rate cap, and no keyframes that nobody requested.
        _ = try await session.send(
            to: handle,
            [
                "request": "create", "room": JanusNames.number(of: room), "publishers": 1_000, "bitrate": 0,
                "fir_freq": 0, "audiocodec": "opus", "videocodec": "vp8,h264",
                "h264_profile": "42e01f",
            ])
    }

    func join(_ peer: PeerSpec, hub: ConnectionHub) async throws(LoadError) -> any JoinedPeer {
        let member = JanusPeer(session: session, peer: peer, hub: hub)
        if peer.sends { try await member.publish() }
        return member
    }
}

/// Janus names rooms and feeds by numbers.
private enum JanusNames {
    static func number(of name: String) -> Int {
        Int(name.utf8.reduce(UInt32(0x811c_9dc5)) { ($0 ^ UInt32($1)) &* 0x0100_0193 } & 0x7fff_ffff)
    }
}

private actor JanusPeer: JoinedPeer {
    private let session: JanusSession
    private let peer: PeerSpec
    private let hub: ConnectionHub
    private var handles: [Int] = []
    private var connections: [ConnectionID] = []

    init(session: JanusSession, peer: PeerSpec, hub: ConnectionHub) {
        self.session = session
        self.peer = peer
        self.hub = hub
    }

    func publish() async throws(LoadError) {
        let since = ConnectionHub.now()
        let handle = try await session.attach()
        handles.append(handle)
        let offered = OfferedMedia(sendsAudio: peer.sendsAudio, videoLayers: peer.videoLayers)
        let offer = hub.makeOffer(offered, for: peer)
        let reply = try await session.send(
            to: handle,
            [
                "request": "joinandconfigure", "room": JanusNames.number(of: peer.room), "ptype": "publisher",
                "id": JanusNames.number(of: peer.identity), "display": peer.identity,
            ], jsep: ("offer", offer.sdp))
        guard let sdp = reply.jsep?.sdp else {
            throw .signalling("Janus answered a publisher without a session description")
        }
        connections.append(hub.open(offer, try RemoteSide(sdp), for: peer, since: since))
    }

    func startReceiving() async throws(LoadError) {
        let feeds = peer.publishers.filter { $0 != peer.identity }
        guard !feeds.isEmpty else { return }
        let since = ConnectionHub.now()
        let handle = try await session.attach()
        handles.append(handle)
        let reply = try await subscribe(handle, to: feeds)
        guard let sdp = reply.jsep?.sdp else { throw .signalling("Janus sent no offer to a subscriber") }
        let remote = try RemoteSide(sdp)
        let local = hub.makeLocal(for: peer)
        let answer = makeAnswer(to: remote, from: local)
        _ = try await session.send(to: handle, ["request": "start"], jsep: ("answer", answer))
        connections.append(hub.open(local, remote, for: peer, since: since))
    }

    /// Janus knows a feed only once its media is up, so a subscriber may have to retry.
    private func subscribe(_ handle: Int, to feeds: [String]) async throws(LoadError) -> JanusSession.Message {
        var attempts = 0
        while true {
            do throws(LoadError) {
                return try await session.send(
                    to: handle,
                    [
                        "request": "join", "room": JanusNames.number(of: peer.room), "ptype": "subscriber",
                        "streams": feeds.map { ["feed": JanusNames.number(of: $0)] },
                    ])
            } catch {
                attempts += 1
                guard attempts < 50, "\(error)".contains("No such feed") else { throw error }
                try? await Task.sleep(for: .milliseconds(100))
            }
        }
    }

    func leave() async {
        for id in connections { hub.close(id, of: peer) }
        for handle in handles { await session.detach(handle) }
    }
}

/// The Janus session: requests, and the long poll that delivers the resulting events.
private actor JanusSession {
    struct Message: Decodable, Sendable {
        struct Data: Decodable, Sendable { var id: Int? }
        struct Problem: Decodable, Sendable { var reason: String? }
        struct Plugin: Decodable, Sendable {
            struct Data: Decodable, Sendable { var error: String? }
            var data: Data?
        }
        struct Description: Decodable, Sendable {
            var type: String
            var sdp: String
        }
        var janus: String
        var transaction: String?
        var data: Data?
        var error: Problem?
        var plugindata: Plugin?
        var jsep: Description?
    }

    private let base: String
    private let http: SoupClient
    private var id: Int?
    private var starting: Task<Int?, Never>?
    private var nextTransaction = 1
    private var waiting: [String: CheckedContinuation<Message?, Never>] = [:]

    init(base: String, http: SoupClient) {
        self.base = base + "/janus"
        self.http = http
    }

    /// A new handle of the VideoRoom plugin.
    func attach() async throws(LoadError) -> Int {
        let session = try await start()
        let reply = try await post("/\(session)", ["janus": "attach", "plugin": "janus.plugin.videoroom"])
        guard let handle = reply.data?.id else { throw .signalling("Janus: \(reply.error?.reason ?? "no handle")") }
        return handle
    }

    func detach(_ handle: Int) async {
        guard let id else { return }
        _ = try? await post("/\(id)/\(handle)", ["janus": "detach"])
    }

    /// Sends a message to the plugin and waits for the resulting event.
    func send(
        to handle: Int, _ body: [String: any Sendable], jsep: (type: String, sdp: String)? = nil
    ) async throws(LoadError) -> Message {
        let session = try await start()
        var message: [String: Any] = ["janus": "message", "body": body]
        if let jsep { message["jsep"] = ["type": jsep.type, "sdp": jsep.sdp] }
        let transaction = "t\(nextTransaction)"
        var reply = try await post("/\(session)/\(handle)", message)
        if reply.janus == "ack" {
            // The event may have arrived already: events that nobody waits for are kept for a while.
            guard let event = await event(of: transaction) else { throw .signalling("Janus: the session has ended") }
            reply = event
        }
        if let problem = reply.plugindata?.data?.error ?? reply.error?.reason { throw .signalling("Janus: \(problem)") }
        return reply
    }

    private var early: [String: Message] = [:]

    private func event(of transaction: String) async -> Message? {
        if let message = early.removeValue(forKey: transaction) { return message }
        return await withCheckedContinuation { waiting[transaction] = $0 }
    }

    private func start() async throws(LoadError) -> Int {
        if let id { return id }
        let task =
            starting
            ?? Task {
                let reply = try? await self.post("", ["janus": "create"])
                return reply?.data?.id
            }
        starting = task
        guard let created = await task.value else { throw .signalling("Janus did not create a session at \(base)") }
        if id == nil {
            id = created
            Task { await self.poll(created) }
        }
        return created
    }

    private func poll(_ session: Int) async {
        while let reply = try? await http.send("GET", "\(base)/\(session)?maxev=100"), reply.status == 200 {
            guard let messages = try? JSONDecoder().decode([Message].self, from: Data(reply.body.utf8)) else {
                continue
            }
            for message in messages where message.janus == "event" {
                guard let transaction = message.transaction else { continue }
                if let continuation = waiting.removeValue(forKey: transaction) {
                    continuation.resume(returning: message)
                } else {
                    early[transaction] = message
                }
            }
        }
        for continuation in waiting.values { continuation.resume(returning: nil) }
        waiting = [:]
    }

    private func post(_ path: String, _ message: [String: Any]) async throws(LoadError) -> Message {
        var message = message
        message["transaction"] = "t\(nextTransaction)"
        nextTransaction += 1
        guard let data = try? JSONSerialization.data(withJSONObject: message) else {
            throw .signalling("cannot encode a message to Janus")
        }
        let reply = try await http.send(
            "POST", base + path, type: "application/json", body: String(decoding: data, as: UTF8.self))
        guard let answer = try? JSONDecoder().decode(Message.self, from: Data(reply.body.utf8)) else {
            throw .signalling("Janus: \(reply.status) \(reply.body.prefix(200))")
        }
        return answer
    }
}
