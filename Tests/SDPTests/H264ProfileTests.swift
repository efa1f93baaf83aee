import SDP
import Testing

@Suite("H.264 profiles and codec variants")
struct H264ProfileTests {
    @Test(
        "profile-level-id gives the profile by profile_idc and constraint flags (RFC 6184 table 5)",
        arguments: [
            ("42e01f", .constrainedBaseline), ("42E01F", .constrainedBaseline), ("42c016", .constrainedBaseline),
            ("4d8020", .constrainedBaseline), ("58c01e", .constrainedBaseline), ("42001f", .baseline),
            ("420016", .baseline), ("58800d", .baseline), ("4d001f", .main), ("4d401f", .main), ("64001f", .high),
            ("640c1f", .constrainedHigh), ("f4001f", nil), ("6e001f", nil), ("64101f", nil), ("420f1f", nil),
            ("42e01", nil), ("42e01f0", nil), ("+2e01f", nil), ("xyzabc", nil), ("", nil),
        ] as [(String, H264Profile?)])
    func profiles(_ id: String, _ profile: H264Profile?) {
        #expect(H264Profile(profileLevelID: id) == profile)
    }

    @Test("FFmpeg's seven digits for constrained baseline are read as that, and corrected for subscribers")
    func ffmpegConstrainedBaseline() throws {
        var negotiation = makeNegotiation()
        let outcome = try negotiation.receiveOffer(offer([h264Section("0", "sendonly", ["422001f/1"])]))
        let format = try #require(outcome.sections[0].remoteSends?.formats.first)
        #expect(format.variant == "baseline/1")
        #expect(format.parameters["profile-level-id"] == "42401f")
        #expect(try negotiation.makeAnswer().text.contains("profile-level-id=42401f"))
        // Subscribers read it as any other (RFC 6184 table 5).
        #expect(H264Profile(profileLevelID: "42401f") == .constrainedBaseline)
    }

    /// What a subscriber that offers one format gets of a publisher in another: the parameters or nothing.
    @Test(
        "A8: a subscriber gets a variant that it can decode, or a named refusal",
        arguments: [
            // Publisher, subscriber, agreed.
            ("42e01f/1", "42e01f/1", true), ("42e01f/1", "42001f/1", true), ("420016/1", "42e01f/1", true),
            ("42e01f/1", "4d001f/1", true), ("42e01f/1", "64001f/1", true), ("42e01f/1", "640c1f/1", true),
            ("4d001f/1", "64001f/1", true), ("640c1f/1", "64001f/1", true), ("64001f/1", "42e01f/1", false),
            ("640c1f/1", "42e01f/1", false), ("4d001f/1", "42001f/1", false), ("64001f/1", "640c1f/1", false),
            ("42e01f/1", "42e01f/0", false), ("42e01f/0", "42e01f/1", true), ("42e034/1", "42e00b/1", true),
        ])
    func decodable(_ publisher: String, _ subscriber: String, _ agreed: Bool) throws {
        var publishing = makeNegotiation()
        let published = try publishing.receiveOffer(offer([h264Section("0", "sendonly", [publisher])]))
        let formats = try #require(published.sections[0].remoteSends?.formats)

        var subscribing = makeNegotiation()
        _ = try subscribing.receiveOffer(offer([h264Section("0", "recvonly", [subscriber])]))
        let sending = SectionAnswer(sending: stream(.video, 1, formats: formats))
        let section = try subscribing.makeAnswer(["0": sending]).sections[0]
        #expect((section.sending != nil) == agreed)
        #expect(section.refusal == (agreed ? nil : .noCommonCodec))
        // Both sides speak of the publisher's variant, so that the media plane compares equal strings.
        if let sending = section.sending { #expect(sending.formats.map(\.variant) == formats.map(\.variant)) }
    }

    @Test(
        "A8: an answer chooses packetization mode 1 and the profile that most clients can decode",
        arguments: [
            (["42001f/1", "42001f/0", "42e01f/1", "42e01f/0", "4d001f/1"], 104),
            (["640c1f/1", "42e01f/0"], 100), (["640c1f/1"], 100), (["64001f/0", "42001f/1"], 102),
            (["4d001f/1", "42001f/1"], 102), (["f4001f/1", "42e01f/1"], 102),
        ])
    func choice(_ offered: [String], _ payloadType: Int) throws {
        var negotiation = makeNegotiation()
        _ = try negotiation.receiveOffer(offer([h264Section("0", "sendonly", offered)]))
        let section = try negotiation.makeAnswer().sections[0]
        #expect(section.receiving?.formats.map { Int($0.payloadType) } == [payloadType])
    }

    @Test(
        "Parameter sets of a publisher's description are read as bytes, with or without padding; one that is not base64 is as if there were none",
        arguments: [
            ("Z0LAFtoCgL/lwFqDAwNSgAAAAwCAAAAPR4sXUA==,aM48gA==", [28, 4]), ("aM48gA", [4]),
            ("aM48gA==,aM4?gA", [] as [Int]), ("", [] as [Int]),
        ])
    func parameterSets(_ text: String, _ lengths: [Int]) throws {
        var section = h264Section("0", "sendonly", ["42c016/1"])
        section[section.count - 1] += ";sprop-parameter-sets=\(text)"
        var negotiation = makeNegotiation()
        _ = try negotiation.receiveOffer(offer([section]))
        let answer = try negotiation.makeAnswer()
        let sets = try #require(answer.sections[0].receiving?.formats.first).parameterSets
        #expect(sets.map(\.count) == lengths)
        #expect(lengths.isEmpty || sets.last == [0x68, 0xce, 0x3c, 0x80])
        #expect(!answer.text.contains("sprop-parameter-sets"))
    }

    @Test("A8: an offer of unsupported profiles only is refused by name")
    func unsupportedProfile() throws {
        var negotiation = makeNegotiation()
        let outcome = try negotiation.receiveOffer(offer([h264Section("0", "sendonly", ["f4001f/1"])]))
        #expect(outcome.sections[0].refusal == .noCommonCodec)
        #expect(try negotiation.makeAnswer().text.section(0)[0] == "m=video 0 UDP/TLS/RTP/SAVPF 100")
    }

    @Test("For an unknown publisher every variant that a format can decode is offered")
    func followMode() throws {
        var negotiation = makeNegotiation()
        _ = try negotiation.receiveOffer(offer([h264Section("0", "recvonly", ["64001f/1", "42e01f/1"])]))
        let answer = try negotiation.makeAnswer(["0": SectionAnswer(sending: stream(.video, 1))])
        let formats = try #require(answer.sections[0].sending?.formats)
        let pairs = formats.map { "\($0.payloadType) \($0.variant)" }
        for pair in ["102 baseline/1", "102 baseline/0", "100 high/1", "100 main/1", "100 constrained-high/1"] {
            #expect(pairs.contains(pair))
        }
    }

    @Test("VP9 and AV1 profiles are distinguished, an absent one means 0")
    func profilesOfOthers() throws {
        let section = [
            "m=video 9 UDP/TLS/RTP/SAVPF 100 98 45", "a=mid:0", "a=recvonly", "a=rtpmap:100 VP9/90000",
            "a=fmtp:100 profile-id=2", "a=rtpmap:98 vp9/90000", "a=rtpmap:45 Av1/90000", "a=fmtp:45 profile=1",
        ]
        var negotiation = makeNegotiation()
        let formats = try negotiation.receiveOffer(offer([section])).sections[0].formats
        #expect(
            formats.map { "\($0.codec.rawValue) \($0.payloadType) \($0.variant)" } == [
                "VP9 98 0", "VP9 100 2", "AV1 45 1",
            ])
    }
}

/// A section with one payload type from 100 on for each `profile-level-id/packetization-mode`.
func h264Section(_ mid: String, _ direction: String, _ formats: [String]) -> [String] {
    let types = formats.indices.map { String(100 + $0 * 2) }
    return ["m=video 9 UDP/TLS/RTP/SAVPF \(types.joined(separator: " "))", "a=mid:\(mid)", "a=\(direction)"]
        + zip(types, formats).flatMap { type, format in
            let parts = format.split(separator: "/")
            return [
                "a=rtpmap:\(type) H264/90000", "a=rtcp-fb:\(type) nack pli",
                "a=fmtp:\(type) level-asymmetry-allowed=1;packetization-mode=\(parts[1]);profile-level-id=\(parts[0])",
            ]
        }
}
