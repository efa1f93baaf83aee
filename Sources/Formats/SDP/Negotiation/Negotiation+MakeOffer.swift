extension Negotiation {
    /// Makes an offer after which the server sends exactly `sending`, one section each. Tracks already sent (same kind, SSRC and track) keep their section;
    /// sections of tracks no longer sent become inactive and are used again for other tracks of their kind, never for a track that they have carried before. If
    /// there are many inactive sections, all but some (with `givesUpIdle` all) are rejected, and new sections take their places in later offers.
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
            // Sections that continue unchanged keep their lines exactly, payload types included.
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

    /// The part of `wanted` that has no section and finds no free one: for a client that makes all offers itself.
    public func missingSections(for wanted: [LocalSending]) -> [LocalSending] {
        var free = book.lines.filter { $0.sending == nil && $0.remoteReceives && !$0.isRejected }
        return wanted.filter { sending in
            if book.lines.contains(where: { $0.sending.map { sending.isSameStream(as: $0) } ?? false }) { return false }
            guard let index = free.firstIndex(where: { $0.isFree(for: sending) }) else { return true }
            free.remove(at: index)
            return false
        }
    }

    /// The part of `missing` for which the next offer of a client that makes all offers has room: in sections, and in bytes, since the client lists all its
    /// codecs in each section.
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

    /// In Chromium's offers, a section that receives takes 5.0 kB for video and 0.9 kB for audio, and up to 0.8 kB more if its platform has H.265.
    private static let offeredVideoBytes = 6 << 10
    private static let offeredAudioBytes = 3 << 9
    /// A client's next offer may contain candidates: thirty of them, for a machine with several networks and relays.
    private static let candidateBytes = 4 << 10

    /// Whether an offer of `sending` that gives up idle sections rejects any, so that the next offer has their places for other tracks.
    public func givesUpSections(sending: [LocalSending]) -> Bool {
        var next = book
        let homes = Self.assign(sending, in: &next, limit: policy.limits.maximumSections)
        return !homes.contains(nil) && Self.giveUpIdle(in: &next, after: book, keeping: 0) > 0
    }

    /// The part of `wanted` for which an offer has sections, in its order, including everything that is sent already.
    public func fitting(_ wanted: [LocalSending]) -> [LocalSending] {
        var next = book
        let homes = Self.assign(wanted, in: &next, limit: policy.limits.maximumSections)
        return zip(wanted, homes).compactMap { sending, home in home.map { _ in sending } }
    }

    /// Adds a section of `kind` on which nothing is sent yet, or (`.application`) one for data channels, if the connection has no section at all: an offer
    /// needs one to set up a transport.
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

    /// Assigns each track to send to a line; returns the lines' indices, nil for a track that gets none.
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

    /// Descriptions with up to this many sections are left alone: some clients cannot read one that rejects one of their sections.
    private static let comfortableSections = 64
    /// This many idle sections stay for later tracks.
    private static let idleSections = 16

    /// If there are many idle sections of the server, rejects all but `kept` of them: a track that is added and removed repeatedly would need a new one each
    /// time, until there are no more. Returns how many. The first section of the bundle, as negotiated and as offered, stays whatever it carries: it is the
    /// tagged section, which describes the transport of all (RFC 9143 section 7.2).
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

    /// A new line, in the place of a rejected one if there is one (RFC 9429 section 5.2.2); nil if the limit is reached.
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
            // Layers are named only in sections in which a client sends, never where it receives.
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
    /// Whether a new track may be sent here: nothing is sent, the client receives on it, and will notice the track.
    fileprivate func isFree(for wanted: LocalSending) -> Bool {
        kind == wanted.kind && !isRejected && sending == nil && mayCarry(wanted.trackID)
            && (isLocal || remoteReceives)
    }
}
