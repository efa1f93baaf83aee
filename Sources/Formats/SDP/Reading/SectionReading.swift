/// One m-section of a remote description, interpreted: session-level defaults applied, formats and extensions parsed.
struct SectionReading: Hashable {
    var index: Int
    /// nil if the description names none (RFC 9143 makes it optional in offers).
    var mid: String?
    var media: String
    var kind: SectionKind?
    var port: UInt16
    var proto: String
    /// The words after the protocol.
    var formatWords: [String]
    /// The section's attributes about them (`a=rtpmap`, `a=fmtp`), unchanged.
    var formatLines: [DescriptionAttribute]
    var isBundleOnly: Bool
    /// From the remote's point of view.
    var direction: Direction
    var formats = FormatTable()
    /// The `direction` of each is from the remote's point of view.
    var extensions: [ExtensionMapping]
    var rids: [RID]
    var simulcast: Simulcast?
    var sources: Sources
    /// Stream and track of the first `a=msid`, or of the SSRC lines.
    var msid: (stream: String, track: String)?
    var transport: TransportReading
    var hasReducedSizeRTCP: Bool
    /// `a=extmap-allow-mixed` in the section, as Firefox writes it.
    var allowsMixedExtensionsItself: Bool
    /// `a=msid` is in the section itself, not only in SSRC lines.
    var hasMediaLevelMsid: Bool
    var hasReceiverReferenceTime: Bool
    var contentHint: String?
    var packetTime: Int?
    var dataChannel: DataChannelFacts

    static func == (a: Self, b: Self) -> Bool { a.index == b.index && a.mid == b.mid && a.formats == b.formats }
    func hash(into hasher: inout Hasher) { hasher.combine(index) }

    init(_ section: DescriptionSection, index: Int, session: SessionDescription) throws(NegotiationError) {
        let attributes = section.attributes
        self.index = index
        media = section.media
        kind = SectionKind(rawValue: section.media)
        port = section.port
        proto = section.proto.uppercased()
        formatWords = section.formats
        formatLines = attributes.filter { ["rtpmap", "fmtp"].contains($0.name) }
        mid = attributes.first("mid").map { String($0[...].trimmed) }
        if let mid, !Self.isValid(mid: mid) { throw NegotiationError(.invalidMid, .section(index, mid: nil)) }
        isBundleOnly = attributes.has("bundle-only")
        direction = Self.direction(attributes) ?? Self.direction(session.attributes) ?? .sendrecv
        extensions = Self.extensions(attributes, session: session.attributes)
        rids = Array(attributes.all("rid").lazy.compactMap(RID.init(parsing:)).prefix(Self.maximumRIDs))
        simulcast = attributes.first("simulcast").map(Simulcast.init(parsing:))
        sources = Sources(attributes: attributes)
        msid = Self.msid(attributes, sources)
        transport = TransportReading(attributes, session: session.attributes)
        hasReducedSizeRTCP = attributes.has("rtcp-rsize")
        allowsMixedExtensionsItself = attributes.has("extmap-allow-mixed")
        hasMediaLevelMsid = attributes.has("msid")
        hasReceiverReferenceTime = attributes.all("rtcp-xr").contains { $0.contains("rcvr-rtt") }
        contentHint = attributes.first("content")
        packetTime = attributes.first("ptime").flatMap { Int($0) }.flatMap { (1...120).contains($0) ? $0 : nil }
        dataChannel = DataChannelFacts(
            sctpPort: attributes.first("sctp-port").flatMap { UInt16($0) } ?? 5000,
            maximumMessageSize: attributes.first("max-message-size").flatMap { Int($0) } ?? 65536)
        if let kind, kind != .application { formats = FormatTable(section, kind: kind) }
    }

    /// The place that errors about it name.
    var place: NegotiationError.Place { .section(index, mid: mid) }

    /// RTP over DTLS-SRTP in all its spellings (RFC 9429 section 5.1.2), without the TCP-only ones' meaning: ICE decides.
    var isSecureRTP: Bool {
        [
            "UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVP", "TCP/TLS/RTP/SAVPF", "TCP/TLS/RTP/SAVP", "TCP/DTLS/RTP/SAVPF",
            "TCP/DTLS/RTP/SAVP", "RTP/SAVPF", "RTP/SAVP",
        ].contains(proto)
    }

    /// SCTP over DTLS (RFC 8841).
    var isDataChannel: Bool { kind == .application && proto.hasSuffix("DTLS/SCTP") }
}

extension SectionReading {
    /// More layers than anybody sends in both directions together.
    private static let maximumRIDs = 16

    /// A token of at most 16 characters: the longest value of a one-byte header extension (RFC 8285 section 4.2).
    static func isValid(mid: String) -> Bool {
        (1...16).contains(mid.utf8.count) && mid.utf8.allSatisfy(\.isTokenCharacter)
    }

    private static func direction(_ attributes: [DescriptionAttribute]) -> Direction? {
        for attribute in attributes where attribute.value == nil {
            if let direction = Direction(rawValue: attribute.name) { return direction }
        }
        return nil
    }

    /// The first id of each URI; section level goes before session level.
    private static func extensions(
        _ attributes: [DescriptionAttribute], session: [DescriptionAttribute]
    ) -> [ExtensionMapping] {
        var mappings: [ExtensionMapping] = []
        for value in attributes.all("extmap") + session.all("extmap") {
            guard let mapping = ExtensionMapping(parsing: value) else { continue }
            if mappings.contains(where: { $0.id == mapping.id || $0.uri == mapping.uri }) { continue }
            mappings.append(mapping)
        }
        return mappings
    }

    private static func msid(
        _ attributes: [DescriptionAttribute], _ sources: Sources
    ) -> (stream: String, track: String)? {
        guard let value = attributes.first("msid") ?? sources.sources.compactMap(\.msid).first else { return nil }
        let words = value.words
        guard let stream = words.first else { return nil }
        return (String(stream), words.count > 1 ? String(words[1]) : "")
    }
}
