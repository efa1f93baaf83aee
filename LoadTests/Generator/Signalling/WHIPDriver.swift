import AccessTokens

/// WHIP (RFC 9725) to publish and WHEP to play: any server that speaks them.
///
/// WHEP plays one publisher a connection, so a member that hears nine others holds nine.
struct WHIPDriver: SignallingDriver {
    let base: String
    let http: SoupClient
    let tokens: TokenSource

    func join(_ peer: PeerSpec, hub: ConnectionHub) async throws(LoadError) -> any JoinedPeer {
        var sessions: [WHIPSession] = []
        if peer.sends {
            let wish = ConnectionWish(sendsAudio: peer.sendsAudio, videoLayers: peer.videoLayers)
            sessions.append(try await connect("\(base)/whip/\(peer.room)", wish, peer, hub))
        }
        if peer.receives {
            let wish = ConnectionWish(receivesAudio: peer.receivesAudio, receivesVideo: peer.receivesVideo)
            for publisher in peer.publishers where publisher != peer.identity {
                sessions.append(try await connect("\(base)/whep/\(peer.room)/\(publisher)", wish, peer, hub))
            }
        }
        return WHIPPeer(sessions: sessions, peer: peer, hub: hub, http: http)
    }

    private func connect(
        _ url: String, _ wish: ConnectionWish, _ peer: PeerSpec, _ hub: ConnectionHub
    ) async throws(LoadError) -> WHIPSession {
        let since = ConnectionHub.now()
        let offer = makeOffer(wish, fingerprint: hub.fingerprint, name: peer.identity)
        let reply = try await http.send(
            "POST", url, type: "application/sdp", token: tokens.token(for: peer), body: offer.sdp)
        guard reply.status == 201 else { throw .signalling("POST \(url): \(reply.status) \(reply.body)") }
        let id = hub.open(offer, try RemoteSide(reply.body), for: peer, since: since)
        let location = reply.location.map { $0.hasPrefix("/") ? base + $0 : $0 }
        return WHIPSession(id: id, location: location)
    }
}

/// One connection made by one POST.
struct WHIPSession: Sendable {
    var id: ConnectionID
    var location: String?
}

private struct WHIPPeer: JoinedPeer {
    let sessions: [WHIPSession]
    let peer: PeerSpec
    let hub: ConnectionHub
    let http: SoupClient

    func leave() async {
        for session in sessions {
            hub.close(session.id, of: peer)
            if let location = session.location { _ = try? await http.send("DELETE", location) }
        }
    }
}

/// Makes the access tokens of peers, or hands out one that was given.
struct TokenSource: Sendable {
    var fixed: String?
    var key: APIKey

    func token(for peer: PeerSpec) -> String? {
        if let fixed { return fixed }
        var grant = VideoGrant.join(peer.room)
        grant.canPublish = peer.sends
        grant.canSubscribe = peer.receives
        let claims = AccessClaims(
            apiKey: key.name, identity: peer.identity, expiresAt: 4_000_000_000, video: grant)
        return try? TokenVerifier(keys: [key]).mint(claims)
    }
}
