import Testing

@testable import SDP

@Suite("Limits of what a client can make the server store")
struct BoundsTests {
    /// Offers of a client that never says the same thing twice.
    private func offers(_ count: Int, _ section: (Int) -> [String]) throws -> Negotiation {
        var negotiation = makeNegotiation()
        for number in 0..<count {
            _ = try negotiation.receiveOffer(offer([section(number)], version: number))
            _ = try negotiation.makeAnswer()
        }
        return negotiation
    }

    @Test("F8, L1: the parameters of one payload type are replaced, not collected")
    func payloadTypes() throws {
        let negotiation = try offers(400) { number in
            audioSection("0", "sendonly").map {
                $0.hasPrefix("a=fmtp") ? "a=fmtp:111 minptime=10;x-number=\(number)" : $0
            }
        }
        #expect(negotiation.book.payloadTypes.count <= PayloadTypeRegistry.maximumEntries)
    }

    @Test(
        "L1: a publisher with ever other parameters does not use up the payload types of those who receive it",
        arguments: [CodecName.opus, .h264])
    func configurations(_ codec: CodecName) throws {
        var negotiation = makeNegotiation()
        var sending: [LocalSending] = []
        for number in 0..<100 {
            let opus = NegotiatedFormat(
                codec: .opus, clockRateHz: 48000, channels: 2,
                parameters: FormatParameters(parsing: "maxaveragebitrate=\(number + 6_000)"))
            let level = String(number + 16, radix: 16)
            let h264 = NegotiatedFormat(
                codec: .h264, clockRateHz: 90000,
                parameters: FormatParameters(parsing: "packetization-mode=1;profile-level-id=42e0\(level)"),
                variant: "baseline/1")
            sending.append(stream(codec.kind, UInt32(number + 1), formats: [codec == .opus ? opus : h264]))
        }
        // Another codec comes last.
        let vp9 = NegotiatedFormat(
            codec: .vp9, clockRateHz: 90000, parameters: FormatParameters(parsing: "profile-id=0"), variant: "0")
        let lines = try negotiation.makeOffer(sending: sending + [stream(.video, 101, formats: [vp9])]).text.sdpLines
        #expect(lines.contains { $0.hasSuffix(" VP9/90000") })
        // In a bundle a payload type means one configuration.
        let parameters = Set(lines.filter { $0.hasPrefix("a=fmtp:") })
        let types = Set(parameters.map { $0.prefix { $0 != " " } })
        #expect(parameters.count == types.count && types.count < 16)
    }

    @Test("L1: stereo is offered as stereo, however many configurations of Opus there are")
    func stereoBehindOthers() throws {
        var negotiation = makeNegotiation()
        let bitrates = (0..<20).map { "maxaveragebitrate=\($0 + 6_000)" }
        let parameters = bitrates + bitrates.map { $0 + ";sprop-stereo=1" }
        var sending: [LocalSending] = []
        for (number, text) in parameters.enumerated() {
            let opus = NegotiatedFormat(
                codec: .opus, clockRateHz: 48000, channels: 2, parameters: FormatParameters(parsing: text))
            sending.append(stream(.audio, UInt32(number + 1), formats: [opus]))
        }
        let lines = try negotiation.makeOffer(sending: sending).text.sdpLines.filter { $0.hasPrefix("a=fmtp:") }
        #expect(lines.map { $0.hasSuffix(";sprop-stereo=1") } == (0..<40).map { $0 >= 20 })
        #expect(Set(lines).count == 5)
    }

    @Test("F8, L1: unknown extension URIs are stored up to the number of ids; known ones always are")
    func extensions() throws {
        var negotiation = try offers(30) { number in
            audioSection("0", "sendonly").filter { !$0.hasPrefix("a=extmap") }
                + (16..<40).map { "a=extmap:\($0) urn:example:\(number)-\($0)" }
        }
        #expect(negotiation.book.extensionIDs.count <= 255)
        let last = audioSection("0", "sendonly") + ["a=extmap:9 \(ExtensionURI.audioLevel)"]
        _ = try negotiation.receiveOffer(offer([last], version: 99))
        let answer = try negotiation.makeAnswer().text
        #expect(answer.contains("a=extmap:9 \(ExtensionURI.audioLevel)"))
    }

    @Test("F8, L1: a section renewed under ever new mids ends in a named refusal")
    func mids() throws {
        var negotiation = makeNegotiation { $0.limits.maximumMids = 20 }
        var refusal: NegotiationError?
        for number in 0..<40 {
            // Rejected, then used again under another mid.
            let section = audioSection("m\(number / 2)", "sendonly", port: number % 2 == 0 ? 9 : 0)
            do throws(NegotiationError) {
                _ = try negotiation.receiveOffer(offer([section, audioSection("stays", "sendonly")], version: number))
                _ = try negotiation.makeAnswer()
            } catch {
                refusal = error
                break
            }
        }
        #expect(refusal?.code == .tooManySections)
        #expect(negotiation.book.seenMids.count <= 20)
        #expect(negotiation.state == .stable)
    }

    @Test("A browser's answer to as many videos as there are sections fits, in two codecs and two profiles each")
    func largestAnswer() throws {
        let formats = [
            NegotiatedFormat(
                codec: .vp9, clockRateHz: 90000, parameters: FormatParameters(parsing: "profile-id=0"), variant: "0"),
            // Constrained baseline is offered beside it.
            NegotiatedFormat(
                codec: .h264, clockRateHz: 90000,
                parameters: FormatParameters(
                    parsing: "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f"),
                variant: "baseline/1"),
        ]
        var negotiation = makeNegotiation()
        let limits = negotiation.policy.limits
        let videos = (0..<limits.maximumSections).map { stream(.video, UInt32($0 + 1), formats: formats) }
        let offer = try negotiation.makeOffer(sending: videos)
        // What Chromium writes in each section and the server does not.
        let more = ["a=rtcp:9 IN IP4 0.0.0.0", "a=ice-options:trickle"]
        let lines = OfferMakingTests.answer(to: offer.text).sdpLines.flatMap { line in
            line.hasPrefix("a=mid:") ? more + [line] : [line]
        }
        let answer = lines.joined(separator: "\r\n") + "\r\n"
        #expect(answer.utf8.count > limits.maximumSections * 1_700 && lines.count > limits.maximumSections * 45)
        let accepted = try negotiation.receiveAnswer(answer)
        #expect(accepted.sections.count { $0.sending?.formats.count == 2 } == limits.maximumSections)
    }

    @Test("A browser that makes all offers is asked for as many sections as its description has room for")
    func largestOffer() throws {
        let parts = try Vectors.text("chromium156_recvonly_av").components(prefix: "m=")
        var negotiation = makeNegotiation()
        let wanted = (1...250).map { stream(.video, UInt32($0)) }
        var mids = ["0"]
        var asked = 1
        while asked > 0 {
            let group = parts[0].replacing("a=group:BUNDLE 0 1", "a=group:BUNDLE " + mids.joined(separator: " "))
            let sections = mids.map { parts[2].replacing("a=mid:1", "a=mid:" + $0) }
            _ = try negotiation.receiveOffer(group + sections.joined())
            _ = try negotiation.makeAnswer()
            asked = negotiation.offerable(negotiation.missingSections(for: wanted)).count
            mids = (0..<mids.count + asked).map { String($0) }
        }
        #expect(mids.count > 95)
        #expect(!negotiation.offerable([stream(.audio, 300)]).isEmpty, "what takes less has room")
    }

    @Test("F8, L1: sections that the server renews leave the client its own: it may restart ICE and publish")
    func inventedMids() throws {
        var negotiation = makeNegotiation { $0.limits.maximumMids = 20 }
        let sections = [audioSection("own", "sendonly")]
        _ = try negotiation.receiveOffer(offer(sections, version: 0))
        _ = try negotiation.makeAnswer()
        for _ in 0..<40 { _ = negotiation.book.inventMid() }
        _ = try negotiation.receiveOffer(offer(sections + [audioSection("new", "sendonly")], version: 1))
        _ = try negotiation.makeAnswer()
        #expect(negotiation.book.lines.map(\.mid) == ["own", "new"])
    }
}
