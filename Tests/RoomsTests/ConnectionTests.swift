import AccessTokens
import MediaControl
import Primitives
import SDP
import TestSupport
import Testing

@testable import Rooms

@Suite("Connections")
struct ConnectionTests {
    @Test("D5: bye ends one connection, not the member; the other one goes on")
    func bye() throws {
        var (bench, ada, bob) = try SubscribeTests.pair()
        try bench.offer(bob, [.audio("0")])
        try bench.answerOffers(ada)
        _ = bench.consumeCommands()
        try bench.step { (room, turn) throws(RoomError) in try room.bye(bob, connection: "sub", turn: &turn) }
        #expect(bench.room.connections(of: bob).map(\.id) == ["pub"])
        #expect(bench.room.subscriptions(of: bob).isEmpty && bench.info(bob)?.tracks.count == 1)
        #expect(bench.commands.count { if case .removePeer = $0 { true } else { false } } == 1)
        #expect(throws: RoomError.self) {
            try bench.step { (room, turn) throws(RoomError) in try room.bye(bob, connection: "sub", turn: &turn) }
        }
    }

    @Test("bye that keeps the subscriptions: what the connection received goes on on another one")
    func byeForAnother() throws {
        var (bench, _, bob) = try SubscribeTests.pair()
        let before = Set(bench.room.subscriptions(of: bob).map(\.sid))
        let offered = bench.lastOffer(bob)?.sdp
        try bench.step { (room, turn) throws(RoomError) in
            try room.bye(bob, connection: "sub", keepsSubscriptions: true, turn: &turn)
        }
        #expect(bench.lastOffer(bob)?.connection == "sub" && bench.lastOffer(bob)?.sdp != offered)
        #expect(try bench.answerOffers(bob) > 0)
        let after = bench.room.subscriptions(of: bob)
        #expect(Set(after.map(\.sid)) == before && after.allSatisfy { $0.state == .active })
        let removed = bench.commands.lastIndex { if case .removePeer = $0 { true } else { false } }
        #expect(SubscribeTests.subscribed(Array(bench.commands[(try #require(removed))...])).count == before.count)
    }

    @Test("All connections of a participant are one group, and those of another are not in it")
    func groups() throws {
        var (bench, _, bob) = try SubscribeTests.pair()
        try bench.offer(bob, [.audio("0")])
        let peers = bench.commands.compactMap { if case .addPeer(let peer) = $0 { peer } else { nil } }
        let groups = Dictionary(grouping: peers, by: \.group).values
        #expect(peers.count == 4 && groups.map(\.count) == [2, 2])
        #expect(groups.allSatisfy { group in group.contains { $0.id == $0.group } })
    }

    @Test("A participant's first connection is announced once, to those who want to know; a hidden one's to itself")
    func firstConnection() throws {
        for isHidden in [false, true] {
            var bench = RoomBench()
            let ada = try bench.join("ada") { request in
                request.wantsConnections = true
                request.claims.video.hidden = isHidden
            }
            let bob = try bench.join("bob") { $0.wantsConnections = true }, carl = try bench.join("carl")
            try bench.offer(ada, [.audio("0")])
            let peer = try #require(bench.room.connections(of: ada).first?.peer)
            #expect(bench.info(ada)?.hasConnected == false)
            for _ in 0..<2 { bench.media(.peerConnected(peer)) }
            #expect(bench.info(ada)?.hasConnected == true)
            let announced = [ada, bob, carl].map { session in
                (bench.events[session] ?? []).count {
                    if case .participantUpdated(let info) = $0.event { info.hasConnected } else { false }
                }
            }
            #expect(announced == (isHidden ? [1, 0, 0] : [1, 1, 0]))
        }
    }

    @Test("B21: new credentials of the client restart ICE: same tracks, same SSRCs, no new participant")
    func restart() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        let first = try bench.offer(ada, "pub", [.audio("0"), .video("1")])
        let tracks = bench.info(ada)?.tracks.map(\.sid)
        _ = bench.consumeCommands()
        let second = try bench.offer(ada, "pub", [.audio("0"), .video("1")], ufrag: "fresh")
        #expect(second.iceTag != first.iceTag && second.sdp.contains("a=ice-ufrag:\(second.iceTag)"))
        #expect(bench.info(ada)?.tracks.map(\.sid) == tracks)
        guard case .restartICE(_, let local) = bench.commands.first,
            case .setRemoteTransport(_, let remote) = bench.commands.last
        else {
            Issue.record("\(bench.commands)")
            return
        }
        #expect(local.ufrag == second.iceTag && remote.ice.ufrag == "fresh" && bench.commands.count == 2)
    }

    @Test(
        "The server has another public address: it is advertised to whoever restarts ICE, other answers keep what they have"
    )
    func restartAtAnotherAddress() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        try bench.offer(ada, "pub", [.audio("0")])
        bench.room.set(candidates: [Candidate(foundation: "1", address: "198.51.100.7", port: 7_900)])
        #expect(try bench.offer(ada, "pub", [.audio("0"), .video("1")]).sdp.contains(" 192.0.2.1 7900 "))
        let restarted = try bench.offer(ada, "pub", [.audio("0"), .video("1")], ufrag: "fresh")
        #expect(restarted.sdp.contains(" 198.51.100.7 7900 ") && !restarted.sdp.contains("192.0.2.1"))
    }

    @Test("WHIP's PATCH: candidates change nothing, new credentials restart and are answered with a fragment")
    func fragments() throws {
        var bench = RoomBench()
        let caster = try bench.join("caster", isSignalled: false) { $0.profile = .publishOnly }
        let answer = try bench.offer(caster, "main", [.audio("0")])
        _ = bench.consumeCommands()
        let trickle =
            "a=ice-ufrag:clnt\r\na=ice-pwd:0123456789abcdefghijklmn\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n"
            + "a=candidate:1 1 udp 1 192.0.2.9 5000 typ host\r\n"
        let none = try bench.step { (room, turn) throws(RoomError) in
            try room.fragment(caster, connection: "main", text: trickle, turn: &turn)
        }
        #expect(none == nil && bench.commands.isEmpty)
        let restart = trickle.replacing("clnt", with: "newufrag")
        let answered = try bench.step { (room, turn) throws(RoomError) in
            try room.fragment(caster, connection: "main", text: restart, turn: &turn)
        }
        let reply = try #require(answered)
        #expect(reply.iceTag != answer.iceTag && reply.fragment.contains("a=ice-ufrag:\(reply.iceTag)"))
        #expect(try bench.room.iceTag(caster, connection: "main") == reply.iceTag)
        #expect(bench.commands.count == 2)
    }

    @Test(
        "A transport that ends is reported with its reason; what it carried ends, what it should receive is offered on another at once"
    )
    func peerEnded() throws {
        var (bench, ada, bob) = try SubscribeTests.pair()
        let peer = try #require(bench.room.connections(of: bob).first?.peer)
        _ = bench.consumeEvents(bob)
        bench.media(.peerEnded(peer, .consentExpired))
        #expect(bench.room.subscriptions(of: bob).map(\.state) == [.pending, .pending])
        #expect(
            bench.log.contains(
                .connectionChanged(
                    participant: bench.info(bob)?.sid ?? "", connection: "sub", state: .closed, reason: "consentExpired"
                )))
        #expect(try bench.answerOffers(bob) == 1)
        #expect(bench.room.subscriptions(of: bob).map(\.state) == [.active, .active])
        #expect(try #require(bench.room.connections(of: bob).first?.peer) != peer)
        let reported = RoomEvent.connectionChanged(connection: "sub", state: .closed, reason: "consentExpired")
        #expect(bench.consumeEvents(bob).first == reported, "before the offer")
        let publisher = try #require(bench.room.connections(of: ada).first?.peer)
        bench.media(.peerEnded(publisher, .dtlsFailed))
        #expect(bench.room.has(ada) && bench.info(ada)?.tracks.isEmpty == true)
        #expect(bench.room.subscriptions(of: bob).isEmpty)
    }

    @Test("D4: candidates of every kind, early and late, do no harm")
    func candidates() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        for isLate in [false, true] {
            if isLate { try bench.offer(ada, [.audio("0")]) }
            for text in [nil, "", "candidate:1 1 udp 1 x.local 9 typ host", "nonsense"] {
                try bench.room.acceptCandidate(text, session: ada, connection: "pub")
            }
        }
        #expect(bench.room.connections(of: ada).map(\.id) == ["pub"] && bench.info(ada)?.tracks.count == 1)
        let refused = #expect(throws: RoomError.self) {
            try bench.room.acceptCandidate(String(repeating: "c", count: 2_000), session: ada, connection: "pub")
        }
        #expect(refused?.code == .tooLarge)
    }

    @Test("C14: a connection that no check reached is logged with the candidates of both sides, by kind")
    func failedICE() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        var section = ClientDescriptions.Section.audio("0")
        section.extra = [
            "a=candidate:1 1 udp 2122260223 192.0.2.7 50123 typ host",
            "a=candidate:2 1 udp 2122260222 4f7a.local 50124 typ host",
            "a=candidate:3 1 udp 1686052607 198.51.100.7 50123 typ srflx raddr 192.0.2.7 rport 50123",
        ]
        try bench.offer(ada, [section])
        for text in [
            "candidate:4 1 udp 41885439 203.0.113.7 3478 typ relay raddr 198.51.100.7 rport 50123",
            "candidate:5 1 tcp 1518280447 192.0.2.7 9 typ host tcptype active", "nonsense", "",
        ] { try bench.room.acceptCandidate(text, session: ada, connection: "pub") }
        let peer = try #require(bench.room.connections(of: ada).first?.peer)
        bench.media(.peerEnded(peer, .iceTimeout))
        let failures = bench.log.compactMap { event -> [String]? in
            guard case .iceFailed(_, "pub", let server, let client) = event else { return nil }
            return [server.text, client.text]
        }
        #expect(failures == [["1 host", "1 host, 1 reflexive, 1 relayed, 1 mDNS, 1 TCP"]])
        #expect(
            bench.consumeEvents(ada).contains(
                .connectionChanged(connection: "pub", state: .closed, reason: "iceTimeout")))
        #expect(CandidateSummary().text == "none")
    }

    @Test("An answer to nothing is refused")
    func unexpectedAnswer() throws {
        var (bench, _, bob) = try SubscribeTests.pair()
        do throws(RoomError) {
            try bench.step { (room, turn) throws(RoomError) in
                try room.answer(bob, connection: "sub", sdp: ClientDescriptions().offer([.audio("0")]), turn: &turn)
            }
            Issue.record("accepted")
        } catch {
            #expect(error.code == .unexpectedAnswer)
        }
    }

    private func answer(
        _ bench: inout RoomBench, _ session: SessionID, _ sdp: String, to offer: UInt32? = nil
    ) throws {
        try bench.step { (room, turn) throws(RoomError) in
            try room.answer(session, connection: "sub", sdp: sdp, to: offer, turn: &turn)
        }
    }

    private func comeBack(_ bench: inout RoomBench, _ session: SessionID) throws {
        try bench.step { (room, turn) throws(RoomError) in
            room.detach(session, turn: &turn)
            try room.attach(session, turn: &turn)
        }
    }

    @Test("An answer sent again is confirmed and changes nothing, after a resume also while another offer waits")
    func repeatedAnswer() throws {
        var (bench, ada, bob) = try SubscribeTests.pair()
        func states() -> [SubscriptionInfo.State] { bench.room.subscriptions(of: bob).map(\.state) }
        func negotiation() -> NegotiationState? { bench.room.state.roster[bob]?.connections.first?.negotiation.state }
        try bench.offer(ada, [.audio("0"), .video("1"), .video("2")])
        let sdp = ClientDescriptions(ufrag: "ansr").answer(to: try #require(bench.lastOffer(bob)).sdp)
        try answer(&bench, bob, sdp)
        #expect(states() == [.active, .active, .active])
        _ = bench.consumeCommands()
        _ = bench.consumeEvents(bob)
        try answer(&bench, bob, sdp)
        #expect(bench.consumeEvents(bob).isEmpty && bench.consumeCommands().isEmpty)

        try bench.offer(ada, [.audio("0"), .video("1"), .video("2"), .video("3")])
        #expect(negotiation() == .haveLocalOffer)
        try comeBack(&bench, bob)
        _ = bench.consumeCommands()
        let offers = bench.events[bob]?.count
        try answer(&bench, bob, sdp)
        #expect(negotiation() == .haveLocalOffer && bench.events[bob]?.count == offers)
        #expect(bench.consumeCommands().isEmpty && states() == [.active, .active, .active, .pending])
        #expect(try bench.answerOffers(bob) == 1)
        #expect(states() == [.active, .active, .active, .active])
    }

    @Test("A client that begins anew with an offer may answer it in the words of its last answer")
    func sameWords() throws {
        var (bench, _, bob) = try SubscribeTests.pair()
        let sdp = ClientDescriptions(ufrag: "ansr").answer(to: try #require(bench.lastOffer(bob)).sdp)
        try comeBack(&bench, bob)
        try bench.step { (room, turn) throws(RoomError) in try room.restartReceiving(bob, turn: &turn) }
        #expect(bench.room.state.roster[bob]?.connections.first?.negotiation.state == .haveLocalOffer)
        try answer(&bench, bob, sdp)
        #expect(bench.room.state.roster[bob]?.connections.first?.negotiation.state == .stable)
        #expect(bench.room.subscriptions(of: bob).map(\.state) == [.active, .active])
    }

    @Test(
        "An answer that names a former offer is refused: it is not that of the offer with which the server began anew")
    func answerToFormerOffer() throws {
        var (bench, ada, bob) = try SubscribeTests.pair()
        func offer() throws -> (sdp: String, number: UInt32) {
            let event = try #require(bench.events[bob]?.last { if case .offer = $0.event { true } else { false } })
            guard case .offer(_, let sdp, _) = event.event else { return ("", 0) }
            return (sdp, UInt32(event.sequence))
        }
        func state() -> NegotiationState? { bench.room.state.roster[bob]?.connections.first?.negotiation.state }
        try bench.offer(ada, [.audio("0"), .video("1"), .video("2")])
        let former = try offer()
        try comeBack(&bench, bob)
        try bench.step { (room, turn) throws(RoomError) in try room.restartReceiving(bob, turn: &turn) }
        let current = try offer()
        #expect(former.number < current.number)
        let late = ClientDescriptions(ufrag: "ansr").answer(to: former.sdp)
        let refused = #expect(throws: RoomError.self) { try answer(&bench, bob, late, to: former.number) }
        #expect(refused?.code == .unexpectedAnswer && state() == .haveLocalOffer)
        try answer(&bench, bob, ClientDescriptions(ufrag: "new1").answer(to: current.sdp), to: current.number)
        #expect(state() == .stable)
    }

    @Test("An answer to an offer on a connection that has ended is not taken for one on the connection in its place")
    func answerToEndedConnection() throws {
        var (bench, ada, bob) = try SubscribeTests.pair()
        try bench.offer(ada, [.audio("0"), .video("1"), .video("2")])
        let late = ClientDescriptions(ufrag: "ansr").answer(to: try #require(bench.lastOffer(bob)).sdp)
        let peer = try #require(bench.room.connections(of: bob).first?.peer)
        bench.media(.peerEnded(peer, .consentExpired))
        #expect(throws: RoomError.self) { try answer(&bench, bob, late) }
        #expect(bench.room.subscriptions(of: bob).map(\.state) == [.pending, .pending, .pending])
        #expect(try bench.answerOffers(bob, ufrag: "new1") == 1)
        #expect(bench.room.subscriptions(of: bob).map(\.state) == [.active, .active, .active])
    }

    @Test("A client that begins anew may have taken the offer before, whose answer was lost: the next has its sections")
    func offerTakenBefore() throws {
        var (bench, ada, bob) = try SubscribeTests.pair()
        func sections(_ sdp: String) -> [Substring] {
            sdp.split(separator: "\r\n").filter { $0.hasPrefix("m=") || $0.hasPrefix("a=mid:") }
                .map { line in line.prefix { $0 != " " } }
        }
        try bench.offer(ada, [.audio("0"), .video("1"), .video("2")])
        let taken = sections(try #require(bench.lastOffer(bob)).sdp)
        try comeBack(&bench, bob)
        // What the offer was made for ends meanwhile.
        let track = try #require(bench.info(ada)?.tracks.first(where: { $0.mid == "2" })).sid
        try bench.perform(.unpublish(track: track), ada)
        try bench.step { (room, turn) throws(RoomError) in try room.restartReceiving(bob, turn: &turn) }
        let next = sections(try #require(bench.lastOffer(bob)).sdp)
        #expect(next == taken && taken.count == 6)
        #expect(try bench.answerOffers(bob) == 1)
        #expect(bench.room.subscriptions(of: bob).map(\.state) == [.active, .active])
    }

    @Test("Rooms with policy peerToPeer relay payloads and carry no media; others do not relay")
    func relay() throws {
        var policy = RoomPolicy()
        policy.topology = .peerToPeer
        var bench = RoomBench(policy: policy)
        let ada = try bench.join("ada")
        let bob = try bench.join("bob")
        try bench.perform(.relay(to: "bob", payload: "{}"), ada)
        #expect(
            bench.consumeEvents(bob).last == .relayed(from: bench.info(ada)?.sid ?? "", identity: "ada", payload: "{}"))
        #expect(throws: RoomError.self) { try bench.perform(.relay(to: "nobody", payload: ""), ada) }
        #expect(throws: RoomError.self) { try bench.perform(.relay(to: "ada", payload: ""), ada) }
        #expect(throws: RoomError.self) {
            try bench.perform(.relay(to: "bob", payload: String(repeating: "x", count: 65_537)), ada)
        }
        let offered = #expect(throws: RoomError.self) { try bench.offer(ada, [.audio("0")]) }
        #expect(offered?.code == .notRouted)
        var (routed, _, other) = try SubscribeTests.pair()
        let relayed = #expect(throws: RoomError.self) { try routed.perform(.relay(to: "ada", payload: "{}"), other) }
        #expect(relayed?.code == .relayNotAllowed)
    }
}
