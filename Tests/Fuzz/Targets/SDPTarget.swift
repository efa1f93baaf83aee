import Primitives
import SDP

/// A description on its own: read, written, read again; and as an offer and as an answer.
func fuzzSDP(_ input: UnsafeRawBufferPointer) {
    let text = String(decoding: input, as: UTF8.self)
    if let description = try? SessionDescription(parsing: text) {
        guard let again = try? SessionDescription(parsing: description.text) else {
            preconditionFailure("what was written can be read")
        }
        precondition(again.sections.count == description.sections.count, "with all its sections")
        precondition(again.text == description.text, "and is the same text")
    }
    for order in [NegotiationPolicy.CodecOrder.policy, .offer] {
        var negotiation = NegotiationScript.negotiation { $0.video.order = order }
        if (try? negotiation.receiveOffer(text)) != nil { NegotiationScript.answer(&negotiation) }
        precondition(negotiation.state == .stable, "a refused offer leaves nothing behind")
    }
    var offering = NegotiationScript.negotiation()
    guard (try? offering.makeOffer(sending: NegotiationScript.streams)) != nil else {
        preconditionFailure("the server can offer")
    }
    if (try? offering.receiveAnswer(text)) == nil {
        precondition(offering.state == .haveLocalOffer, "a refused answer leaves the offer")
    }
}

/// A connection's life: each record is a step with a text. Both sides offer and answer, trickle and restart; the server withdraws.
func fuzzNegotiation(_ input: UnsafeRawBufferPointer) {
    var input = FuzzInput(input)
    var negotiation = NegotiationScript.negotiation { $0.acceptsDataChannels = true }
    var restarts = 0
    for _ in 0..<24 where !input.isEmpty {
        switch input.byte() % 8 {
        case 0, 1:
            if (try? negotiation.receiveOffer(input.text())) != nil { NegotiationScript.answer(&negotiation) }
        case 2: _ = try? negotiation.receiveOffer(input.text())
        case 3: NegotiationScript.answer(&negotiation)
        case 4:
            let count = Int(input.byte()) % (NegotiationScript.streams.count + 1)
            guard let offer = try? negotiation.makeOffer(sending: Array(NegotiationScript.streams.prefix(count))) else {
                continue
            }
            precondition(offer.mids.count == count, "every stream has its section")
            precondition((try? SessionDescription(parsing: offer.text)) != nil, "an offer can be read")
        case 5: _ = try? negotiation.receiveAnswer(input.text())
        case 6:
            if (try? negotiation.receiveFragment(input.text()))?.iceRestarted ?? false {
                restarts += 1
                negotiation.restartICE(ufrag: "martlet\(restarts)", password: "martlet0martlet0martlet\(restarts)")
                _ = try? negotiation.makeFragment()
            }
        default: negotiation.withdrawOffer()
        }
        check(negotiation)
    }
}

private func check(_ negotiation: Negotiation) {
    let sending = negotiation.currentSending
    precondition(Set(sending.values.map(\.ssrc)).count == sending.count, "a stream is sent once")
}

/// Lines of an ICE fragment, and the same text as one candidate.
func fuzzTrickle(_ input: UnsafeRawBufferPointer) {
    let text = String(decoding: input, as: UTF8.self)
    if let candidate = Candidate(parsing: text) {
        precondition(Candidate(parsing: candidate.text) == candidate, "a candidate written is the same candidate")
    }
    guard let fragment = try? ICEFragment(parsing: text) else { return }
    precondition(fragment.candidates.count <= 64, "candidates are bounded")
    for entry in fragment.candidates { _ = entry.candidate.isMulticastDNS }
}

/// What the SDP targets share: a server that takes everything.
enum NegotiationScript {
    static let streams: [LocalSending] = [
        stream(.audio, 1), stream(.video, 2), stream(.video, 3), stream(.audio, 4), stream(.video, 5),
    ]

    private static func stream(_ kind: SectionKind, _ number: UInt32) -> LocalSending {
        LocalSending(
            kind: kind, ssrc: number * 10, rtxSSRC: kind == .video ? number * 10 + 1 : nil, cname: "martlet",
            streamID: "stream\(number)", trackID: "track\(number)")
    }

    static func negotiation(_ change: (inout NegotiationPolicy) -> Void = { _ in }) -> Negotiation {
        var policy = NegotiationPolicy()
        change(&policy)
        let transport = LocalTransport(
            iceUfrag: "martlet0", icePassword: "martlet0martlet0martlet0",
            fingerprintSHA256: [UInt8](repeating: 7, count: 32),
            candidates: [Candidate(foundation: "1", address: "192.0.2.1", port: 7_900)])
        return Negotiation(sessionID: 1, policy: policy, transport: transport)
    }

    /// Answers a pending offer with everything that finds a place.
    static func answer(_ negotiation: inout Negotiation) {
        let (placed, _) = negotiation.place(streams)
        guard let answer = try? negotiation.makeAnswer(placed.mapValues { SectionAnswer(sending: $0) }) else {
            negotiation.withdrawOffer()
            return
        }
        guard let written = try? SessionDescription(parsing: answer.text) else {
            preconditionFailure("an answer can be read")
        }
        precondition(written.sections.count == answer.sections.count, "it has every section")
    }
}
