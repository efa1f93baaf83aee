extension Negotiation {
    /// Makes an offer after which the server sends exactly `sending`, one section each. Things already sent (same kind,
    /// SSRC and track) keep their section, sections of things no longer sent become inactive and are used again for
    /// other tracks of their kind, never for a track that they have carried before. Of many of those all but some (with
    /// `givesUpIdle` all) are rejected, and their places taken by new sections in later offers.
    public mutating func makeOffer(
        sending: [LocalSending], givesUpIdle: Bool = false
    ) throws(NegotiationError) -> LocalOffer {
        guard case .none = pending else { throw NegotiationError(.offerPending) }
        var next = book
        let homes = Self.assign(sending, in: &next, limit: policy.limits.maximumSections).compactMap { $0 }
        guard homes.count == sending.count else { throw NegotiationError(.tooManyOwnSections) }
        guard !next.lines.isEmpty else { throw NegotiationError(.noSections) }
        Self.giveUpIdle(in: &next, after: book, keeping: givesUpIdle ? 0 : Self.idleSections)
        for index in next.lines.indices where !next.lines[index].isRejected {
            // What goes on unchanged keeps its lines to the letter, payload types included.
            if index < book.lines.count, book.lines[index].sending == next.lines[index].sending,
                !next.lines[index].formats.isEmpty
            {
                continue
            }
            describe(&next.lines[index], &next.payloadTypes, &next.extensionIDs)
        }
        next.localICE = (transport.iceUfrag, transport.icePassword)
        let text = offerText(next)
        pending = .local(next)
        return LocalOffer(text: text, mids: homes.map { next.lines[$0].mid })
    }

    /// What of `wanted` has no section, and finds none that is free: for a client that makes all offers itself.
    public func missingSections(for wanted: [LocalSending]) -> [LocalSending] {
        var free = book.lines.filter { $0.sending == nil && $0.remoteReceives && !$0.isRejected }
        return wanted.filter { sending in
            if book.lines.contains(where: { $0.sending.map { sending.isSameStream(as: $0) } ?? false }) { return false }
            guard let index = free.firstIndex(where: { $0.isFree(for: sending) }) else { return true }
            free.remove(at: index)
            return false
        }
    }

    /// What of `missing` the next offer of a client that makes all offers has room for: in sections, and in bytes, since it lists all its codecs in each section.
    public func offerable(_ missing: [LocalSending]) -> [LocalSending] {
        var sections = policy.limits.maximumSections - book.lines.count
        var bytes = policy.limits.maximumBytes - book.offeredBytes - Self.candidateBytes
        return missing.filter { sending in
            let length = sending.kind == .video ? Self.offeredVideoBytes : Self.offeredAudioBytes
            guard sections > 0, bytes >= length else { return false }
            sections -= 1
            bytes -= length
            return true
        }
    }

    /// Chromium's have 5.0 kB of video and 0.9 kB of audio where they receive, and up to 0.8 kB more where its platform has H.265.
    private static let offeredVideoBytes = 6 << 10
    private static let offeredAudioBytes = 3 << 9
    /// A client's next offer may have candidates: thirty of them, for which a machine with several networks and relays has use.
    private static let candidateBytes = 4 << 10

    /// Whether an offer of `sending` that gives up idle sections rejects any, whose places the offer after it has for others.
    public func givesUpSections(sending: [LocalSending]) -> Bool {
        var next = book
        let homes = Self.assign(sending, in: &next, limit: policy.limits.maximumSections)
        return !homes.contains(nil) && Self.giveUpIdle(in: &next, after: book, keeping: 0) > 0
    }

    /// What of `wanted` an offer has sections for, in its order; all of what is sent already.
    public func fitting(_ wanted: [LocalSending]) -> [LocalSending] {
        var next = book
        let homes = Self.assign(wanted, in: &next, limit: policy.limits.maximumSections)
        return zip(wanted, homes).compactMap { sending, home in home.map { _ in sending } }
    }

    /// Adds a section of `kind` on which nothing is sent yet, or (`.application`) one for data channels, where the connection has none at all: an offer needs
    /// one to set up a transport.
    public mutating func reserveSection(_ kind: SectionKind) {
        guard case .none = pending, book.lines.isEmpty else { return }
        let isData = kind == .application
        var line = MediaLine(
            mid: book.inventMid(), media: kind.rawValue, kind: kind,
            proto: isData ? "UDP/DTLS/SCTP" : "UDP/TLS/RTP/SAVPF")
        line.isLocal = true
        line.hasReducedSizeRTCP = !isData
        book.lines.append(line)
    }

    /// Puts each thing to send on a line; returns the lines' indices, nil for what finds none.
    private static func assign(_ wanted: [LocalSending], in book: inout Book, limit: Int) -> [Int?] {
        var homes = wanted.map { sending in
            book.lines.firstIndex { $0.sending.map { sending.isSameStream(as: $0) } ?? false }
        }
        for index in book.lines.indices where !homes.contains(index) { book.lines[index].sending = nil }
        for (number, sending) in wanted.enumerated() {
            homes[number] =
                homes[number] ?? book.lines.firstIndex { $0.isFree(for: sending) }
                ?? addLine(for: sending, to: &book, limit: limit)
            guard let index = homes[number] else { continue }
            book.lines[index].refusal = nil
            book.lines[index].send(sending)
        }
        return homes
    }

    /// Descriptions of up to so many sections are left alone: some clients cannot read one that rejects a section of theirs.
    private static let comfortableSections = 64
    /// So many idle sections stay for what comes next.
    private static let idleSections = 16

    /// Rejects the server's idle sections but for `kept` of them where there are many: a track that comes and goes would have a new
    /// one each time, until there are no more. Returns how many. The first section of the bundle, as it was agreed and as it
    /// is offered, stays whatever it carries: the transport of all is tagged with it (RFC 9143 section 7.2).
    @discardableResult
    private static func giveUpIdle(in book: inout Book, after agreed: Book, keeping kept: Int) -> Int {
        guard book.lines.count(where: { !$0.isRejected }) > comfortableSections else { return 0 }
        let tags = [agreed.lines, book.lines].compactMap { lines in lines.firstIndex { !$0.isRejected } }
        let idle = book.lines.indices.filter { index in
            let line = book.lines[index]
            let isIdle = !line.isRejected && line.sending == nil && !line.receives
            return isIdle && line.isLocal && line.kind != .application && !tags.contains(index)
        }
        let ending = idle.dropLast(kept)
        for index in ending { book.lines[index].reject(.refusedByPolicy) }
        return ending.count
    }

    /// A new line, in the place of a rejected one where there is one (RFC 9429 section 5.2.2); nil where there are as many as there may be.
    private static func addLine(for sending: LocalSending, to book: inout Book, limit: Int) -> Int? {
        let slot = book.lines.firstIndex { $0.isRejected } ?? book.lines.count
        guard slot < limit else { return nil }
        var line = MediaLine(
            mid: book.inventMid(), media: sending.kind.rawValue, kind: sending.kind, proto: "UDP/TLS/RTP/SAVPF")
        line.isLocal = true
        line.hasReducedSizeRTCP = true
        if slot < book.lines.count { book.lines[slot] = line } else { book.lines.append(line) }
        return slot
    }

    private func describe(
        _ line: inout MediaLine, _ types: inout PayloadTypeRegistry, _ ids: inout ExtensionRegistry
    ) {
        guard line.sending != nil || line.formats.isEmpty, let kind = line.kind, kind != .application else { return }
        let sending = line.sending ?? LocalSending(kind: kind, ssrc: 0, cname: "", streamID: "", trackID: "")
        let formats = OfferFormats(policy: policy).formats(for: sending, registry: &types)
        line.formats = line.receives ? LineAnswer.union(line.formats, formats) : formats
        if line.extensions.isEmpty {
            let misplaced = line.kind == .audio ? ExtensionURI.videoOnly : ExtensionURI.audioOnly
            // Layers' names stand on what a client sends, never on what it receives.
            let unneeded = misplaced.union([ExtensionURI.rid, ExtensionURI.repairedRID])
            line.extensions = policy.extensions.filter { !unneeded.contains($0) }.compactMap { uri in
                ids.assign(uri).map { ExtensionMapping(id: $0, uri: uri) }
            }
            line.hasReceiverReferenceTime = policy.feedback.contains(.receiverReferenceTime)
        }
    }

    private mutating func offerText(_ book: Book) -> String {
        let group = book.lines.filter { !$0.isRejected }.map(\.mid)
        var description = SessionDescription(origin: nextOrigin(), headers: [DescriptionLine("t", "0 0")])
        description.attributes = [
            DescriptionAttribute("group", (["BUNDLE"] + group).spaced), DescriptionAttribute("ice-lite"),
            DescriptionAttribute("ice-options", "trickle"), DescriptionAttribute("extmap-allow-mixed"),
            DescriptionAttribute("msid-semantic", " WMS *"),
        ]
        let writer = SectionWriter(transport: transport, setup: .actpass, longestMessage: policy.longestMessage)
        description.sections = book.lines.map { writer.section($0, isTagged: $0.mid == group.first) }
        return description.text
    }
}

extension MediaLine {
    /// Whether something new may be sent here: nothing is, the client takes it, and it will notice.
    fileprivate func isFree(for wanted: LocalSending) -> Bool {
        kind == wanted.kind && !isRejected && sending == nil && mayCarry(wanted.trackID)
            && (isLocal || remoteReceives)
    }
}
