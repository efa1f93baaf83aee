import Primitives
import SDP
import Testing

@Suite("Answers")
struct AnswerTests {
    /// Opus behind everything that browsers and old clients put around it.
    private let browserAudio = [
        "m=audio 9 UDP/TLS/RTP/SAVPF 103 104 0 9 111 8 126", "a=mid:0", "a=sendrecv", "a=rtpmap:103 ISAC/16000",
        "a=rtpmap:104 ISAC/32000", "a=rtpmap:0 PCMU/8000", "a=rtpmap:9 G722/8000", "a=rtpmap:111 opus/48000/2",
        "a=fmtp:111 minptime=10; useinbandfec=1", "a=rtpmap:8 PCMA/8000", "a=rtpmap:126 telephone-event/8000",
    ]

    @Test("A1, A2: Opus is chosen wherever it is listed; iSAC and the others are dropped, payload types stay")
    func opusFirst() throws {
        var negotiation = makeNegotiation()
        let outcome = try negotiation.receiveOffer(offer([browserAudio]))
        #expect(outcome.sections[0].remoteSends?.formats.map(\.codec) == [.opus])
        let answer = try negotiation.makeAnswer().text.section(0)
        #expect(answer[0] == "m=audio 7900 UDP/TLS/RTP/SAVPF 111")
        #expect(answer.filter { $0.hasPrefix("a=rtpmap") } == ["a=rtpmap:111 opus/48000/2"])
        #expect(answer.contains("a=fmtp:111 minptime=10;useinbandfec=1"))
    }

    @Test(
        "A1: the room's policy decides between Opus and RED",
        arguments: [[CodecName.opus, .red], [.red, .opus], [.opus]])
    func red(_ allowed: [CodecName]) throws {
        var negotiation = makeNegotiation { $0.audio.allowed = allowed }
        _ = try negotiation.receiveOffer(try Vectors.text("chromium156_red_first"))
        let types = allowed.map { $0 == .opus ? "111" : "63" }.joined(separator: " ")
        #expect(try negotiation.makeAnswer().text.section(0)[0] == "m=audio 7900 UDP/TLS/RTP/SAVPF \(types)")
    }

    @Test("A3: stereo, bitrate and packet time of the publisher are in every subscriber's description")
    func music() throws {
        var section = audioSection("0", "sendonly")
        section[4] = "a=fmtp:111 minptime=10;stereo=1;sprop-stereo=1;maxaveragebitrate=128000;ptime=10"
        var publisher = makeNegotiation()
        let outcome = try publisher.receiveOffer(offer([section + ["a=ptime:10"]]))
        let sends = try #require(outcome.sections[0].remoteSends)
        #expect(sends.packetTime == 10)
        let echo = try publisher.makeAnswer().text.section(0)
        #expect(echo.contains("a=fmtp:111 minptime=10;stereo=1;maxaveragebitrate=128000;ptime=10"))
        var sending = stream(.audio, 7, formats: sends.formats)
        sending.packetTime = sends.packetTime

        var viewer = makeNegotiation()
        _ = try viewer.receiveOffer(offer([audioSection("0", "recvonly")]))
        let whep = try viewer.makeAnswer(["0": SectionAnswer(sending: sending)]).text.section(0)
        var member = makeNegotiation()
        let pushed = try member.makeOffer(sending: [sending]).text.section(0)
        for lines in [whep, pushed] {
            let parameters = try #require(lines.first { $0.hasPrefix("a=fmtp:111") })
            for part in ["minptime=10", "stereo=1", "sprop-stereo=1", "maxaveragebitrate=128000", "ptime=10"] {
                #expect(parameters.contains(part))
            }
            #expect(lines.contains("a=ptime:10"))
        }
    }

    @Test("Of a publisher's parameters only those that its codec has, in their form, stand in others' descriptions")
    func foreignParameters() throws {
        var audio = audioSection("0", "sendonly")
        audio[4] =
            "a=fmtp:111 useinbandfec=yes;minptime=10;maxplaybackrate=4294967296;stereo=1;x=1\u{2028}a=inactive;usedtx"
        let video = [
            "m=video 9 UDP/TLS/RTP/SAVPF 102", "a=mid:1", "a=sendonly", "a=rtpmap:102 H264/90000",
            "a=fmtp:102 level-asymmetry-allowed=maybe;packetization-mode=1;profile-level-id=42e01f",
        ]
        var publisher = makeNegotiation()
        let outcome = try publisher.receiveOffer(offer([audio, video]))
        var sending: [LocalSending] = []
        for (index, section) in outcome.sections.enumerated() {
            let formats = try #require(section.remoteSends).formats
            sending.append(stream(index == 0 ? .audio : .video, UInt32(index + 1), formats: formats))
        }
        var member = makeNegotiation()
        let pushed = try member.makeOffer(sending: sending).text.sdpLines
        var viewer = makeNegotiation()
        _ = try viewer.receiveOffer(offer([audioSection("0", "recvonly")]))
        let played = try viewer.makeAnswer(["0": SectionAnswer(sending: sending[0])]).text.sdpLines
        #expect(pushed.contains("a=fmtp:111 minptime=10;stereo=1"))
        #expect(pushed.contains("a=fmtp:102 packetization-mode=1;profile-level-id=42e01f"))
        #expect(played.contains("a=fmtp:111 minptime=10;useinbandfec=1;stereo=1"), "\(played)")
    }

    @Test("A3: stereo of which the publisher's offer says nothing is asked for, and subscribers learn it")
    func unwrittenStereo() throws {
        var publisher = makeNegotiation()
        _ = try publisher.receiveOffer(offer([audioSection("0", "sendonly"), audioSection("1", "sendonly")]))
        var stereo = SectionAnswer()
        stereo.takesStereo = true
        let answer = try publisher.makeAnswer(["0": stereo])
        #expect(answer.text.section(0).contains("a=fmtp:111 minptime=10;useinbandfec=1;stereo=1"))
        #expect(answer.text.section(1).contains("a=fmtp:111 minptime=10;useinbandfec=1"))
        let formats = try #require(answer.sections[0].receiving).formats
        var member = makeNegotiation()
        let pushed = try member.makeOffer(sending: [stream(.audio, 7, formats: formats)]).text.section(0)
        #expect(pushed.contains { $0.hasPrefix("a=fmtp:111") && $0.contains("sprop-stereo=1") })
    }

    @Test("G7: DTX is asked for where the caller says so, of Opus alone, and subscribers are offered what they were")
    func discontinuousTransmission() throws {
        var publisher = makeNegotiation()
        _ = try publisher.receiveOffer(
            offer([audioSection("0", "sendonly"), audioSection("1", "sendonly"), audioSection("2", "recvonly")]))
        var quiet = SectionAnswer()
        quiet.asksForDTX = true
        let answer = try publisher.makeAnswer(["0": quiet, "2": quiet])
        #expect(answer.text.section(0).contains("a=fmtp:111 minptime=10;useinbandfec=1;usedtx=1"))
        #expect(!answer.text.section(1).contains { $0.contains("usedtx") })
        #expect(!answer.text.section(2).contains { $0.contains("usedtx") }, "nothing is received there")
        let formats = try #require(answer.sections[0].receiving).formats
        var member = makeNegotiation()
        let pushed = try member.makeOffer(sending: [stream(.audio, 7, formats: formats)]).text
        #expect(!pushed.contains("usedtx"))
    }

    @Test("A9: a room that prefers H.264 gets it from a client that lists VP8 first")
    func preference() throws {
        let text = try Vectors.text("chromium156_sendrecv_av")
        for (order, codec) in [
            (NegotiationPolicy.Codecs.init([.h264, .vp8], order: .policy), CodecName.h264),
            (.init([.h264, .vp8], order: .offer), .vp8),
        ] {
            var negotiation = makeNegotiation { $0.video = order }
            let outcome = try negotiation.receiveOffer(text)
            #expect(outcome.sections[1].remoteSends?.formats.map(\.codec) == [codec])
        }
    }

    @Test("B12: an H.264-only publisher is accepted by a room that prefers VP8, and refused by one without H.264")
    func h264Only() throws {
        let text = offer([h264Section("0", "sendonly", ["42e01f/1"])])
        var lenient = makeNegotiation { $0.video = .init([.vp8, .h264], order: .policy) }
        #expect(try lenient.receiveOffer(text).sections[0].remoteSends?.formats.map(\.codec) == [.h264])
        var strict = makeNegotiation { $0.video = .init([.vp8], order: .policy) }
        #expect(try strict.receiveOffer(text).sections[0].refusal == .noCommonCodec)
    }

    @Test("D11: sendrecv audio and recvonly video in one offer")
    func receiveBothSendAudio() throws {
        var negotiation = makeNegotiation()
        let outcome = try negotiation.receiveOffer(
            offer([audioSection("a", "sendrecv"), videoSection("v", "recvonly")]))
        #expect(outcome.sections.map { $0.remoteSends != nil } == [true, false])
        #expect(outcome.sections.map(\.remoteReceives) == [true, true])
        let (placed, unplaced) = negotiation.place([stream(.video, 1), stream(.audio, 2), stream(.video, 3)])
        #expect(unplaced.map(\.trackID) == ["track3"])
        let answer = try negotiation.makeAnswer(placed.mapValues { SectionAnswer(sending: $0) })
        #expect(answer.sections.map(\.direction) == [.sendrecv, .sendonly])
        #expect(answer.text.section(0).contains("a=sendrecv"))
        #expect(answer.text.section(1).contains("a=ssrc-group:FID 10 11"))
        #expect(Set(negotiation.currentSending.keys) == ["a", "v"])
    }

    @Test(
        "Directions mirror the offer within what the caller allows",
        arguments: [
            ("sendrecv", false, Direction.recvonly), ("sendrecv", true, .sendrecv), ("sendonly", true, .recvonly),
            ("recvonly", true, .sendonly), ("recvonly", false, .inactive), ("inactive", true, .inactive),
        ])
    func directions(_ offered: String, _ sends: Bool, _ direction: Direction) throws {
        var negotiation = makeNegotiation()
        _ = try negotiation.receiveOffer(offer([videoSection("0", offered)]))
        let answer = try negotiation.makeAnswer(["0": SectionAnswer(sending: sends ? stream(.video, 1) : nil)])
        #expect(answer.sections[0].direction == direction)
        #expect(answer.text.section(0).contains("a=\(direction)"))
        #expect(answer.sections[0].refusal == (sends && !direction.sends ? .notWantedByRemote : nil))
    }

    @Test("Inactive placeholders echo the extensions that a later simulcast section needs")
    func placeholders() throws {
        let section =
            videoSection("0", "recvonly") + [
                "a=extmap:10 \(ExtensionURI.rid)", "a=extmap:11 \(ExtensionURI.repairedRID)",
            ]
        var negotiation = makeNegotiation()
        _ = try negotiation.receiveOffer(offer([section]))
        let answer = try negotiation.makeAnswer().text.section(0)
        #expect(answer.contains("a=inactive"))
        for line in [
            "a=extmap:4 \(ExtensionURI.mid)", "a=extmap:10 \(ExtensionURI.rid)",
            "a=extmap:11 \(ExtensionURI.repairedRID)",
        ] {
            #expect(answer.contains(line))
        }
    }

    @Test("B13: a cap is signalled as AS and TIAS; without a cap there is neither")
    func cap() throws {
        var negotiation = makeNegotiation()
        _ = try negotiation.receiveOffer(offer([videoSection("0", "sendonly"), audioSection("1", "sendonly")]))
        var answer = SectionAnswer()
        answer.maximumBitrate = Bitrate(bitsPerSecond: 1_440_000)
        let text = try negotiation.makeAnswer(["0": answer]).text
        #expect(Array(text.section(0)[2...3]) == ["b=AS:1440", "b=TIAS:1440000"])
        #expect(!text.section(1).contains { $0.hasPrefix("b=") })
    }

    @Test("The caller may refuse a section or its media, or choose its codec")
    func choices() throws {
        var negotiation = makeNegotiation()
        let text = try Vectors.text("chromium156_sendrecv_av")
        _ = try negotiation.receiveOffer(text)
        var audio = SectionAnswer()
        audio.rejects = true
        var video = SectionAnswer()
        video.codecs = [.vp9]
        let answer = try negotiation.makeAnswer(["0": audio, "1": video])
        #expect(answer.sections[0].refusal == .refusedByPolicy)
        #expect(answer.sections[1].receiving?.formats.map(\.codec) == [.vp9])
        #expect(answer.text.sdpLines.contains("a=group:BUNDLE 1"))
        #expect(answer.text.section(1).contains("a=end-of-candidates"), "candidates stand in the first section in use")

        _ = try negotiation.receiveOffer(text)
        var deaf = SectionAnswer()
        deaf.receives = false
        #expect(try negotiation.makeAnswer(["1": deaf]).sections[1].direction == .inactive)
        #expect(throws: NegotiationError(.noPendingOffer)) { try negotiation.makeAnswer() }
        _ = try negotiation.receiveOffer(text)
        #expect(throws: NegotiationError(.unknownMid, .mid("x"))) { try negotiation.makeAnswer(["x": SectionAnswer()]) }
    }

    @Test("An answer contains one codec unless the policy allows all")
    func allCodecs() throws {
        var negotiation = makeNegotiation { $0.answersAllCodecs = true }
        _ = try negotiation.receiveOffer(try Vectors.text("chromium156_sendrecv_av"))
        let section = try negotiation.makeAnswer().sections[1]
        #expect(Set(section.receiving?.formats.map(\.codec) ?? []) == [.vp8, .vp9, .h264, .av1])
    }

    @Test("Pion and webrtc-rs offer every codec that they know: each is answered, unless that of the track is known")
    func everyCodecOfPion() throws {
        let section = [
            "m=video 9 UDP/TLS/RTP/SAVPF 96 102 104 98", "a=mid:0", "a=sendonly", "a=rtpmap:96 VP8/90000",
            "a=rtcp-fb:96 nack ", "a=rtcp-fb:96 nack pli", "a=rtpmap:102 H264/90000",
            "a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f",
            "a=rtpmap:104 H264/90000",
            "a=fmtp:104 level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=42001f",
            "a=rtpmap:98 VP9/90000", "a=fmtp:98 profile-id=0",
        ]
        var negotiation = makeNegotiation()
        let outcome = try negotiation.receiveOffer(offer([section]))
        #expect(outcome.sections[0].remoteSends?.formats.map(\.payloadType) == [96, 102, 98])
        let answer = try negotiation.makeAnswer()
        #expect(answer.sections[0].receiving?.formats.map(\.payloadType) == [96, 102, 98])
        #expect(answer.text.section(0)[0].hasSuffix("SAVPF 96 102 98"))

        _ = try negotiation.receiveOffer(offer([section]))
        var announced = SectionAnswer()
        announced.codecs = [.h264, .vp8]
        let known = try negotiation.makeAnswer(["0": announced])
        #expect(known.sections[0].receiving?.formats.map(\.payloadType) == [102])
    }

    @Test("Both directions of one section may use different codecs")
    func sendsAnotherCodec() throws {
        let section = [
            "m=video 9 UDP/TLS/RTP/SAVPF 96 98", "a=mid:0", "a=sendrecv", "a=rtpmap:96 VP8/90000",
            "a=rtpmap:98 VP9/90000",
        ]
        var negotiation = makeNegotiation()
        _ = try negotiation.receiveOffer(offer([section]))
        let vp9 = NegotiatedFormat(codec: .vp9, clockRateHz: 90000, variant: "0")
        let answer = try negotiation.makeAnswer(["0": SectionAnswer(sending: stream(.video, 1, formats: [vp9]))])
        #expect(answer.text.section(0)[0].hasSuffix("SAVPF 96 98"))
        #expect(answer.sections[0].receiving?.formats.map(\.payloadType) == [96, 98])
        #expect(answer.sections[0].sending?.formats.map(\.payloadType) == [98])
    }
}
