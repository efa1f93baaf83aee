/// An ICE candidate (`a=candidate`, RFC 8839 section 5.1).
public struct Candidate: Sendable, Hashable {
    /// How it was found.
    public enum Kind: String, Sendable, Hashable { case host, srflx, prflx, relay }
    /// `udp` or `tcp`, compared without regard to case.
    public enum Transport: String, Sendable, Hashable { case udp, tcp }

    /// 1 to 32 characters that are equal for candidates of one kind and base.
    public var foundation: String
    /// 1 for RTP (with rtcp-mux the only one), 2 for RTCP.
    public var component: Int
    public var transport: Transport
    public var priority: UInt32
    /// An IP address, or a name such as an mDNS `.local` one.
    public var address: String
    public var port: UInt16
    public var kind: Kind
    /// `active`, `passive` or `so` for TCP (RFC 6544).
    public var tcpType: String?

    /// A candidate as the server lists its own ones; the priority follows from `localPreference` (RFC 8445 section 5.1.2).
    public init(
        foundation: String, address: String, port: UInt16, transport: Transport = .udp, kind: Kind = .host,
        localPreference: UInt16 = .max, tcpType: String? = nil
    ) {
        self.foundation = foundation
        self.component = 1
        self.transport = transport
        self.priority =
            UInt32(transport == .udp ? kind.typePreference : kind.typePreferenceOverTCP) << 24 | UInt32(localPreference)
            << 8 | 255
        self.address = address
        self.port = port
        self.kind = kind
        self.tcpType = tcpType
    }

    /// The local preference of a passive TCP candidate, the `index`th most preferred (RFC 6544 section 4.2): the direction in the upper three bits (4 for a
    /// passive host candidate) and 13 freely chosen bits.
    public static func passivePreference(_ index: Int) -> UInt16 { 4 << 13 | UInt16(max(0, 8_191 - index)) }

    /// Parses `candidate:…`, with or without `a=` before it; nil for anything malformed or of an unknown kind.
    public init?(parsing text: String) {
        var rest = text[...].trimmed
        if rest.hasPrefix("a=") { rest = rest.dropFirst(2) }
        guard rest.hasPrefix("candidate:") else { return nil }
        let words = String(rest.dropFirst("candidate:".count)).words
        guard words.count >= 8, (1...32).contains(words[0].utf8.count), words[0].utf8.allSatisfy(\.isICECharacter),
            let component = Int(words[1]), (1...256).contains(component),
            let transport = Transport(rawValue: words[2].lowercased()), let priority = UInt32(words[3]),
            Self.isPlausibleAddress(words[4]), let port = UInt16(words[5]), words[6] == "typ",
            let kind = Kind(rawValue: words[7].lowercased())
        else { return nil }
        foundation = String(words[0])
        self.component = component
        self.transport = transport
        self.priority = priority
        address = String(words[4])
        self.port = port
        self.kind = kind
        let tcp = words.indices.dropFirst(8).first { words[$0] == "tcptype" && $0 + 1 < words.count }
        tcpType = tcp.map { words[$0 + 1].lowercased() }
    }

    /// As written after `a=`.
    public var text: String {
        "candidate:\(foundation) \(component) \(transport.rawValue) \(priority) \(address) \(port) typ \(kind.rawValue)"
            + (tcpType.map { " tcptype \($0)" } ?? "")
    }

    /// Whether the address is hidden by a multicast DNS name; a server cannot use such a candidate, and it does no harm.
    public var isMulticastDNS: Bool { address.lowercased().hasSuffix(".local") }

    private static func isPlausibleAddress(_ word: Substring) -> Bool {
        // A name is at most 253 characters; the engine never resolves one.
        word.utf8.count <= 253
            && word.utf8.allSatisfy { $0.isAlphanumeric || [0x2e, 0x3a, 0x2d, 0x25, 0x5f].contains($0) }
    }
}

extension Candidate.Kind {
    /// RFC 8445 section 5.1.2.2.
    var typePreference: UInt8 {
        switch self {
        case .host: 126
        case .prflx: 110
        case .srflx: 100
        case .relay: 0
        }
    }

    /// Below every kind over UDP except a relay, as RFC 6544 section 4.2 recommends where UDP is preferred; for hosts, libwebrtc's value.
    var typePreferenceOverTCP: UInt8 {
        switch self {
        case .host: 90
        case .prflx: 80
        case .srflx: 70
        case .relay: 0
        }
    }
}
