import SDP
import Testing

@Suite("Server offers")
struct OfferMakingTests {
    private let opus = NegotiatedFormat(
        codec: .opus, clockRateHz: 48000, channels: 2,
        parameters: FormatParameters(parsing: "minptime=10;useinbandfec=1"))
    private let vp8 = NegotiatedFormat(codec: .vp8, clockRateHz: 90000)

    /// What a browser that takes everything answers: the same formats, received.
    static func answer(to offer: String, setup: String = "active", ufrag: String = "cli1") -> String {
        offer.sdpLines.compactMap { line in
            switch line {
            case "a=sendonly": "a=recvonly"
            case "a=recvonly": "a=sendonly"
            case "a=setup:actpass": "a=setup:" + setup
            case "a=ice-lite": nil
            case _ where line.hasPrefix("a=ice-ufrag:"): "a=ice-ufrag:" + ufrag
            case _ where line.hasPrefix("a=msid:") || line.hasPrefix("a=ssrc") || line.hasPrefix("a=candidate"): nil
            default: line
            }
        }.joined(separator: "\r\n") + "\r\n"
    }

    @Test("An offer names one codec with its retransmissions, streams and SSRCs, and is bundled")
    func offer() throws {
        var negotiation = makeNegotiation()
        let offer = try negotiation.makeOffer(sending: [
            stream(.audio, 1, formats: [opus]), stream(.video, 2, formats: [vp8]),
        ])
        #expect(offer.mids == ["0", "1"])
        #expect(negotiation.state == .haveLocalOffer)
        let lines = offer.text.sdpLines
        #expect(lines.contains("a=group:BUNDLE 0 1"))
        #expect(lines.contains("a=ice-lite"))
        #expect(lines.filter { $0 == "a=setup:actpass" }.count == 2)
        let audio = offer.text.section(0)
        #expect(audio[0] == "m=audio 7900 UDP/TLS/RTP/SAVPF 111")
        #expect(audio.contains("a=msid:stream1 track1"))
        #expect(!audio.contains { $0.hasPrefix("a=extmap") && $0.contains("video") })
        let video = offer.text.section(1)
        #expect(video[0] == "m=video 7900 UDP/TLS/RTP/SAVPF 96 97")
        #expect(video.contains("a=fmtp:97 apt=96"))
        #expect(video.contains("a=ssrc-group:FID 20 21"))
        #expect(video.contains("a=ssrc:21 msid:stream2 track2"))
        let ids = lines.filter { $0.hasPrefix("a=extmap:") }.map { $0.dropFirst(9) }
        let byID = Dictionary(grouping: ids) { $0.split(separator: " ")[0] }
        #expect(byID.allSatisfy { Set($0.value).count == 1 }, "an id means one thing in a bundle")
    }

    @Test("RED is offered beside its Opus, in the publisher's order")
    func red() throws {
        let red = NegotiatedFormat(
            codec: .red, clockRateHz: 48000, channels: 2, parameters: FormatParameters(parsing: "63/63"))
        for formats in [[red, opus], [opus, red]] {
            var negotiation = makeNegotiation()
            let section = try negotiation.makeOffer(sending: [stream(.audio, 1, formats: formats)]).text.section(0)
            #expect(section[0].hasSuffix(formats[0].codec == .red ? "SAVPF 112 111" : "SAVPF 111 112"))
            #expect(section.contains("a=fmtp:112 111/111"))
            #expect(section.contains("a=rtpmap:112 red/48000/2"))
        }
    }

    @Test("Different parameters get different payload types, equal ones share one")
    func payloadTypes() throws {
        var stereo = opus
        stereo.parameters["stereo"] = "1"
        var negotiation = makeNegotiation()
        let sending = [opus, stereo, opus].enumerated().map {
            stream(.audio, UInt32($0.offset + 1), formats: [$0.element])
        }
        let text = try negotiation.makeOffer(sending: sending).text
        #expect((0..<3).map { text.section($0)[0].split(separator: " ").last } == ["111", "96", "111"])
    }

    @Test("For an unknown publisher all formats that the policy allows are offered")
    func unknownPublisher() throws {
        var negotiation = makeNegotiation { $0.video.allowed = [.h264, .vp8] }
        let section = try negotiation.makeOffer(sending: [stream(.video, 1)]).text.section(0)
        let maps = section.filter { $0.hasPrefix("a=rtpmap") && !$0.contains("rtx") }
        #expect(maps.first?.hasSuffix("H264/90000") ?? false)
        #expect(maps.last?.hasSuffix("VP8/90000") ?? false)
        #expect(section.contains { $0.contains("packetization-mode=1;profile-level-id=42e01f") })
    }

    @Test("A8: plain baseline is offered beside constrained baseline, because some clients list only that")
    func baseline() throws {
        var publisher = makeNegotiation()
        let sends = try publisher.receiveOffer(try Vectors.text("ffmpeg9_whip_offer")).sections[1].remoteSends
        var negotiation = makeNegotiation()
        let offer = try negotiation.makeOffer(sending: [stream(.video, 1, formats: sends?.formats)])
        let parameters = offer.text.section(0).filter { $0.contains("profile-level-id") }
        #expect(parameters.count == 2 && parameters[0].contains("420016") && parameters[1].contains("42e016"))
        let answer = Self.answer(to: offer.text).sdpLines
            .filter { !$0.contains(":102 ") && !$0.contains("apt=102") }
            .map { $0.hasPrefix("m=video") ? "m=video 9 UDP/TLS/RTP/SAVPF 96 97" : $0 }
        let accepted = try negotiation.receiveAnswer(answer.joined(separator: "\r\n"))
        #expect(accepted.sections[0].sending?.formats.map(\.payloadType) == [96])
        #expect(accepted.sections[0].sending?.formats.map(\.variant) == ["baseline/1"])
    }

    @Test("What is still sent though the policy has ceased to allow it has a readable section, and is refused alone")
    func formerCodec() throws {
        let sending = [stream(.audio, 1, formats: [opus]), stream(.video, 2, formats: [vp8])]
        var negotiation = makeNegotiation { $0.video.allowed = [.h264] }
        let offer = try negotiation.makeOffer(sending: sending).text
        #expect(offer.section(1)[0] == "m=video 7900 UDP/TLS/RTP/SAVPF 96 97")
        let accepted = try negotiation.receiveAnswer(Self.answer(to: offer))
        #expect(accepted.sections.map { $0.sending?.local.trackID } == ["track1", nil])
        #expect(accepted.sections[1].refusal == .noCommonCodec)
        // RED without its Opus is nothing to offer either.
        let red = NegotiatedFormat(
            codec: .red, clockRateHz: 48000, channels: 2, parameters: FormatParameters(parsing: "63/63"))
        var redundant = makeNegotiation { $0.audio.allowed = [.red] }
        let both = try redundant.makeOffer(sending: [stream(.audio, 1, formats: [opus, red])]).text.section(0)
        #expect(both[0] == "m=audio 7900 UDP/TLS/RTP/SAVPF 111 112")
    }

    @Test("An answer gives formats, extensions and feedback of every section, and the transport")
    func answer() throws {
        var negotiation = makeNegotiation()
        let offer = try negotiation.makeOffer(sending: [stream(.video, 1, formats: [vp8])])
        let answer = Self.answer(to: offer.text).sdpLines.filter {
            !$0.contains("playout-delay") && !$0.contains("ccm fir")
        }
        let accepted = try negotiation.receiveAnswer(answer.joined(separator: "\r\n"))
        #expect(negotiation.state == .stable)
        #expect(accepted.transport?.iceUfrag == "cli1")
        #expect(accepted.transport?.localSetup == .passive)
        let sending = try #require(accepted.sections[0].sending)
        #expect(sending.formats.map(\.payloadType) == [96])
        #expect(sending.formats.map(\.rtxPayloadType) == [97])
        #expect(sending.feedback == [.nack, .pli, .transportCC, .receiverReferenceTime])
        #expect(sending.extensions.contains { $0.uri == ExtensionURI.videoOrientation })
        #expect(!sending.extensions.contains { $0.uri == ExtensionURI.playoutDelay })
        #expect(negotiation.currentSending["0"]?.trackID == "track1")
    }

    @Test("A browser's answer is read: two received sections, one that only sends, names of all codecs")
    func realAnswer() throws {
        var negotiation = makeNegotiation()
        let offer = try negotiation.makeOffer(sending: [
            stream(.audio, 1, formats: [opus]), stream(.video, 2, formats: [vp8]), stream(.video, 3),
        ])
        #expect(offer.mids == ["0", "1", "2"])
        let answer = try Vectors.text("chromium156_answer").components(prefix: "m=").dropLast().joined()
        let accepted = try negotiation.receiveAnswer(answer.replacing("a=group:BUNDLE", "a=group:BUNDLE 0 1 2"))
        #expect(accepted.sections.map { $0.sending?.formats.map(\.payloadType) } == [[111], [96], nil])
        #expect(accepted.sections[2].refusal == .notWantedByRemote)
        #expect(accepted.transport?.localSetup == .passive)
        #expect(accepted.transport?.candidates.isEmpty == false)
    }

    @Test("Rejected and refused sections are distinguished")
    func rejections() throws {
        var negotiation = makeNegotiation()
        let offer = try negotiation.makeOffer(sending: (1...3).map { stream(.video, $0, formats: [vp8]) })
        var sections = Self.answer(to: offer.text).components(prefix: "m=")
        sections[1] = sections[1].replacing("m=video 7900", "m=video 0")
        sections[2] = sections[2].replacing("a=recvonly", "a=inactive")
        let accepted = try negotiation.receiveAnswer(sections.joined())
        #expect(accepted.sections.map(\.refusal) == [.noCommonCodec, .notWantedByRemote, nil])
        #expect(accepted.sections.map(\.isRejected) == [true, false, false])
        #expect(Set(negotiation.currentSending.keys) == ["2"])
        // What was taken once and is stopped later is another matter.
        let again = try negotiation.makeOffer(sending: [stream(.video, 3, formats: [vp8])])
        sections = Self.answer(to: again.text).components(prefix: "m=")
        sections[3] = sections[3].replacing("m=video 7900", "m=video 0")
        #expect(try negotiation.receiveAnswer(sections.joined()).sections[2].refusal == .rejectedByRemote)
    }

    @Test("Answers that do not match the offer are refused and leave it pending")
    func misfits() throws {
        var negotiation = makeNegotiation()
        #expect(throws: NegotiationError(.noPendingOffer)) { try negotiation.receiveAnswer("v=0") }
        let offer = try negotiation.makeOffer(sending: [stream(.audio, 1), stream(.video, 2)])
        let good = Self.answer(to: offer.text)
        let cases: [(String, NegotiationError.Code)] = [
            (good.replacing("a=mid:1", "a=mid:9"), .sectionsMismatch),
            (good.components(prefix: "m=").prefix(2).joined(), .sectionsMismatch),
            (good.replacing("m=video", "m=audio"), .sectionsMismatch),
            (good.replacing("a=group:BUNDLE 0 1", "a=group:BUNDLE 0"), .bundleRequired),
            (Self.answer(to: offer.text, setup: "actpass"), .invalidSetup),
            (good.replacing("s=-", "s=-\r\na=ice-lite"), .iceLitePeer),
        ]
        for (text, code) in cases {
            #expect { try negotiation.receiveAnswer(text) } throws: { ($0 as? NegotiationError)?.code == code }
            #expect(negotiation.state == .haveLocalOffer)
        }
        _ = try negotiation.receiveAnswer(good)
    }

    @Test("Names from applications cannot inject lines")
    func injection() throws {
        var sending = stream(.audio, 1)
        sending.trackID = "x\r\na=evil:1"
        sending.streamID = "two words"
        sending.cname = ""
        var negotiation = makeNegotiation()
        let text = try negotiation.makeOffer(sending: [sending]).text
        #expect(!text.sdpLines.contains("a=evil:1"))
        #expect(text.sdpLines.contains("a=msid:two_words x__a=evil:1"))
    }

    @Test("A connection has room for the sections of a full meeting and no more")
    func limit() throws {
        var negotiation = makeNegotiation()
        #expect(throws: NegotiationError(.noSections)) { try negotiation.makeOffer(sending: []) }
        let all = (1...257).map { stream(.audio, UInt32($0), formats: [opus]) }
        #expect(throws: NegotiationError(.tooManyOwnSections)) { try negotiation.makeOffer(sending: all) }
        #expect(negotiation.state == .stable && negotiation.fitting(all) == Array(all.dropLast()))
        #expect(try negotiation.makeOffer(sending: Array(all.dropLast())).mids.count == 256)
    }
}

extension String {
    /// Splits before each line that starts with `prefix`; the first piece is what stands before.
    func components(prefix: String) -> [String] {
        var parts = [""]
        for line in sdpLines {
            if line.hasPrefix(prefix) { parts.append("") }
            parts[parts.count - 1] += line + "\r\n"
        }
        return parts
    }

    func replacing(_ old: String, _ new: String) -> String {
        sdpLines.map { $0.hasPrefix(old) ? new + $0.dropFirst(old.count) : $0 }.joined(separator: "\r\n") + "\r\n"
    }
}
