public import AccessTokens
import Cryptography
import Foundation
import Primitives
import Rooms

/// Which ICE servers are announced to a client, and with which credentials.
///
/// A TURN server with a shared secret gets credentials that expire (draft-uberti-behave-turn-rest-00, which coturn calls `use-auth-secret`): the user name
/// is the second at which they expire and a mark of the participant, the password its HMAC-SHA1 under the secret. The TURN server need not be notified, and
/// credentials that a client passes on soon expire.
public struct ICEServers: Sendable {
    /// One configured server, and the clients to which it is announced.
    public struct Entry: Sendable, Hashable {
        /// The announced server, with fixed credentials if there is no secret.
        public var server: ICEServer
        /// The secret that is shared with the TURN server.
        public var secret: String?
        /// Only clients with tokens of these API keys; empty: all.
        public var keys: [String] = []
        /// Only for these rooms, where a trailing `*` stands for anything; empty: all.
        public var rooms: [String] = []
        /// Only for pages from these origins; empty: all, and clients that are no pages.
        public var origins: [String] = []

        /// A server that is announced to everybody.
        public init(_ server: ICEServer) { self.server = server }
    }

    /// What is configured.
    public struct Settings: Sendable, Hashable {
        public var entries: [Entry]
        /// How long credentials that are made from a secret are valid.
        public var lifetimeSeconds: Int64
        /// The room of clients that name none.
        public var defaultRoom: String?

        /// Servers whose credentials are valid for `lifetimeSeconds`.
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

    /// Servers whose credentials are valid for `lifetimeSeconds`; `now` gives seconds since 1970.
    public init(_ entries: [Entry], lifetimeSeconds: Int64 = 3_600, now: @escaping @Sendable () -> Int64 = { 0 }) {
        self.init(Live(Settings(entries, lifetimeSeconds: lifetimeSeconds)), now: now)
    }

    /// Servers that may change.
    public init(_ settings: Live<Settings>, now: @escaping @Sendable () -> Int64) {
        self.settings = settings
        self.now = now
    }

    /// Gets an element whenever the configured servers change, from now on.
    public var changes: AsyncStream<Void> { settings.changes }

    /// How long the credentials of a client of a room are valid; nil: for ever.
    public func lifetimeSeconds(for claims: AccessClaims, room: String?, origin: String?) -> Int64? {
        let settings = settings.value
        let hasSecret = settings.announced(to: claims, room, origin).contains { $0.secret != nil }
        return hasSecret ? settings.lifetimeSeconds : nil
    }

    /// The servers that are announced to the bearer of a token. `room` is the room that the client names outside its token, `origin` that of its page.
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

    /// Distinguishes participants, for a TURN server's quotas and logs, without revealing who they are.
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
