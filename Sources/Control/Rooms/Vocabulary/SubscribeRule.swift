public import AccessTokens
public import MediaControl

/// One of the ordered rules that decide which tracks a participant may receive. The last rule that matches a track decides; a track that no rule matches is
/// not received.
public struct SubscribeRule: Sendable, Hashable {
    /// The tracks that a rule applies to.
    public enum Match: Sendable, Hashable {
        case all
        /// All tracks of one participant, named by sid or identity.
        case participant(String)
        /// One track, named by sid.
        case track(String)
        case kind(MediaKind)
        case source(TrackSource)
    }

    public var includes: Bool
    public var match: Match

    /// A rule that includes or excludes.
    public init(includes: Bool, _ match: Match) {
        self.includes = includes
        self.match = match
    }

    /// The rule that a token grants.
    public init(_ granted: GrantedSubscribeRule) {
        includes = granted.includes
        match =
            switch granted.match {
            case .all: .all
            case .participant(let name): .participant(name)
            case .track(let sid): .track(sid)
            case .kind(.audio): .kind(.audio)
            case .kind(.video): .kind(.video)
            case .source(.microphone): .source(.microphone)
            case .source(.camera): .source(.camera)
            case .source(.screen): .source(.screen)
            case .source(.screenAudio): .source(.screenAudio)
            case .source(.unknown): .source(.unknown)
            }
    }

    /// The rules of one participant, or of a room.
    public static let maximumCount = AccessTokenLimits.subscribeRules

    func matches(_ track: TrackInfo) -> Bool {
        switch match {
        case .all: true
        case .participant(let name): name == track.participant || name == track.identity
        case .track(let sid): sid == track.sid
        case .kind(let kind): kind == track.kind
        case .source(let source): source == track.source
        }
    }
}

extension [SubscribeRule] {
    /// The rules that a token grants; nil if it has none.
    init?(_ grant: VideoGrant) {
        guard let granted = grant.subscribeRules else { return nil }
        self = granted.map { SubscribeRule($0) }
    }

    /// Whether a participant with these rules may receive `track`.
    func permit(_ track: TrackInfo) -> Bool { last { $0.matches(track) }?.includes ?? false }
}
