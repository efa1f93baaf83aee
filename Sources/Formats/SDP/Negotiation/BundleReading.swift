/// A remote description as a whole: its sections, which of them share the one transport, and that transport.
struct BundleReading {
    var session: SessionDescription
    var readings: [SectionReading]
    /// The mids of the BUNDLE group that counts, in its order; nil if there is none.
    var group: [String]?

    init(_ text: String, limits: SDPLimits) throws(NegotiationError) {
        session = try SessionDescription(parsing: text, limits: limits)
        guard !session.sections.isEmpty else { throw NegotiationError(.noSections) }
        // Two lite agents would wait for each other's checks for ever (RFC 8445 section 6.1.1).
        guard !session.attributes.has("ice-lite") else { throw NegotiationError(.iceLitePeer) }
        readings = []
        var mids = Set<String>()
        for (index, section) in session.sections.enumerated() {
            let reading = try SectionReading(section, index: index, session: session)
            if let mid = reading.mid, !mids.insert(mid).inserted {
                throw NegotiationError(.duplicateMid, reading.place)
            }
            readings.append(reading)
        }
        group = Self.group(session, readings)
    }

    /// The first BUNDLE group that has a section in use (RFC 9143 section 7.2); the server has one transport per peer.
    private static func group(_ session: SessionDescription, _ readings: [SectionReading]) -> [String]? {
        let groups = session.attributes.all("group").compactMap { value -> [String]? in
            let words = value.words.map(String.init)
            return words.first == "BUNDLE" ? Array(words.dropFirst()) : nil
        }
        return groups.first { group in
            let mids = Set(group)
            return readings.contains { reading in
                (reading.port != 0 || reading.isBundleOnly) && mids.contains(reading.mid ?? "")
            }
        } ?? groups.first
    }

    /// Port 0 means rejected, unless the section only waits for being bundled (RFC 9143 section 6).
    func isRejected(_ reading: SectionReading) -> Bool {
        reading.port == 0 && !(reading.isBundleOnly && isBundled(reading))
    }

    func isBundled(_ reading: SectionReading) -> Bool { reading.mid.map { group?.contains($0) ?? false } ?? false }

    /// Checks and returns the transport of the sections at `accepted` indices; nil if there are none.
    ///
    /// It is that of the first accepted section of the group; if that one is bundle-only without transport attributes, that of the group's first section,
    /// whether accepted or not.
    func transport(accepted: [Int], isOffer: Bool) throws(NegotiationError) -> TransportFacts? {
        guard let first = accepted.first else { return nil }
        // In a bundle, the section that has the transport describes it for all (RFC 9429 section 5.2.1).
        let isMultiplexed = readings.contains { isBundled($0) && $0.transport.hasRTCPMux }
        for index in accepted where readings[index].kind != .application {
            let reading = readings[index]
            guard reading.transport.hasRTCPMux || isMultiplexed && isBundled(reading) else {
                throw NegotiationError(.rtcpMuxRequired, reading.place)
            }
        }
        let order = (group ?? []).compactMap { mid in readings.firstIndex { $0.mid == mid } }
        let candidates = order.filter(accepted.contains) + [first] + order
        let source = candidates.first { readings[$0].transport.iceUfrag != nil } ?? candidates[0]
        return try readings[source].transport.facts(isOffer: isOffer, place: readings[source].place)
    }
}

extension TransportFacts {
    /// Checks this against what was negotiated before: certificate and DTLS roles stay for the life of a connection, ICE credentials may change. Returns
    /// whether they did.
    mutating func follow(_ previous: TransportFacts?, setup: String?) throws(NegotiationError) -> Bool {
        guard let previous else { return false }
        guard fingerprintSHA256 == previous.fingerprintSHA256 else { throw NegotiationError(.fingerprintChanged) }
        if setup == SetupRole.actpass.rawValue {
            localSetup = previous.localSetup
        } else if localSetup != previous.localSetup {
            throw NegotiationError(.setupChanged)
        }
        return iceUfrag != previous.iceUfrag || icePassword != previous.icePassword
    }
}
