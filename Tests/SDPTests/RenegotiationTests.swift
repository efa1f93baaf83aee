import Primitives
import SDP
import Testing

@Suite("Renegotiation")
struct RenegotiationTests {
    private let vp8 = NegotiatedFormat(codec: .vp8, clockRateHz: 90000)

    /// Offers, and lets a willing browser answer.
    @discardableResult
    private func push(_ negotiation: inout Negotiation, _ sending: [LocalSending]) throws -> (
        mids: [String], text: String
    ) {
        let offer = try negotiation.makeOffer(sending: sending)
        _ = try negotiation.receiveAnswer(OfferMakingTests.answer(to: offer.text))
        return (offer.mids, offer.text)
    }

    private func stream(_ number: UInt32) -> LocalSending { SDPTests.stream(.video, number, formats: [vp8]) }

    @Test("D3: unchanged sections keep mid and lines, freed ones are recycled for other tracks of their kind")
    func recycling() throws {
        var negotiation = makeNegotiation()
        let first = try push(&negotiation, [stream(1), stream(2), SDPTests.stream(.audio, 3)])
        #expect(first.mids == ["0", "1", "2"])
        let second = try push(&negotiation, [stream(1), SDPTests.stream(.audio, 3)])
        #expect(second.mids == ["0", "2"])
        #expect(second.text.section(1).contains("a=inactive"))
        #expect(second.text.section(0) == first.text.section(0))
        let third = try push(&negotiation, [stream(1), SDPTests.stream(.audio, 3), stream(4)])
        #expect(third.mids == ["0", "2", "1"])
        #expect(third.text.section(2) == first.text.section(2))
        #expect(third.text.sdpLines.contains("a=group:BUNDLE 0 1 2"))
    }

    @Test("A track never returns to a section that carried it: clients would not notice")
    func sameTrackElsewhere() throws {
        var negotiation = makeNegotiation()
        try push(&negotiation, [stream(1)])
        try push(&negotiation, [])
        var again = stream(1)
        again.ssrc = 99
        #expect(try push(&negotiation, [again]).mids == ["1"])
        try push(&negotiation, [])
        #expect(try push(&negotiation, [stream(2), stream(1)]).mids == ["0", "2"])
    }

    @Test("A section that the client rejected is recycled under a new mid, for any kind")
    func rejectedSlot() throws {
        var negotiation = makeNegotiation()
        let offer = try negotiation.makeOffer(sending: [stream(1), stream(2)])
        let rejecting = OfferMakingTests.answer(to: offer.text).components(prefix: "m=")
        _ = try negotiation.receiveAnswer(
            rejecting[0] + rejecting[1].replacing("m=video 7900", "m=video 0") + rejecting[2])
        let next = try push(&negotiation, [stream(2), SDPTests.stream(.audio, 3)])
        #expect(next.mids == ["1", "2"])
        #expect(next.text.section(0)[0].hasPrefix("m=audio"))
        #expect(next.text.section(0).contains("a=mid:2"))
    }

    @Test("Of many idle sections all but 16 and the bundle's first are rejected; their places come back as other mids")
    func manyIdle() throws {
        var negotiation = makeNegotiation()
        try push(&negotiation, (1...80).map { stream($0) })
        let alone = try push(&negotiation, [stream(80)])
        #expect(alone.mids == ["79"])
        #expect(alone.text.sdpLines.count { $0.hasPrefix("m=video 0 ") } == 62)
        #expect(alone.text.sdpLines.contains { $0.hasPrefix("a=group:BUNDLE 0 63 ") })
        let others = (101...170).map { stream($0) }
        let next = try push(&negotiation, [stream(80)] + others)
        #expect(next.mids.first == "79" && next.mids[1] == "0")
        #expect(Array(next.mids.suffix(53)) == (80..<133).map { String($0) })
        #expect(next.text.sdpLines.count { $0.hasPrefix("m=") } == 80)
        #expect(next.text.sdpLines.count { $0.hasPrefix("m=video 0 ") } == 9)
    }

    @Test("Few idle sections stay, and what has no room beside many may give them up")
    func givingUp() throws {
        var negotiation = makeNegotiation()
        try push(&negotiation, (1...60).map { stream($0) })
        let few = try push(&negotiation, [stream(60)])
        #expect(!few.text.sdpLines.contains { $0.hasPrefix("m=video 0 ") })
        #expect(!negotiation.givesUpSections(sending: [stream(60)]))
        try push(&negotiation, (101...200).map { stream($0) })
        #expect(negotiation.givesUpSections(sending: [stream(101)]))
        #expect(!negotiation.givesUpSections(sending: (101...200).map { stream($0) }))
    }

    @Test("Few idle sections are given up, too, where there is no room beside them")
    func shortage() throws {
        let opus = NegotiatedFormat(codec: .opus, clockRateHz: 48000, channels: 2)
        func streams(_ numbers: ClosedRange<UInt32>) -> [LocalSending] {
            numbers.map { SDPTests.stream(.audio, $0, formats: [opus]) }
        }
        var negotiation = makeNegotiation()
        try push(&negotiation, streams(1...256))
        let sent = streams(1...250)
        try push(&negotiation, sent)
        let wanted = sent + [stream(300)]
        #expect(negotiation.fitting(wanted) == sent && negotiation.givesUpSections(sending: sent))
        let offer = try negotiation.makeOffer(sending: sent, givesUpIdle: true)
        _ = try negotiation.receiveAnswer(OfferMakingTests.answer(to: offer.text))
        let next = try push(&negotiation, wanted)
        #expect(next.mids.last == "256" && next.text.sdpLines.count { $0.hasPrefix("m=") } == 256)
    }

    @Test("D3: 30 renegotiations by the client keep every mid in its place")
    func thirty() throws {
        var random = RandomSource(seed: 3)
        var negotiation = makeNegotiation()
        var sections: [(mid: String, isVideo: Bool, dead: Bool)] = []
        var nextMid = 0
        for round in 1...30 {
            // Only what both sides have seen dead may be used again.
            let slot = round % 3 == 0 ? sections.firstIndex(where: \.dead) : nil
            for index in sections.indices where random.next() % 4 == 0 { sections[index].dead.toggle() }
            let fresh = (String(nextMid), random.next() % 2 == 0, false)
            nextMid += 1
            if let slot { sections[slot] = fresh } else { sections.append(fresh) }
            let lines = sections.map { section in
                let make = section.isVideo ? videoSection : audioSection
                return make(section.mid, "sendonly", section.dead ? 0 : 9)
            }
            let outcome = try negotiation.receiveOffer(SDPTests.offer(lines, version: round))
            #expect(outcome.sections.map(\.mid) == sections.map(\.mid))
            #expect(!outcome.iceRestarted)
            let answer = try negotiation.makeAnswer()
            #expect(answer.sections.map { !$0.isRejected } == sections.map { !$0.dead })
            let parsed = try SessionDescription(parsing: answer.text)
            #expect(parsed.sections.map { $0.attributes.first("mid") } == sections.map(\.mid))
            #expect(parsed.origin.version == String(round))
        }
        #expect(sections.count < 31)
    }

    @Test("D3: 30 renegotiations by the server with changing streams keep the unchanged ones where they are")
    func thirtyPushed() throws {
        var random = RandomSource(seed: 4)
        var negotiation = makeNegotiation()
        var sending: [LocalSending] = []
        var home: [String: String] = [:]
        for round in 1...30 {
            sending.removeAll { _ in random.next() % 3 == 0 }
            sending.append(SDPTests.stream(random.next() % 2 == 0 ? .audio : .video, UInt32(round)))
            let mids = try push(&negotiation, sending).mids
            #expect(Set(mids).count == mids.count)
            let now = Dictionary(uniqueKeysWithValues: zip(sending.map(\.trackID), mids))
            for (track, mid) in now { #expect(home[track] == nil || home[track] == mid) }
            home = now
            #expect(
                negotiation.currentSending.mapValues(\.trackID)
                    == Dictionary(uniqueKeysWithValues: zip(mids, sending.map(\.trackID))))
        }
    }

    @Test("Sections may not disappear, move or change kind")
    func continuity() throws {
        let base = [audioSection("0", "sendonly"), videoSection("1", "sendonly")]
        let cases: [([[String]], NegotiationError)] = [
            ([base[0]], NegotiationError(.sectionRemoved)),
            ([base[1], base[0]], NegotiationError(.sectionReplaced, .section(0, mid: "1"))),
            ([base[0], audioSection("1", "sendonly")], NegotiationError(.sectionReplaced, .section(1, mid: "1"))),
            ([base[0], videoSection("2", "sendonly")], NegotiationError(.sectionReplaced, .section(1, mid: "2"))),
        ]
        var negotiation = makeNegotiation()
        _ = try negotiation.receiveOffer(offer(base))
        _ = try negotiation.makeAnswer()
        for (sections, error) in cases {
            #expect(throws: error) { try negotiation.receiveOffer(offer(sections)) }
            #expect(negotiation.state == .stable)
        }
        #expect(try negotiation.receiveOffer(offer(base + [videoSection("2", "sendonly")])).sections.count == 3)
    }

    @Test("What was sent is listed, continues where it is named again, and ends where it is not")
    func continuedStreams() throws {
        var negotiation = makeNegotiation()
        _ = try negotiation.receiveOffer(offer([videoSection("0", "recvonly"), videoSection("1", "recvonly")]))
        _ = try negotiation.makeAnswer(["0": SectionAnswer(sending: stream(1)), "1": SectionAnswer(sending: stream(2))])
        let again = offer(
            [videoSection("0", "recvonly"), videoSection("1", "recvonly"), videoSection("2", "recvonly")], version: 2)
        let outcome = try negotiation.receiveOffer(again)
        #expect(outcome.sections.map { $0.sending?.trackID } == ["track1", "track2", nil])
        // 2 stays, 3 takes what 1 leaves, and 1 itself may not come back there.
        var old = stream(1)
        old.ssrc = 77
        let (placed, unplaced) = negotiation.place([stream(2), old, stream(3)])
        #expect(placed.mapValues(\.trackID) == ["1": "track2", "2": "track1", "0": "track3"])
        #expect(unplaced.isEmpty)
        _ = try negotiation.makeAnswer(["1": SectionAnswer(sending: stream(2))])
        #expect(negotiation.currentSending.mapValues(\.trackID) == ["1": "track2"])
    }

    @Test("With both sides offering on one connection, payload types and ids stay the same")
    func bothSides() throws {
        var negotiation = makeNegotiation()
        _ = try negotiation.receiveOffer(try Vectors.text("whip_chromium_vp8_sim3.offer"))
        let published = try negotiation.makeAnswer()
        let pushed = try negotiation.makeOffer(sending: [stream(9)])
        #expect(pushed.mids == ["2"])
        // What is received goes on, layers included, with the numbers that the client chose.
        #expect(
            pushed.text.section(0).filter { $0.hasPrefix("a=rid") || $0.hasPrefix("a=simulcast") }
                == published.text.section(0).filter { $0.hasPrefix("a=rid") || $0.hasPrefix("a=simulcast") })
        #expect(pushed.text.section(0).contains("a=recvonly"))
        let section = pushed.text.section(2)
        #expect(section[0].hasSuffix("SAVPF 96 97"))
        #expect(section.contains("a=extmap:9 \(ExtensionURI.mid)"))
        #expect(section.contains("a=extmap:3 \(ExtensionURI.videoOrientation)"))
        let accepted = try negotiation.receiveAnswer(
            OfferMakingTests.answer(to: pushed.text, ufrag: "ZSIY").replacing("a=rid:q recv", "a=rid:q send")
                .sdpLines.map { $0.hasPrefix("a=fingerprint") ? published.fingerprintOfClient : $0 }
                .joined(separator: "\r\n"))
        #expect(accepted.sections[2].sending?.formats.map(\.payloadType) == [96])
        #expect(accepted.sections[0].receiving?.formats.map(\.payloadType) == [96])
    }

    @Test("A stream that continues keeps its payload types, whoever assigned them")
    func payloadTypesStay() throws {
        let stereo = NegotiatedFormat(
            codec: .opus, clockRateHz: 48000, channels: 2, parameters: FormatParameters(parsing: "stereo=1"))
        let music = SDPTests.stream(.audio, 1, formats: [stereo])
        var negotiation = makeNegotiation()
        _ = try negotiation.receiveOffer(try Vectors.text("chromium156_recvonly_av"))
        let answer = try negotiation.makeAnswer(["0": SectionAnswer(sending: music)]).text.section(0)
        let vp9 = NegotiatedFormat(
            codec: .vp9, clockRateHz: 90000, parameters: FormatParameters(parsing: "profile-id=0"), variant: "0")
        let pushed = try negotiation.makeOffer(sending: [music, SDPTests.stream(.video, 2, formats: [vp9])])
        #expect(pushed.mids == ["0", "1"], "the client's free section is used")
        #expect(pushed.text.section(0).filter { $0.hasPrefix("a=fmtp") } == answer.filter { $0.hasPrefix("a=fmtp") })
        #expect(pushed.text.section(1)[0].hasSuffix("SAVPF 98 99"), "the client has these numbers for VP9")
    }

    @Test("D3: glare is an error, and so is a second offer; the first still waits, for one answer")
    func glare() throws {
        var negotiation = makeNegotiation()
        let mine = try negotiation.makeOffer(sending: [stream(1)])
        #expect(throws: NegotiationError(.glare)) {
            try negotiation.receiveOffer(offer([audioSection("0", "sendonly")]))
        }
        #expect(throws: NegotiationError(.offerPending)) { try negotiation.makeOffer(sending: []) }
        #expect(negotiation.state == .haveLocalOffer && negotiation.currentSending.isEmpty)
        let answer = OfferMakingTests.answer(to: mine.text)
        _ = try negotiation.receiveAnswer(answer)
        #expect(negotiation.state == .stable && negotiation.currentSending.count == 1)
        #expect(throws: NegotiationError(.noPendingOffer)) { try negotiation.receiveAnswer(answer) }
    }

    @Test("An offer that is withdrawn from a client which may have taken it leaves its sections to the next one")
    func withdrawn() throws {
        var negotiation = makeNegotiation()
        try push(&negotiation, [stream(1)])
        _ = try negotiation.makeOffer(sending: [stream(1), SDPTests.stream(.audio, 2), stream(3)])
        negotiation.withdrawOffer()
        #expect(negotiation.state == .stable)
        let next = try negotiation.makeOffer(sending: [stream(1), stream(4)])
        #expect(next.mids == ["0", "2"])
        #expect(next.text.section(1)[0].hasPrefix("m=audio"))
        #expect(next.text.section(1).contains("a=mid:1") && next.text.section(1).contains("a=inactive"))
        let accepted = try negotiation.receiveAnswer(OfferMakingTests.answer(to: next.text))
        #expect(accepted.sections.map { $0.sending?.local.trackID } == ["track1", nil, "track4"])
    }

    @Test("A remote offer may be forgotten or replaced before it is answered")
    func replaced() throws {
        var negotiation = makeNegotiation()
        _ = try negotiation.receiveOffer(offer([audioSection("0", "sendonly")]))
        negotiation.withdrawOffer()
        _ = try negotiation.receiveOffer(offer([videoSection("v", "sendonly")]))
        _ = try negotiation.receiveOffer(offer([videoSection("w", "sendonly")]))
        #expect(try negotiation.makeAnswer().sections.map(\.mid) == ["w"])
    }
}

extension AnswerOutcome {
    /// The fingerprint line of the captured publisher.
    fileprivate var fingerprintOfClient: String {
        "a=fingerprint:sha-256 AA:74:3D:81:B1:3B:6A:4A:07:48:66:12:D3:BC:D9:3D:8E:F9:AB:3D:3D:0B:94:BC:97:1F:67:3A:E0:19:9F:CC"
    }
}
