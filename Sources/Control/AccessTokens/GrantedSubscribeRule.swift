/// One of the ordered rules in `subscribeRules`, of the same form as the rules of a policy: an action and one member that says which tracks it applies to.
public struct GrantedSubscribeRule: Sendable, Hashable {
    /// The tracks that a rule applies to.
    public enum Match: Sendable, Hashable {
        case all
        /// All tracks of one participant, named by sid or identity.
        case participant(String)
        /// One track, named by sid.
        case track(String)
        case kind(Kind)
        case source(Source)
    }

    /// A kind of media.
    public enum Kind: String, Sendable, Hashable, CaseIterable { case audio, video }

    /// A source by the word that policies use.
    public enum Source: String, Sendable, Hashable, CaseIterable {
        case microphone, camera, screen, screenAudio, unknown
    }

    public var includes: Bool
    public var match: Match

    /// A rule that includes or excludes.
    public init(includes: Bool, _ match: Match) {
        self.includes = includes
        self.match = match
    }

    /// Reads a rule. A rule that is not understood is a bad claim, because the tracks that it excludes would otherwise be received.
    init(_ members: borrowing JSONObject) throws(AccessTokenError) {
        guard members.count == 2 else { throw .badClaim }
        switch try members.string("action", limit: 7) {
        case "include": includes = true
        case "exclude": includes = false
        default: throw .badClaim
        }
        if let all = try members.bool("all") {
            guard all else { throw .badClaim }
            match = .all
        } else if let name = try members.string("participant", limit: AccessTokenLimits.identityBytes) {
            match = .participant(name)
        } else if let sid = try members.string("track", limit: AccessTokenLimits.identityBytes) {
            match = .track(sid)
        } else if let kind = try members.string("kind", limit: AccessTokenLimits.identityBytes).flatMap(Kind.init) {
            match = .kind(kind)
        } else if let source = try members.string("source", limit: AccessTokenLimits.identityBytes)
            .flatMap(Source.init)
        {
            match = .source(source)
        } else {
            throw .badClaim
        }
    }

    /// Writes the rule; false if it cannot be written.
    func write(into members: borrowing JSONObject) -> Bool {
        guard members.set("action", includes ? "include" : "exclude") else { return false }
        return switch match {
        case .all: members.set("all", true)
        case .participant(let name): members.set("participant", name)
        case .track(let sid): members.set("track", sid)
        case .kind(let kind): members.set("kind", kind.rawValue)
        case .source(let source): members.set("source", source.rawValue)
        }
    }

    /// Whether it is short enough to be accepted again.
    var isWithinLimits: Bool {
        switch match {
        case .participant(let name), .track(let name): name.utf8.count <= AccessTokenLimits.identityBytes
        case .all, .kind, .source: true
        }
    }
}
