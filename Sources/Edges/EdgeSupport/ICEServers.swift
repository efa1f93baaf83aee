public import AccessTokens
import Cryptography
import Foundation
import Primitives
import Rooms

/// Which ICE servers a client is told of, and with which credentials.
///
/// A TURN server with a shared secret gets credentials that are good for a while (draft-uberti-behave-turn-rest-00, which coturn calls `use-auth-secret`): the user name
/// is the second at which they expire and a mark of the participant, the password its HMAC-SHA1 under the secret. Nothing has to be told to the server, and
/// what a client passes on is soon worth nothing.
public struct ICEServers: Sendable {
    /// One configured server, and who is told of it.
    public struct Entry: Sendable, Hashable {
        /// What is told, with credentials that do not change where there is no secret.
        public var server: ICEServer
        /// What the TURN server knows, too.
        public var secret: String?
        /// Only clients with tokens of these API keys; empty: all.
        public var keys: [String] = []
        /// Only for these rooms, where a trailing `*` stands for anything; empty: all.
        public var rooms: [String] = []
        /// Only for pages from these origins; empty: all, and clients that are no pages.
        public var origins: [String] = []

        /// A server that everybody is told of.
        public init(_ server: ICEServer) { self.server = server }
    }

    /// What is configured.
    public struct Settings: Sendable, Hashable {
        public var entries: [Entry]
        /// How long credentials are good that are made from a secret.
        public var lifetimeSeconds: Int64
        /// Where clients go that name no room.
        public var defaultRoom: String?

        /// Servers whose credentials are good for `lifetimeSeconds`.
        public init(_ entries: [Entry], lifetimeSeconds: Int64 = 3_600, defaultRoom: String? = nil) {
            self.entries = entries
            self.lifetimeSeconds = lifetimeSeconds
            self.defaultRoom = defaultRoom
        }

        fileprivate func announced(to claims: AccessClaims, _ room: String?, _ origin: String?) -> [Entry] {
            entries.filter { $0.concerns(claims, room ?? defaultRoom, origin) }
        }
    }

    private let settings: Live<Settings>
    private let now: @Sendable () -> Int64

    /// Servers whose credentials are good for `lifetimeSeconds`; `now` gives seconds since 1970.
    public init(_ entries: [Entry], lifetimeSeconds: Int64 = 3_600, now: @escaping @Sendable () -> Int64 = { 0 }) {
        self.init(Live(Settings(entries, lifetimeSeconds: lifetimeSeconds)), now: now)
    }

    /// Servers that may change.
    public init(_ settings: Live<Settings>, now: @escaping @Sendable () -> Int64) {
        self.settings = settings
        self.now = now
    }

    /// An element when the configuration names other servers, from now on.
    public var changes: AsyncStream<Void> { settings.changes }

    /// How long the credentials are good that a client of a room is told; nil: for ever.
    public func lifetimeSeconds(for claims: AccessClaims, room: String?, origin: String?) -> Int64? {
        let settings = settings.value
        let hasSecret = settings.announced(to: claims, room, origin).contains { $0.secret != nil }
        return hasSecret ? settings.lifetimeSeconds : nil
    }

    /// What the bearer of a token is told. `room` is the room that it names beside its token, `origin` that of its page.
    public func servers(for claims: AccessClaims, room: String?, origin: String?) -> [ICEServer] {
        let settings = settings.value
        return settings.announced(to: claims, room, origin).map { entry in
            guard let secret = entry.secret else { return entry.server }
            var server = entry.server
            let username = "\(now() + settings.lifetimeSeconds):\(Self.mark(claims))"
            server.username = username
            server.credential = Self.password(of: username, secret: secret)
            return server
        }
    }

    /// The password that a TURN server with `secret` expects of `username`.
    static func password(of username: String, secret: String) -> String {
        Data(Digest.hmacSHA1(key: Array(secret.utf8), Array(username.utf8))).base64EncodedString()
    }

    /// Tells participants apart, for a TURN server's quotas and logs, without telling it who they are.
    private static func mark(_ claims: AccessClaims) -> String {
        let digest = Digest.sha256(Array("\(claims.apiKey)\n\(claims.identity ?? "")".utf8))
        return digest.prefix(8).hexadecimal
    }
}

extension ICEServers.Entry {
    fileprivate func concerns(_ claims: AccessClaims, _ room: String?, _ origin: String?) -> Bool {
        guard keys.isEmpty || keys.contains(claims.apiKey) else { return false }
        guard origins.isEmpty || origin.map(origins.contains) ?? false else { return false }
        let granted = claims.video.room.flatMap { $0.isEmpty ? nil : $0 }
        guard !rooms.isEmpty else { return true }
        guard let name = granted ?? room else { return false }
        return rooms.contains { $0.hasSuffix("*") ? name.hasPrefix($0.dropLast()) : name == $0 }
    }
}
