/// Who may receive a participant's tracks.
public struct Audience: Sendable, Hashable, ExpressibleByArrayLiteral {
    /// What an identity may receive: the sids of tracks, or nil for all of them.
    private var tracksByIdentity: [String: Set<String>?] = [:]

    /// Nobody.
    public init() {}

    /// These identities may receive everything.
    public init(_ identities: some Sequence<String>) {
        for identity in identities { grant(nil, to: identity) }
    }

    public init(arrayLiteral identities: String...) { self.init(identities) }

    /// Lets `identity` receive the tracks with these sids, or, with nil, all.
    public mutating func grant(_ tracks: Set<String>?, to identity: String) {
        tracksByIdentity.updateValue(tracks, forKey: identity)
    }

    /// How many identities may receive something.
    var identityCount: Int { tracksByIdentity.count }
    /// The most tracks that one of them is limited to.
    var mostTracks: Int { tracksByIdentity.values.reduce(0) { max($0, $1?.count ?? 0) } }

    /// Whether `identity` may receive the track `sid`.
    func permits(_ sid: String, for identity: String) -> Bool {
        guard let tracks = tracksByIdentity[identity] else { return false }
        return tracks?.contains(sid) ?? true
    }
}
