import AccessTokens

/// WHIP (RFC 9725) to publish and WHEP to play, for any server that supports them.
///
/// WHEP plays one publisher per connection, so a member that receives nine others has nine.
struct WHIPDriver: SignallingDriver {
    let base: String
    let http: SoupClient
    let tokens: TokenSource

    func join(_ peer: PeerSpec, hub: ConnectionHub) async throws(LoadError) -> any JoinedPeer {
        let member = WHIPPeer(driver: self, peer: peer, hub: hub)
        if peer.sends {
            let offered = OfferedMedia(sendsAudio: peer.sendsAudio, videoLayers: peer.videoLayers)
            try await member.connect("\(base)/whip/\(peer.room)", offered, as: peer.identity)
        }
        return member
    }
}

/// One connection made by one POST.
struct WHIPSession: Sendable {
    var id: ConnectionID
    var location: String?
}

private actor WHIPPeer: JoinedPeer {
    private let driver: WHIPDriver
    private let peer: PeerSpec
    private let hub: ConnectionHub
    private var sessions: [WHIPSession] = []

    init(driver: WHIPDriver, peer: PeerSpec, hub: ConnectionHub) {
        self.driver = driver
        self.peer = peer
        self.hub = hub
    }

    func startReceiving() async throws(LoadError) {
        let offered = OfferedMedia(receivesAudio: peer.receivesAudio, receivesVideo: peer.receivesVideo)
        for publisher in peer.publishers where publisher != peer.identity {
            // Each connection is a separate session; two with one identity would replace each other.
            try await connect(
                "\(driver.base)/whep/\(peer.room)/\(publisher)", offered, as: "\(peer.identity)-sees-\(publisher)")
        }
    }

    func connect(_ url: String, _ offered: OfferedMedia, as identity: String) async throws(LoadError) {
        let since = ConnectionHub.now()
        let offer = hub.makeOffer(offered, for: peer)
        let reply = try await driver.http.send(
            "POST", url, type: "application/sdp", token: driver.tokens.token(for: peer, as: identity), body: offer.sdp)
        guard reply.status == 201 else { throw .signalling("POST \(url): \(reply.status) \(reply.body)") }
        let id = hub.open(offer, try RemoteSide(reply.body), for: peer, since: since)
        let location = reply.location.map { $0.hasPrefix("/") ? driver.base + $0 : $0 }
        sessions.append(WHIPSession(id: id, location: location))
    }

    func leave() async {
        for session in sessions {
            hub.close(session.id, of: peer)
            if let location = session.location { _ = try? await driver.http.send("DELETE", location) }
        }
    }
}

/// Makes the access tokens of peers, or hands out one that was given.
struct TokenSource: Sendable {
    var fixed: String?
    var key: APIKey

    /// A token for `peer`, with another identity if one is given.
    func token(for peer: PeerSpec, as identity: String? = nil) -> String? {
        if let fixed { return fixed }
        var grant = VideoGrant.join(peer.room)
        grant.canPublish = peer.sends
        grant.canSubscribe = peer.receives
        let claims = AccessClaims(
            apiKey: key.name, identity: identity ?? peer.identity, expiresAt: 4_000_000_000, video: grant)
        return try? TokenVerifier(keys: [key]).mint(claims)
    }
}
