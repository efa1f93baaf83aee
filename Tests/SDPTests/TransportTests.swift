import SDP
import Testing

@Suite("Transport over time")
struct TransportTests {
    private let sections = [audioSection("0", "sendonly")]

    @Test(
        "DTLS roles: the server is passive wherever it may be",
        arguments: [("actpass", "passive"), ("active", "passive"), ("passive", "active")])
    func roles(_ offered: String, _ answered: String) throws {
        var negotiation = makeNegotiation()
        _ = try negotiation.receiveOffer(offer(sections, setup: offered))
        #expect(try negotiation.makeAnswer().text.sdpLines.contains("a=setup:\(answered)"))
        // Later offers with actpass keep the roles (RFC 8842 section 5.5), others must.
        _ = try negotiation.receiveOffer(offer(sections, setup: "actpass"))
        #expect(try negotiation.makeAnswer().text.sdpLines.contains("a=setup:\(answered)"))
        let other = answered == "passive" ? "passive" : "active"
        #expect(throws: NegotiationError(.setupChanged)) { try negotiation.receiveOffer(offer(sections, setup: other)) }
    }

    @Test("A client that answers passive makes the server the DTLS client, permanently")
    func passiveAnswer() throws {
        var negotiation = makeNegotiation()
        let pushed = try negotiation.makeOffer(sending: [stream(.audio, 1)])
        let accepted = try negotiation.receiveAnswer(OfferMakingTests.answer(to: pushed.text, setup: "passive"))
        #expect(accepted.transport?.localSetup == .active)
        let again = try negotiation.makeOffer(sending: [stream(.audio, 1)])
        #expect(throws: NegotiationError(.setupChanged)) {
            try negotiation.receiveAnswer(OfferMakingTests.answer(to: again.text, setup: "active"))
        }
    }

    @Test("B21: an ICE restart is detected, requires new credentials, and is answered with them")
    func restart() throws {
        var negotiation = makeNegotiation()
        _ = try negotiation.receiveOffer(offer(sections, ufrag: "first"))
        let first = try negotiation.makeAnswer().text
        #expect(first.sdpLines.contains("a=ice-ufrag:martlet0"))
        let outcome = try negotiation.receiveOffer(offer(sections, ufrag: "second"))
        #expect(outcome.iceRestarted)
        #expect(throws: NegotiationError(.newICECredentialsRequired)) { try negotiation.makeAnswer() }
        negotiation.restartICE(ufrag: "martlet1", password: "martlet1martlet1martlet1")
        let second = try negotiation.makeAnswer().text
        #expect(second.sdpLines.contains("a=ice-ufrag:martlet1"))
        #expect(negotiation.remoteTransport?.iceUfrag == "second")
        #expect(try !negotiation.receiveOffer(offer(sections, ufrag: "second")).iceRestarted)
        // New credentials that the remote did not ask for wait for the server's own offer.
        negotiation.restartICE(ufrag: "martlet2", password: "martlet2martlet2martlet2")
        #expect(try negotiation.makeAnswer().text.sdpLines.contains("a=ice-ufrag:martlet1"))
        #expect(try negotiation.makeOffer(sending: []).text.sdpLines.contains("a=ice-ufrag:martlet2"))
    }

    @Test("B21: a restart that the server offers is recognized in the answer")
    func ownRestart() throws {
        var negotiation = makeNegotiation()
        var pushed = try negotiation.makeOffer(sending: [stream(.audio, 1)])
        #expect(try !negotiation.receiveAnswer(OfferMakingTests.answer(to: pushed.text, ufrag: "one1")).iceRestarted)
        negotiation.restartICE(ufrag: "martlet1", password: "martlet1martlet1martlet1")
        pushed = try negotiation.makeOffer(sending: [stream(.audio, 1)])
        #expect(try negotiation.receiveAnswer(OfferMakingTests.answer(to: pushed.text, ufrag: "two2")).iceRestarted)
    }

    @Test("Another certificate on an established connection is refused")
    func fingerprint() throws {
        var negotiation = makeNegotiation()
        let good = offer(sections)
        _ = try negotiation.receiveOffer(good)
        _ = try negotiation.makeAnswer()
        let other = good.replacing("a=fingerprint:sha-256 AB", "a=fingerprint:sha-256 00")
        #expect(throws: NegotiationError(.fingerprintChanged)) { try negotiation.receiveOffer(other) }
    }

    @Test("A captured restart of Chromium keeps its sections")
    func captured() throws {
        var negotiation = makeNegotiation()
        let text = try Vectors.text("chromium156_reoffer_icerestart_addvideo")
        let before = text.components(prefix: "m=").dropLast().joined().replacing("a=ice-ufrag:WN3K", "a=ice-ufrag:OLDU")
        _ = try negotiation.receiveOffer(before)
        _ = try negotiation.makeAnswer()
        let outcome = try negotiation.receiveOffer(text)
        #expect(outcome.iceRestarted)
        #expect(outcome.sections.count == 3)
        #expect(outcome.sections[2].remoteSends?.streamID == nil, "msid:- names no stream")
        #expect(outcome.sections[2].remoteSends?.trackID == "626b0284-c79d-4786-9085-034f0f8ad6f3")
    }

    @Test("D4: SDP fragments bring candidates of every form, and restarts")
    func fragments() throws {
        var negotiation = makeNegotiation()
        #expect(throws: NegotiationError(.noPendingOffer)) { try negotiation.receiveFragment("a=x") }
        _ = try negotiation.receiveOffer(offer(sections, ufrag: "first"))
        _ = try negotiation.makeAnswer()
        let trickle = """
            a=ice-ufrag:first
            a=ice-pwd:0123456789abcdefghijkl
            m=audio 9 RTP/AVP 0
            a=mid:0
            a=candidate:1 1 UDP 2122187007 192.0.2.2 50933 typ host
            a=candidate:2 1 udp 2113937151 554cd829-a5ff-45ea-8d4e-bd94e8f43c2f.local 55473 typ host generation 0
            a=candidate:3 1 TCP 2105458943 fe80::1 9 typ host tcptype active
            a=candidate:nonsense
            a=candidate:4 2 UDP 1 192.0.2.2 50934 typ host
            a=end-of-candidates
            """
        let outcome = try negotiation.receiveFragment(trickle)
        #expect(!outcome.iceRestarted)
        #expect(outcome.fragment.candidates.count == 4)
        #expect(outcome.fragment.candidates.map(\.mid) == ["0", "0", "0", "0"])
        #expect(outcome.fragment.candidates[1].candidate.isMulticastDNS)
        #expect(outcome.fragment.endOfCandidates)
        #expect(outcome.transport.candidates.count == 3)
        #expect(throws: NegotiationError(.newICECredentialsRequired)) { try negotiation.makeFragment() }

        let restart = try negotiation.receiveFragment("a=ice-ufrag:second\r\na=ice-pwd:abcdefghijkl0123456789\r\n")
        #expect(restart.iceRestarted)
        #expect(restart.transport.iceUfrag == "second")
        negotiation.restartICE(ufrag: "martlet1", password: "martlet1martlet1martlet1")
        let reply = try ICEFragment(parsing: try negotiation.makeFragment())
        #expect(reply.ufrag == "martlet1")
        #expect(reply.candidates.map(\.candidate) == testTransport.candidates)
        #expect(reply.endOfCandidates)
        #expect(
            try !negotiation.receiveOffer(
                offer(sections, ufrag: "second").replacing(
                    "a=ice-pwd:0123456789abcdefghijkl", "a=ice-pwd:abcdefghijkl0123456789")
            ).iceRestarted)
        #expect(throws: NegotiationError(.offerPending)) { try negotiation.receiveFragment("a=x") }
    }

    @Test(
        "D4: valid and invalid candidates",
        arguments: [
            ("candidate:1 1 udp 2130706431 192.0.2.1 7900 typ host", true),
            ("a=candidate:1 1 UDP 1 ::1 7900 typ srflx raddr 0.0.0.0 rport 0", true),
            ("candidate:1 1 ssltcp 1 192.0.2.1 7900 typ host", false),
            ("candidate:1 1 udp 1 192.0.2.1 70000 typ host", false),
            ("candidate:1 0 udp 1 192.0.2.1 7900 typ host", false),
            ("candidate:1 1 udp -1 192.0.2.1 1 typ host", false),
            ("candidate:1 1 udp 1 192.0.2.1 7900 type host", false), ("candidate:1 1 udp 1 a/b 7900 typ host", false),
            ("candidate:1 1 udp 1 192.0.2.1 7900", false), ("", false), ("candidate:", false),
            ("candidate:123456789012345678901234567890123 1 udp 1 192.0.2.1 1 typ host", false),
        ])
    func candidates(_ text: String, _ isGood: Bool) throws {
        #expect((Candidate(parsing: text) != nil) == isGood)
        if let candidate = Candidate(parsing: text) { #expect(Candidate(parsing: candidate.text) == candidate) }
    }

    @Test("The server's candidates: default address in the m-section, priority by RFC 8445")
    func ownCandidates() throws {
        #expect(testTransport.candidates[0].priority == 2_130_706_431)
        var negotiation = makeNegotiation()
        negotiation.transport.candidates.reverse()
        _ = try negotiation.receiveOffer(offer(sections))
        #expect(try negotiation.makeAnswer().text.section(0)[1] == "c=IN IP6 2001:db8::1")
        negotiation.transport.candidates = []
        _ = try negotiation.receiveOffer(offer(sections))
        let bare = try negotiation.makeAnswer().text.section(0)
        #expect(bare[0].hasPrefix("m=audio 9 ") && bare[1] == "c=IN IP4 0.0.0.0")
        #expect(!bare.contains("a=end-of-candidates"))
    }
}
