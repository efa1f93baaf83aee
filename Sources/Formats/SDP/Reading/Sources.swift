/// `a=ssrc` and `a=ssrc-group` lines of a section (RFC 5576).
struct Sources: Hashable {
    /// One SSRC and the content of its lines.
    struct Source: Hashable {
        var ssrc: UInt32
        var cname: String?
        var msid: String?
    }

    /// In order of first appearance.
    private(set) var sources: [Source] = []
    /// Groups in their order: FID (media, retransmission), SIM (layers), FEC-FR.
    private(set) var groups: [(semantics: String, members: [UInt32])] = []

    /// Real sections name 6 SSRCs; 4 times that is far beyond what is used.
    private static let maximumSources = 24

    init() {}

    init(attributes: [DescriptionAttribute]) {
        for attribute in attributes {
            guard let value = attribute.value else { continue }
            if attribute.name == "ssrc" { addSource(value) }
            if attribute.name == "ssrc-group" { addGroup(value) }
        }
    }

    private mutating func addSource(_ value: String) {
        let words = value.split(separator: " ", maxSplits: 1)
        guard let first = words.first, let ssrc = UInt32(first) else { return }
        let index: Int
        if let known = sources.firstIndex(where: { $0.ssrc == ssrc }) {
            index = known
        } else {
            guard sources.count < Self.maximumSources else { return }
            index = sources.count
            sources.append(Source(ssrc: ssrc))
        }
        guard words.count == 2 else { return }
        let attribute = DescriptionAttribute(parsing: String(words[1]))
        if attribute.name == "cname" { sources[index].cname = attribute.value }
        if attribute.name == "msid" { sources[index].msid = attribute.value }
    }

    private mutating func addGroup(_ value: String) {
        let words = value.words
        let members = words.dropFirst().compactMap { UInt32($0) }
        guard let semantics = words.first, !members.isEmpty, groups.count < Self.maximumSources else { return }
        groups.append((String(semantics), members))
    }

    /// SSRCs of media, without those that only repair others.
    var primaries: [UInt32] {
        let repairs = groups.filter { $0.semantics != "SIM" }.flatMap { $0.members.dropFirst() }
        return sources.map(\.ssrc).filter { !repairs.contains($0) }
    }

    /// The SSRC of retransmissions of `ssrc`.
    func retransmission(of ssrc: UInt32) -> UInt32? {
        groups.first { $0.semantics == "FID" && $0.members.count == 2 && $0.members[0] == ssrc }?.members[1]
    }

    /// Layers of the first SIM group, the form of simulcast before rids.
    var simulcastGroup: [UInt32]? { groups.first { $0.semantics == "SIM" }?.members }

    /// Several tracks that only their SSRCs distinguish: Plan B.
    var holdsSeveralTracks: Bool { Set(sources.compactMap(\.msid)).count > 1 }

    static func == (a: Self, b: Self) -> Bool {
        a.sources == b.sources && a.groups.elementsEqual(b.groups) { $0 == $1 }
    }

    func hash(into hasher: inout Hasher) { hasher.combine(sources) }
}
