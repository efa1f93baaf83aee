import AccessTokens
import NetworkIO

/// `martlet token`: mints an access token with one of the configured keys.
struct TokenCommand {
    private var file: String?
    private var isDevelopment: Bool
    private var key: String?
    private var identity: String?
    private var name: String?
    private var metadata: String?
    private var secondsValid: Int64
    private var grant = VideoGrant()

    /// Tokens are valid for more than a working day, so that a link made in the morning works in the evening.
    private static let defaultSeconds = "43200"
    /// Ten years: nobody needs more, and adding this to the time cannot overflow.
    private static let seconds: ClosedRange<Int64> = 1...315_360_000

    init(_ given: CommandArguments) throws(CommandError) {
        let syntax = CommandSyntax.token
        file = given["--config"]
        isDevelopment = given.has("--dev")
        key = given["--key"]
        identity = given["--identity"]
        name = given["--name"]
        metadata = given["--metadata"]
        let validity = given["--valid-for"] ?? Self.defaultSeconds
        guard let seconds = Int64(validity), Self.seconds.contains(seconds) else {
            let range = "\(Self.seconds.lowerBound) to \(Self.seconds.upperBound)"
            throw syntax.wrong("'\(validity)' is not valid for --valid-for; expected seconds, \(range)")
        }
        secondsValid = seconds
        grant.room = given["--room"]
        grant.preset = given["--preset"]
        if given.has("--no-publish") { grant.canPublish = false }
        if given.has("--no-subscribe") { grant.canSubscribe = false }
        grant.hidden = given.has("--hidden")
        if given.has("--admin") {
            grant.roomAdmin = true
            grant.roomList = true
            grant.roomCreate = true
        }
        grant.roomJoin = identity != nil
        guard identity != nil || grant.roomAdmin else { throw syntax.wrong("missing --identity NAME (or --admin)") }
        guard identity != "" else { throw syntax.wrong("--identity is empty") }
    }

    /// The signed token.
    func mint() throws(CommandError) -> String {
        let configuration = try Martlet.load(file, development: isDevelopment, on: nil)
        let names = configuration.keys.keys.sorted()
        guard let chosen = key ?? names.first, names.contains(chosen) else {
            let known = names.joined(separator: ", ")
            throw CommandError(
                message: "martlet: the configuration has no key '\(key ?? "")'; it has: \(known)", exitCode: 1)
        }
        let now = MonotonicClock.wallMilliseconds() / 1_000
        let claims = AccessClaims(
            apiKey: chosen, identity: identity, name: name, metadata: metadata, expiresAt: now + secondsValid,
            issuedAt: now, video: grant)
        do {
            return try TokenVerifier(configuration).mint(claims)
        } catch {
            throw CommandError(message: "martlet: cannot create the token: \(error)", exitCode: 1)
        }
    }
}

extension TokenVerifier {
    /// A verifier that knows the configured keys.
    init(_ configuration: Configuration) {
        self.init(keys: configuration.apiKeys)
    }
}

extension Configuration {
    /// The configured keys by name.
    var apiKeys: [APIKey] { keys.sorted { $0.key < $1.key }.map { APIKey(name: $0.key, secret: $0.value) } }
}
