import Primitives

extension Negotiation {
    /// Interprets the remote's offer. Throws `.glare` while the server's own offer is pending: the remote must yield. Another offer before the answer replaces
    /// the first.
    public mutating func receiveOffer(_ text: String) throws(NegotiationError) -> OfferOutcome {
        if case .local = pending { throw NegotiationError(.glare) }
        let bundle = try BundleReading(text, limits: policy.limits)
        try checkContinuity(bundle.readings)
        let unseen = bundle.readings.count { !book.seenMids.contains(mid(of: $0)) }
        guard book.seenMids.count - book.inventedMids + unseen <= policy.limits.maximumMids else {
            throw NegotiationError(.tooManySections)
        }
        var sections: [OfferedSection] = []
        for reading in bundle.readings { sections.append(try offered(reading, bundle)) }
        refuseUnbundled(&sections, bundle)
        let accepted = sections.filter { $0.refusal == nil }.map(\.index)
        if accepted.isEmpty, let unsupported = sections.first(where: { $0.refusal == .unsupportedProtocol }) {
            throw NegotiationError(.unsupportedProtocol, bundle.readings[unsupported.index].place)
        }
        var transport = try bundle.transport(accepted: accepted, isOffer: true)
        let setup = accepted.first.flatMap { bundle.readings[$0].transport.setup }
        let restarted = try transport?.follow(book.remote, setup: setup ?? SetupRole.actpass.rawValue) ?? false
        pending = .remote(
            RemoteOffer(
                byteCount: text.utf8.count, readings: bundle.readings, sections: sections, bundle: bundle.group,
                transport: transport, iceRestarted: restarted,
                allowsMixedExtensions: bundle.session.attributes.has("extmap-allow-mixed")))
        return OfferOutcome(sections: sections, transport: transport, iceRestarted: restarted)
    }

    /// m-lines are never removed, and only a rejected one may return as another (RFC 9429 section 5.2.2).
    private func checkContinuity(_ readings: [SectionReading]) throws(NegotiationError) {
        guard readings.count >= book.lines.count else { throw NegotiationError(.sectionRemoved) }
        for (line, reading) in zip(book.lines, readings) where !line.isRejected {
            guard mid(of: reading) == line.mid, reading.media == line.media else {
                throw NegotiationError(.sectionReplaced, reading.place)
            }
        }
    }

    /// The mid of a section, or, if it has none, a placeholder that no client can choose.
    func mid(of reading: SectionReading) -> String { reading.mid ?? "(\(reading.index))" }

    private func offered(_ reading: SectionReading, _ bundle: BundleReading) throws(NegotiationError) -> OfferedSection
    {
        let old = reading.index < book.lines.count ? book.lines[reading.index] : nil
        let chooser = FormatChooser(policy: policy, kind: reading.kind ?? .application)
        let allowed = chooser.allowed(in: reading)
        let refusal = bundle.isRejected(reading) ? .rejectedByRemote : refusal(reading, allowed)
        if refusal == nil, reading.isPlanB { throw NegotiationError(.planB, reading.place) }
        let isMedia = refusal == nil && reading.kind != .application
        return OfferedSection(
            index: reading.index, mid: mid(of: reading), kind: reading.kind ?? .application, refusal: refusal,
            remoteSends: isMedia && reading.direction.sends
                ? reading.remoteSending(formats: chooser.answered(of: allowed, in: reading), policy: policy) : nil,
            remoteReceives: isMedia && reading.direction.receives, formats: isMedia ? allowed : [],
            sending: old?.sending, isRecycled: old.map { $0.mid != mid(of: reading) } ?? false,
            dataChannel: refusal == nil && reading.kind == .application ? reading.dataChannel : nil)
    }

    private func refusal(_ reading: SectionReading, _ allowed: [NegotiatedFormat]) -> SectionRefusal? {
        switch reading.kind {
        case .application:
            guard reading.isDataChannel else { return .unsupportedProtocol }
            return policy.acceptsDataChannels ? nil : .dataChannelsUnsupported
        case .audio, .video:
            guard reading.isSecureRTP else { return .unsupportedProtocol }
            return allowed.isEmpty ? .noCommonCodec : nil
        case nil: return .unsupportedProtocol
        }
    }

    /// One transport per peer: sections outside the BUNDLE group are refused; without a group all but the first.
    private func refuseUnbundled(_ sections: inout [OfferedSection], _ bundle: BundleReading) {
        let accepted = sections.filter { $0.refusal == nil }.map(\.index)
        let bundled = accepted.filter { bundle.isBundled(bundle.readings[$0]) }
        let kept = bundled.isEmpty ? Array(accepted.prefix(1)) : bundled
        for index in accepted where !kept.contains(index) {
            sections[index].refusal = .notBundled
            sections[index].remoteSends = nil
            sections[index].remoteReceives = false
            sections[index].formats = []
        }
    }
}
