import SDP
import Testing

@Suite("Refusals")
struct RefusalTests {
    private func error(_ text: String, _ change: (inout NegotiationPolicy) -> Void = { _ in }) -> NegotiationError? {
        var negotiation = makeNegotiation(change)
        do {
            _ = try negotiation.receiveOffer(text)
            return nil
        } catch {
            #expect(negotiation.state == .stable)
            return error
        }
    }

    private let good = offer([audioSection("0", "sendonly"), videoSection("1", "sendonly")])

    /// The good offer with lines starting with `prefix` replaced, or removed where `new` is nil.
    private func changed(_ prefix: String, _ new: String?) -> String {
        good.sdpLines.compactMap { $0.hasPrefix(prefix) ? new : $0 }.joined(separator: "\r\n")
    }

    @Test("The offer from which the others are derived is accepted")
    func baseline() { #expect(error(good) == nil) }

    @Test("D15: several tracks in one section distinguished by SSRC (Plan B) are refused; one is accepted")
    func planB() {
        let one = audioSection("0", "sendonly") + ["a=ssrc:1 cname:c", "a=ssrc:1 msid:s1 t1"]
        #expect(error(offer([one])) == nil)
        let two = one + ["a=ssrc:2 cname:c", "a=ssrc:2 msid:s2 t2"]
        #expect(error(offer([two])) == NegotiationError(.planB, .section(0, mid: "0")))
        #expect(error(offer([two + ["a=msid:s1 t1"]])) == nil, "with a=msid the rest is an accompaniment")
    }

    @Test("D15: keys in the SDP, missing and old fingerprints are refused by name")
    func oldSecurity() {
        let place = NegotiationError.Place.section(0, mid: "0")
        let crypto = "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz"
        let sdes = changed("a=fingerprint", crypto)
        #expect(error(sdes) == NegotiationError(.sdesUnsupported, place))
        #expect(error(changed("a=fingerprint", nil)) == NegotiationError(.missingFingerprint, place))
        let sha1 = "a=fingerprint:sha-1 " + Array(repeating: "00", count: 20).joined(separator: ":")
        #expect(error(changed("a=fingerprint", sha1)) == NegotiationError(.weakFingerprint, place))
        for bad in [
            "a=fingerprint:sha-256 00:11",
            "a=fingerprint:sha-256 " + Array(repeating: "+1", count: 32).joined(separator: ":"),
        ] {
            #expect(error(changed("a=fingerprint", bad)) == NegotiationError(.malformedFingerprint, place))
        }
        let plain = good.sdpLines.map { $0.hasPrefix("m=") ? $0.replacingProtocol("RTP/AVP") : $0 }
        #expect(error(plain.joined(separator: "\n")) == NegotiationError(.unsupportedProtocol, place))
    }

    @Test(
        "D15: the offer of a Chrome of 2015 with one track per kind is answered or refused, never left without a response"
    )
    func oldChrome() throws {
        let old =
            audioSection("audio", "sendrecv").map { $0.replacingProtocol("RTP/SAVPF") } + [
                "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz",
                "a=ssrc:1 cname:c", "a=ssrc:1 msid:s t", "a=ssrc:1 mslabel:s", "a=ssrc:1 label:t",
            ]
        #expect(error(offer([old])) == nil, "it has a fingerprint, so DTLS is possible")
    }

    @Test(
        "Transport attributes that allow no connection are refused",
        arguments: [
            ("a=ice-ufrag", nil, .missingICECredentials), ("a=ice-pwd", nil, .missingICECredentials),
            ("a=ice-ufrag", "a=ice-ufrag:abc", .invalidICECredentials),
            ("a=ice-ufrag", "a=ice-ufrag:ab cd", .invalidICECredentials),
            ("a=ice-pwd", "a=ice-pwd:short", .invalidICECredentials),
            ("a=setup", "a=setup:holdconn", .invalidSetup), ("a=setup", "a=setup:nonsense", .invalidSetup),
        ] as [(String, String?, NegotiationError.Code)])
    func transport(_ prefix: String, _ new: String?, _ code: NegotiationError.Code) {
        #expect(error(changed(prefix, new)) == NegotiationError(code, .section(0, mid: "0")))
    }

    @Test("rtcp-mux is required, by mid")
    func rtcpMux() {
        #expect(error(changed("a=rtcp-mux", nil)) == NegotiationError(.rtcpMuxRequired, .section(0, mid: "0")))
    }

    @Test("ICE-lite is refused: two ICE-lite agents would wait for each other forever")
    func iceLite() {
        #expect(error(changed("t=", "t=0 0\r\na=ice-lite")) == NegotiationError(.iceLitePeer))
    }

    @Test("Mids: duplicate, empty, over-long, with characters that break lines")
    func mids() {
        #expect(error(changed("a=mid:1", "a=mid:0"))?.code == .duplicateMid)
        for mid in ["", "seventeenletters1", "a b", "a;b\u{e9}"] {
            #expect(error(changed("a=mid:1", "a=mid:" + mid)) == NegotiationError(.invalidMid, .section(1, mid: nil)))
        }
    }

    @Test(
        "Text that is no session description",
        arguments: [
            ("", .unsupportedVersion), ("hello", .malformedLine), ("v=1\r\n", .unsupportedVersion),
            ("v=0\r\n", .malformedLine), ("v=0\r\no=- 1 1 IN IP4 0\r\n", .noSections),
            ("v=0\r\no=- 1\r\n", .malformedLine), ("v=0\r\no=- 1 1 IN IP4 0\r\nm=audio\r\n", .malformedSection),
            ("v=0\r\no=- 1 1 IN IP4 0\r\nm=audio 99999 RTP/AVP 0\r\n", .malformedSection),
            ("v=0\r\no=- 1 1 IN IP4 0\r\na\u{0}b=1\r\n", .malformedLine),
            ("v=0\no=- 1 1 IN IP4 0\na=x\ry\n", .malformedLine), ("{\"sdp\":1}", .malformedLine),
        ] as [(String, NegotiationError.Code)])
    func noDescription(_ text: String, _ code: NegotiationError.Code) {
        #expect(error(text)?.code == code)
    }

    @Test("Limits are enforced before the text is parsed")
    func limits() {
        #expect(error(String(repeating: "a", count: 512 * 1024 + 1)) == NegotiationError(.tooLong))
        let lines = good + String(repeating: "a=x\n", count: 20_480)
        #expect(error(lines) == NegotiationError(.tooManyLines, .line(20_481)))
        let long = good + "a=" + String(repeating: "x", count: 4095)
        #expect(error(long)?.code == .lineTooLong)
        let many = good + String(repeating: "m=audio 0 RTP/AVP 0\n", count: 300)
        #expect(error(many)?.code == .tooManySections)
        let crowded = changed("t=", "t=0 0" + String(repeating: "\r\na=x", count: 128))
        #expect(error(crowded)?.code == .tooManyLines)
        #expect(error(good) { $0.limits.maximumSections = 1 }?.code == .tooManySections)
    }

    @Test("Errors name cause and place in stable words")
    func words() {
        #expect("\(NegotiationError(.planB, .section(2, mid: "v")))" == "sdp_plan_b_unsupported (m-section 2, mid v)")
        #expect("\(NegotiationError(.malformedLine, .line(7)))" == "sdp_malformed_line (line 7)")
        #expect(Set(NegotiationError.Code.allCases.map(\.rawValue)).count == NegotiationError.Code.allCases.count)
    }

    @Test("A rejected section maps the payload types that it names: Pion reads no answer with others")
    func rejectedFormats() throws {
        var negotiation = makeNegotiation { $0.video.allowed = [.vp9] }
        _ = try negotiation.receiveOffer(offer([audioSection("0", "sendonly"), videoSection("1", "sendonly")]))
        let section = try negotiation.makeAnswer().text.section(1)
        #expect(section[0] == "m=video 0 UDP/TLS/RTP/SAVPF 96 97")
        for line in ["a=inactive", "a=rtpmap:96 VP8/90000", "a=rtpmap:97 rtx/90000", "a=fmtp:97 apt=96"] {
            #expect(section.contains(line))
        }
    }

    @Test("A section of an unknown kind does not affect the others")
    func unknownKind() throws {
        var negotiation = makeNegotiation()
        let text = ["m=text 9 UDP/TLS/RTP/SAVPF 98", "a=mid:t", "a=rtpmap:98 t140/1000"]
        let outcome = try negotiation.receiveOffer(offer([text, audioSection("a", "sendonly")]))
        #expect(outcome.sections.map(\.refusal) == [.unsupportedProtocol, nil])
        let answer = try negotiation.makeAnswer().text
        #expect(answer.section(0)[0] == "m=text 0 UDP/TLS/RTP/SAVPF 98")
        #expect(answer.section(1).contains("a=ice-ufrag:martlet0"))
    }
}

extension String {
    /// The m-line with another protocol.
    func replacingProtocol(_ proto: String) -> String {
        var words = split(separator: " ").map(String.init)
        if hasPrefix("m="), words.count > 2 { words[2] = proto }
        return words.joined(separator: " ")
    }
}
