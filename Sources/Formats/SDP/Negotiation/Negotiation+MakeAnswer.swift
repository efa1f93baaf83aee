extension Negotiation {
    /// Answers the offer. Sections not named in `answers` receive what is offered and send nothing, so tracks that are still sent must be named again (start
    /// from `currentSending`).
    public mutating func makeAnswer(_ answers: [String: SectionAnswer] = [:]) throws(NegotiationError) -> AnswerOutcome
    {
        guard case .remote(let offer) = pending else { throw NegotiationError(.noPendingOffer) }
        if let mid = answers.keys.sorted().first(where: { mid in !offer.sections.contains { $0.mid == mid } }) {
            throw NegotiationError(.unknownMid, .mid(mid))
        }
        let credentials = try credentials(for: offer)
        var next = book
        var sections: [NegotiatedSection] = []
        for (offered, reading) in zip(offer.sections, offer.readings) {
            let old = offered.index < book.lines.count ? book.lines[offered.index] : nil
            let answer = LineAnswer(policy: policy, reading: reading, offered: offered)
            let (line, facts) = answer.line(answers[offered.mid] ?? SectionAnswer(), after: old)
            if offered.index < next.lines.count { next.lines[offered.index] = line } else { next.lines.append(line) }
            sections.append(facts)
            next.seenMids.insert(line.mid)
            next.payloadTypes.reserve(reading.formats)
            next.extensionIDs.reserve(reading.extensions)
            for format in line.formats {
                next.payloadTypes.learn(format, parameters: format.written(sends: line.sending != nil))
            }
            // A configuration for which the client has a payload type gets no second one in the server's offers.
            for format in offered.formats {
                next.payloadTypes.learn(format, parameters: format.written(sends: true))
            }
        }
        if let transport = offer.transport { next.remote = transport }
        next.localICE = credentials
        next.offeredBytes = offer.byteCount
        let text = answerText(next, offer)
        book = next
        pending = .none
        return AnswerOutcome(text: text, sections: sections)
    }

    /// An answer follows the offer: new credentials for a restart, otherwise the old ones (RFC 8839 section 4.4.1.1).
    private func credentials(for offer: RemoteOffer) throws(NegotiationError) -> (ufrag: String, password: String) {
        let new = (transport.iceUfrag, transport.icePassword)
        guard let old = book.localICE else { return new }
        guard offer.iceRestarted else { return old }
        guard new.0 != old.ufrag else { throw NegotiationError(.newICECredentialsRequired) }
        return new
    }

    private mutating func answerText(_ book: Book, _ offer: RemoteOffer) -> String {
        let lines = book.lines
        var local = transport
        if let ice = book.localICE { (local.iceUfrag, local.icePassword) = ice }
        let accepted = lines.filter { !$0.isRejected }.map(\.mid)
        // The answer's group keeps the order of the offer's (RFC 9143 section 7.3.2).
        let group = offer.bundle?.filter(accepted.contains)
        let tagged = group?.first ?? accepted.first
        let setup = offer.transport?.localSetup ?? .passive
        var description = SessionDescription(origin: nextOrigin(), headers: [DescriptionLine("t", "0 0")])
        if let group, !group.isEmpty {
            description.attributes.append(DescriptionAttribute("group", (["BUNDLE"] + group).spaced))
        }
        description.attributes.append(DescriptionAttribute("ice-lite"))
        if offer.transport?.supportsTrickle ?? false {
            description.attributes.append(DescriptionAttribute("ice-options", "trickle"))
        }
        if offer.allowsMixedExtensions { description.attributes.append(DescriptionAttribute("extmap-allow-mixed")) }
        description.attributes.append(DescriptionAttribute("msid-semantic", " WMS *"))
        let writer = SectionWriter(transport: local, setup: setup, longestMessage: policy.longestMessage)
        description.sections = lines.map { writer.section($0, isTagged: $0.mid == tagged) }
        return description.text
    }

    /// Distributes `wanted` over the receiving sections of a pending remote offer: tracks that are already sent stay, the others get free sections of their
    /// kind. Those without a place are returned in `unplaced`.
    public func place(_ wanted: [LocalSending]) -> (placed: [String: LocalSending], unplaced: [LocalSending]) {
        guard case .remote(let offer) = pending else { return ([:], wanted) }
        var placed: [String: LocalSending] = [:]
        var rest: [LocalSending] = []
        for sending in wanted {
            let home = offer.sections.first { $0.remoteReceives && $0.sending?.isSameStream(as: sending) ?? false }
            if let home { placed[home.mid] = sending } else { rest.append(sending) }
        }
        var unplaced: [LocalSending] = []
        for sending in rest {
            let free = offer.sections.first { section in
                section.remoteReceives && section.kind == sending.kind && placed[section.mid] == nil
                    && (section.isRecycled || section.index >= book.lines.count
                        || book.lines[section.index].mayCarry(sending.trackID))
            }
            if let free { placed[free.mid] = sending } else { unplaced.append(sending) }
        }
        return (placed, unplaced)
    }
}

extension [String] {
    var spaced: String { joined(separator: " ") }
}

extension LocalSending {
    /// Whether both are the same stream of the same track, whatever else was updated.
    func isSameStream(as other: LocalSending) -> Bool {
        kind == other.kind && ssrc == other.ssrc && trackID == other.trackID
    }
}
