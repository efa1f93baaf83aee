import Primitives
import SDP
import Testing

@Suite("Reading of offers")
struct OfferReadingTests {
    private func section(_ lines: [String], session: [String] = []) throws -> OfferedSection {
        var negotiation = makeNegotiation()
        return try negotiation.receiveOffer(offer([lines], session: session)).sections[0]
    }

    @Test("Simulcast by rid: layers in the order of the SDP, SSRCs are learned from packets")
    func rids() throws {
        var negotiation = makeNegotiation()
        let outcome = try negotiation.receiveOffer(try Vectors.text("firefox153esr_sendonly_simulcast_gathered"))
        let sends = try #require(outcome.sections[1].remoteSends)
        #expect(sends.encodings == ["q", "h", "f"].map { RemoteEncoding(rid: $0) })
        #expect(sends.streamID == "{f9ed887a-d61c-4751-b7ef-b1c68ecd915d}")
        #expect(sends.trackID == "{b2b17509-a300-4abc-82da-b923afb06bfd}")
        #expect(sends.extensions.contains(ExtensionMapping(id: 9, uri: ExtensionURI.rid, direction: .sendonly)))
        #expect(!sends.extensions.contains { $0.uri == ExtensionURI.playoutDelay }, "Firefox only receives that one")
    }

    @Test("Simulcast variants: paused, alternatives, unusual order, unknown and over-long rids, restrictions")
    func simulcastForms() throws {
        let rids = [
            "a=rid:h send max-width=640;max-height=360", "a=rid:q send pt=96", "a=rid:x recv", "a=rid:f send pt=98",
            "a=rid:seventeencharacter send",
        ]
        let lines = videoSection("0", "sendonly") + rids
        let simulcast = "a=simulcast:send h;~q;f;nosuch;h;seventeencharacter recv x"
        var negotiation = makeNegotiation()
        let outcome = try negotiation.receiveOffer(offer([lines + [simulcast]]))
        #expect(outcome.sections[0].remoteSends?.encodings.map(\.rid) == ["h", "q"])
        let answer = try negotiation.makeAnswer().text.section(0)
        #expect(answer.contains("a=rid:h recv max-width=640;max-height=360"))
        #expect(answer.contains("a=rid:q recv"))
        #expect(answer.contains("a=simulcast:recv h;~q"), "what the client has paused stays so")

        var single = makeNegotiation { $0.maximumEncodings = 1 }
        let one = try single.receiveOffer(offer([lines + [simulcast]]))
        #expect(one.sections[0].remoteSends?.encodings == [RemoteEncoding()])
        #expect(try !single.makeAnswer().text.contains("simulcast"))
    }

    @Test("Simulcast without rids: SIM and FID groups")
    func simGroups() throws {
        let sources = (1...6).flatMap { ["a=ssrc:\($0) cname:c", "a=ssrc:\($0) msid:s t"] }
        let groups = ["a=ssrc-group:SIM 1 2 3", "a=ssrc-group:FID 1 4", "a=ssrc-group:FID 2 5", "a=ssrc-group:FID 3 6"]
        let sends = try section(videoSection("video", "sendrecv") + groups + sources).remoteSends
        #expect(sends?.encodings == [(1, 4), (2, 5), (3, 6)].map { RemoteEncoding(ssrc: $0.0, rtxSSRC: $0.1) })
        #expect(sends?.streamID == "s")
        #expect(sends?.trackID == "t")
        #expect(sends?.cname == "c")
    }

    @Test("A single stream with its retransmissions, as GStreamer and ffmpeg describe it")
    func plainStream() throws {
        var negotiation = makeNegotiation()
        let gst = try negotiation.receiveOffer(try Vectors.text("gst122_whip_H264.offer"))
        #expect(gst.sections[0].remoteSends?.encodings == [RemoteEncoding(ssrc: 2470129361, rtxSSRC: 1791588741)])
        #expect(gst.sections[0].remoteSends?.formats[0].rtxPayloadType == 96)
        #expect(gst.sections[0].remoteSends?.feedback == [.nack, .pli, .fir], "transport-cc needs its extension")
        #expect(gst.transport?.localSetup == .passive)
        #expect(gst.transport?.candidates.count == 9)
        var second = makeNegotiation()
        let ffmpeg = try second.receiveOffer(try Vectors.text("ffmpeg9_whip_offer"))
        #expect(ffmpeg.transport?.localSetup == .active, "ffmpeg waits for the ClientHello")
        #expect(ffmpeg.transport?.candidates == [])
        #expect(ffmpeg.sections[1].remoteSends?.encodings == [RemoteEncoding(ssrc: 2432887205, rtxSSRC: 2432887206)])
    }

    @Test("Feedback for all payload types at once, and RTX only with NACK")
    func feedback() throws {
        let head = ["m=video 9 UDP/TLS/RTP/SAVPF 96 97", "a=mid:0", "a=sendonly", "a=rtpmap:96 vp8/90000"]
        let rtx = ["a=rtpmap:97 RTX/90000", "a=fmtp:97 apt=96"]
        let wild = try section(head + rtx + ["a=rtcp-fb:* nack", "a=rtcp-fb:* ccm fir", "a=rtcp-fb:* goog-remb"])
        #expect(wild.remoteSends?.feedback == [.nack, .fir, .remb])
        #expect(wild.formats[0].rtxPayloadType == 97)
        #expect(try section(head + rtx).formats[0].rtxPayloadType == nil)
    }

    @Test("Extension ids above 14, attributes, directions; invalid ids are ignored")
    func extensions() throws {
        let lines = [
            "a=extmap:15 \(ExtensionURI.absoluteSendTime)", "a=extmap:0 \(ExtensionURI.transmissionOffset)",
            "a=extmap:256 \(ExtensionURI.videoTiming)", "a=extmap:30/sendonly \(ExtensionURI.videoOrientation)",
            "a=extmap:31 urn:unknown", "a=extmap:4 \(ExtensionURI.playoutDelay)",
        ]
        let sends = try section(videoSection("0", "sendonly") + lines).remoteSends
        #expect(
            sends?.extensions == [
                ExtensionMapping(id: 4, uri: ExtensionURI.mid),
                ExtensionMapping(id: 30, uri: ExtensionURI.videoOrientation, direction: .sendonly),
            ])
        let level = ["a=extmap:1 \(ExtensionURI.audioLevel) vad=on"]
        let audio = try section(audioSection("0", "sendonly") + level).remoteSends
        #expect(audio?.extensions.last?.attributes == "vad=on")
    }

    @Test("Session-level attributes apply to sections without their own")
    func sessionLevel() throws {
        let text = """
            v=0
            o=- 1 1 IN IP4 0.0.0.0
            s=-
            t=0 0
            a=sendonly
            a=fingerprint:SHA-256 \(Array(repeating: "ab", count: 32).joined(separator: ":"))
            a=ice-ufrag:abcd
            a=ice-pwd:0123456789abcdefghijkl
            a=setup:active
            a=candidate:1 1 udp 1 192.0.2.9 5000 typ host
            m=audio 5000 UDP/TLS/RTP/SAVPF 111
            a=rtcp-mux
            a=rtpmap:111 opus/48000/2
            """
        var negotiation = makeNegotiation()
        let outcome = try negotiation.receiveOffer(text)
        #expect(outcome.sections[0].remoteSends != nil)
        #expect(!outcome.sections[0].remoteReceives)
        #expect(outcome.transport?.candidates.count == 1)
        #expect(outcome.transport?.fingerprintSHA256 == Array(repeating: 0xab, count: 32))
        let answer = try negotiation.makeAnswer().text
        #expect(!answer.contains("a=mid"), "no mid was offered")
        #expect(!answer.contains("a=group"))
    }

    @Test("bundle-only with port 0 belongs to the bundle; port 0 without it is rejected")
    func bundleOnly() throws {
        let waiting = audioSection("1", "sendonly", port: 0) + ["a=bundle-only"]
        let dead = audioSection("2", "sendonly", port: 0)
        var negotiation = makeNegotiation()
        let outcome = try negotiation.receiveOffer(offer([videoSection("0", "sendonly"), waiting, dead]))
        #expect(outcome.sections.map(\.refusal) == [nil, nil, .rejectedByRemote])
        let answer = try negotiation.makeAnswer().text
        #expect(answer.section(1)[0].hasPrefix("m=audio 7900 "))
        #expect(answer.section(2)[0].hasPrefix("m=audio 0 "))
        #expect(answer.sdpLines.contains("a=group:BUNDLE 0 1"))
    }

    @Test("A bundle-only section leaves all about the transport to the first one (RFC 9429 section 5.2.1)")
    func bundleOnlyWithoutTransport() throws {
        let mid = "a=mid:1"
        let whole = offer([videoSection("0", "sendonly"), audioSection("1", "sendonly", port: 0) + ["a=bundle-only"]])
        let lines = whole.sdpLines
        let second = try #require(lines.firstIndex(of: mid))
        let transport = ["a=ice-ufrag", "a=ice-pwd", "a=setup", "a=fingerprint", "a=rtcp-mux"]
        let kept = lines[second...].filter { line in !transport.contains { line.hasPrefix($0) } }
        let text = (Array(lines[..<second]) + kept).joined(separator: "\r\n") + "\r\n"
        var negotiation = makeNegotiation()
        let outcome = try negotiation.receiveOffer(text)
        #expect(outcome.sections.map(\.refusal) == [nil, nil])
        #expect(outcome.transport?.iceUfrag == "abcd")
        #expect(try negotiation.makeAnswer().text.section(1).contains("a=rtcp-mux"))
    }

    @Test("Sections outside the bundle are refused, each by name")
    func unbundled() throws {
        let text = offer([audioSection("0", "sendonly"), videoSection("1", "sendonly"), videoSection("2", "sendonly")])
        var negotiation = makeNegotiation()
        let partly = try negotiation.receiveOffer(text.replacingGroup("a=group:BUNDLE 1 0"))
        #expect(partly.sections.map(\.refusal) == [nil, nil, .notBundled])
        #expect(try negotiation.makeAnswer().text.sdpLines.contains("a=group:BUNDLE 1 0"))
        var lone = makeNegotiation()
        let outcome = try lone.receiveOffer(text.replacingGroup("a=x"))
        #expect(outcome.sections.map(\.refusal) == [nil, .notBundled, .notBundled])
    }

    @Test("The hint of a video's content is read, and a bandwidth line before it does not matter")
    func contentHint() throws {
        var lines = videoSection("0", "sendrecv") + ["a=content:slides"]
        lines.insert("b=AS:500", at: 1)
        #expect(try section(lines).remoteSends?.contentHint == "slides")
    }

    @Test("Data channels are refused with port 0 unless the policy allows them")
    func dataChannels() throws {
        let text = try Vectors.text("chromium156_datachannel_plus_av")
        var negotiation = makeNegotiation()
        #expect(try negotiation.receiveOffer(text).sections[2].refusal == .dataChannelsUnsupported)
        var later = makeNegotiation { $0.acceptsDataChannels = true }
        let outcome = try later.receiveOffer(text)
        #expect(outcome.sections[2].dataChannel == DataChannelFacts(sctpPort: 5000, maximumMessageSize: 262144))
        let answer = try later.makeAnswer().text.section(2)
        #expect(answer[0] == "m=application 7900 UDP/DTLS/SCTP webrtc-datachannel")
        #expect(answer.contains("a=sctp-port:5000"))
    }
}

extension String {
    /// The description with another BUNDLE line.
    func replacingGroup(_ line: String) -> String {
        sdpLines.map { $0.hasPrefix("a=group:") ? line : $0 }.joined(separator: "\r\n")
    }
}
