/// The transport attributes of one section, session-level ones included.
struct TransportReading: Hashable {
    var iceUfrag: String?
    var icePassword: String?
    var fingerprints: [String]
    var setup: String?
    var hasRTCPMux: Bool
    /// `a=crypto`: keys in the text (RFC 4568).
    var hasSDESKeys: Bool
    var candidates: [Candidate]
    var endOfCandidates: Bool
    var iceOptions: [String]

    /// Gathering on a machine with many networks gives a few dozen; more is noise.
    static let maximumCandidates = 64

    init(_ attributes: [DescriptionAttribute], session: [DescriptionAttribute]) {
        iceUfrag = attributes.first("ice-ufrag") ?? session.first("ice-ufrag")
        icePassword = attributes.first("ice-pwd") ?? session.first("ice-pwd")
        let own = attributes.all("fingerprint")
        fingerprints = own.isEmpty ? session.all("fingerprint") : own
        setup = attributes.first("setup") ?? session.first("setup")
        hasRTCPMux = attributes.has("rtcp-mux") || session.has("rtcp-mux")
        hasSDESKeys = attributes.has("crypto")
        candidates = (attributes.all("candidate") + session.all("candidate"))
            .prefix(Self.maximumCandidates).compactMap { Candidate(parsing: "candidate:" + $0) }
        endOfCandidates = attributes.has("end-of-candidates") || session.has("end-of-candidates")
        iceOptions = (attributes.all("ice-options") + session.all("ice-options")).flatMap { $0.words.map(String.init) }
    }

    /// Checks everything that a connection needs; `isOffer` determines which setup roles are permitted.
    func facts(
        isOffer: Bool, place: NegotiationError.Place
    ) throws(NegotiationError) -> TransportFacts {
        guard !fingerprints.isEmpty || !hasSDESKeys else { throw NegotiationError(.sdesUnsupported, place) }
        let ice = try credentials(at: place)
        let fingerprint = try Fingerprint.sha256(in: fingerprints, at: place)
        return TransportFacts(
            iceUfrag: ice.ufrag, icePassword: ice.password, fingerprintSHA256: fingerprint,
            localSetup: try localSetup(isOffer: isOffer, place: place),
            candidates: candidates.filter { $0.component == 1 }, endOfCandidates: endOfCandidates,
            supportsTrickle: iceOptions.contains("trickle"))
    }

    /// Both credentials, well formed (RFC 8839 section 5.4).
    func credentials(at place: NegotiationError.Place) throws(NegotiationError) -> (ufrag: String, password: String) {
        guard let iceUfrag, let icePassword else { throw NegotiationError(.missingICECredentials, place) }
        guard (4...256).contains(iceUfrag.utf8.count), iceUfrag.utf8.allSatisfy(\.isICECharacter),
            (22...256).contains(icePassword.utf8.count), icePassword.utf8.allSatisfy(\.isICECharacter)
        else { throw NegotiationError(.invalidICECredentials, place) }
        return (iceUfrag, icePassword)
    }

    /// The server's role in DTLS (RFC 8842 section 5): it is passive wherever permitted. Without `a=setup` an offerer is active.
    private func localSetup(isOffer: Bool, place: NegotiationError.Place) throws(NegotiationError) -> SetupRole {
        switch (setup.map { SetupRole(rawValue: $0) } ?? .active, isOffer) {
        case (.active, _), (.actpass, true): return .passive
        case (.passive, _): return .active
        default: throw NegotiationError(.invalidSetup, place)
        }
    }
}
