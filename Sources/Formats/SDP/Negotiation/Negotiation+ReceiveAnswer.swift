extension Negotiation {
    /// Applies the remote's answer to the pending offer. If it throws, the offer is still pending, and another answer may come.
    public mutating func receiveAnswer(_ text: String) throws(NegotiationError) -> AcceptedAnswer {
        guard case .local(var next) = pending else { throw NegotiationError(.noPendingOffer) }
        let bundle = try BundleReading(text, limits: policy.limits)
        try check(bundle, answers: next)
        let accepted = bundle.readings.filter { $0.port != 0 && !next.lines[$0.index].isRejected }
        if accepted.count > 1, let outside = accepted.first(where: { !bundle.isBundled($0) }) {
            throw NegotiationError(.bundleRequired, outside.place)
        }
        var transport = try bundle.transport(accepted: accepted.map(\.index), isOffer: false)
        let restarted = try transport?.follow(book.remote, setup: accepted.first?.transport.setup) ?? false
        var sections: [NegotiatedSection] = []
        for reading in bundle.readings {
            let old = reading.index < book.lines.count ? book.lines[reading.index] : nil
            sections.append(apply(reading, to: &next.lines[reading.index], after: old))
            next.payloadTypes.reserve(reading.formats)
        }
        if let transport { next.remote = transport }
        book = next
        pending = .none
        return AcceptedAnswer(sections: sections, transport: transport, iceRestarted: restarted)
    }

    /// An answer has the offer's sections in their order (RFC 3264 section 6).
    private func check(_ bundle: BundleReading, answers book: Book) throws(NegotiationError) {
        guard bundle.readings.count == book.lines.count else { throw NegotiationError(.sectionsMismatch) }
        for (line, reading) in zip(book.lines, bundle.readings) {
            guard reading.media == line.media, reading.mid == nil || reading.mid == line.mid || line.isRejected else {
                throw NegotiationError(.sectionsMismatch, reading.place)
            }
        }
    }

    private func apply(_ reading: SectionReading, to line: inout MediaLine, after old: MediaLine?) -> NegotiatedSection
    {
        if reading.port == 0, !line.isRejected {
            // A client answers a new section with port 0 when it knows none of the formats, and a section that it has accepted before when it has stopped that
            // section (RFC 9429 section 5.3.1).
            let isNew = line.sending.map { new in !(old?.sending?.isSameStream(as: new) ?? false) } ?? false
            line.reject(isNew ? .noCommonCodec : .rejectedByRemote)
        }
        var facts = NegotiatedSection(
            index: reading.index, mid: line.mid, kind: line.kind ?? .application, direction: .inactive,
            isRejected: line.isRejected, refusal: line.refusal)
        guard !line.isRejected, let kind = line.kind else { return facts }
        guard kind != .application else {
            facts.dataChannel = reading.dataChannel
            return facts
        }
        line.extensions = line.extensions.filter { mine in
            reading.extensions.contains { $0.uri == mine.uri && $0.id == mine.id }
        }
        let answered = FormatChooser(policy: policy, kind: kind).allowed(in: reading)
        keepAnswered(answered, &line)
        line.hasReducedSizeRTCP = line.hasReducedSizeRTCP && reading.hasReducedSizeRTCP
        line.hasReceiverReferenceTime = line.hasReceiverReferenceTime && reading.hasReceiverReferenceTime
        facts.sending = agreed(reading, answered, &line)
        line.receives = line.receives && reading.direction.sends && !answered.isEmpty
        if line.receives {
            facts.receiving = reading.remoteSending(formats: answered, policy: policy)
            line.rids = reading.acceptedRIDs(formats: answered, policy: policy)
        }
        facts.direction = line.direction
        facts.refusal = line.refusal
        return facts
    }

    /// Later offers continue with what was negotiated.
    private func keepAnswered(_ answered: [NegotiatedFormat], _ line: inout MediaLine) {
        let kept = line.formats.filter { mine in answered.contains { $0.payloadType == mine.payloadType } }
        if !kept.isEmpty { line.formats = kept }
    }

    private func agreed(
        _ reading: SectionReading, _ answered: [NegotiatedFormat], _ line: inout MediaLine
    ) -> AgreedSending? {
        guard let local = line.sending else { return nil }
        let formats = FormatMatcher.agreed(
            publisher: local.formats, subscriber: answered, withRetransmission: local.rtxSSRC != nil)
        guard reading.direction.receives, !formats.isEmpty else {
            line.refusal = formats.isEmpty ? .noCommonCodec : .notWantedByRemote
            line.sending = nil
            return nil
        }
        let extensions = reading.accepted(policy).filter { mapping in
            mapping.direction.receives && line.extensions.contains { $0.uri == mapping.uri }
        }
        return AgreedSending(
            local: local, formats: formats, extensions: extensions.map(\.reversed),
            feedback: reading.feedback(formats, policy: policy))
    }
}
