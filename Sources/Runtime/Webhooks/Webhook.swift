import AccessTokens
import HTTPClient
import NetworkIO
import Primitives
public import RoomService
import Rooms

/// Where events are posted to.
public struct Webhook: Sendable, Hashable {
    /// Bounds of what a webhook may say.
    public enum Limits {
        /// Webhooks of one server: each has four requests on the way at most.
        public static let webhooks = 16
        public static let urlBytes = 2_048
        /// Entries of `rooms`.
        public static let rooms = 1_000
    }

    /// How events are written.
    public enum Format: String, Sendable, Hashable, CaseIterable {
        /// As the control API writes them.
        case martlet
        /// As LiveKit's servers post them, for receivers that exist. An API key signs.
        case liveKit = "livekit"
    }

    /// How a receiver knows that a request is the server's.
    public enum Signer: Sendable, Hashable {
        /// A secret of this webhook's: `Martlet-Signature`.
        case secret(String)
        /// An API key by its name: `Martlet-Signature` with the key's secret, and a token in `Authorization`.
        case key(String)
    }

    public var name: String
    /// `http` or `https`.
    public var url: String
    public var format: Format
    public var signer: Signer
    /// The types of events that are posted; nil: all.
    public var events: Set<String>?
    /// The rooms whose events are posted; nil: all.
    public var rooms: Set<String>?

    /// A webhook called `name`.
    public init(
        name: String, url: String, format: Format = .martlet, signer: Signer, events: Set<String>? = nil,
        rooms: Set<String>? = nil
    ) {
        self.name = name
        self.url = url
        self.format = format
        self.signer = signer
        self.events = events
        self.rooms = rooms
    }

    func wants(type: String, room: String) -> Bool {
        (events?.contains(type) ?? true) && (rooms?.contains(room) ?? true)
    }
}

/// What one request says.
public struct WebhookMessage: Sendable, Hashable {
    /// By which receivers know one that comes twice.
    public var id: String
    public var type: String
    public var body: [UInt8]

    /// A message of `type`.
    public init(id: String, type: String, body: [UInt8]) {
        self.id = id
        self.type = type
        self.body = body
    }
}

/// Writes an event in each of the formats that are wanted; most events make one message, some none or several. Called for every event, in order.
public typealias WebhookEncoder = @Sendable (RoomLogEntry, Set<Webhook.Format>) -> [Webhook.Format: [WebhookMessage]]

/// A webhook and how it does.
public struct WebhookStatus: Sendable, Hashable {
    /// How its receiver answers.
    public enum State: String, Sendable, Hashable, CaseIterable {
        /// The last request was accepted, or none was made yet.
        case active
        /// The last request was not accepted; it is made again.
        case failing
        /// No request was accepted for so long that none is made until the webhook is set again.
        case parked
    }

    public var webhook: Webhook
    public var state: State
    /// Events that wait.
    public var queued: Int
    /// Since the server started.
    public var delivered: UInt64
    /// Events that the receiver refused for good, and those that the queue had no room for, since the server started.
    public var lost: UInt64
    /// What went wrong last; nil while all is well.
    public var lastError: String?
}

/// Why a webhook cannot be as it is wanted.
public enum WebhookError: Error, Sendable, Hashable {
    /// A member of it is not acceptable, for the reason given.
    case invalid(String)
    /// The receiver is on this machine or in a private network, and may not be.
    case privateAddress
    /// There is no API key of the name that it gives.
    case keyNotFound
    /// There are as many as there may be.
    case tooMany
    /// The database failed.
    case storage(String)
}

// MARK: - Checks

extension Webhook {
    /// The host is the first part.
    private static var urlForm: Regex<(Substring, Substring, Substring?, Substring?)> {
        /https?:\/\/([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?(\/[!-~]*)?/
    }

    /// Refuses what cannot work. `keys`: those that may sign; `allowsPrivate`: receivers may be on this machine and in private networks.
    func check(keys: [APIKey], allowsPrivate: Bool) throws(WebhookError) {
        guard name.wholeMatch(of: /[A-Za-z0-9_-]{1,64}/) != nil else {
            throw .invalid("the name of a webhook must have 1 to 64 letters, digits, hyphens and underscores")
        }
        guard url.utf8.count <= Limits.urlBytes, let url = url.wholeMatch(of: Self.urlForm) else {
            throw .invalid(
                "the url must be http:// or https:// with a host, perhaps a port and a path, and have at most \(Limits.urlBytes) bytes"
            )
        }
        // Names are judged when they are resolved; what is plain is said at once.
        let host = url.output.1
        let address = SocketAddress(numeric: String(host.hasPrefix("[") ? host.dropFirst().dropLast() : host))
        guard allowsPrivate || host != "localhost" && address?.isPublic != false else { throw .privateAddress }
        switch signer {
        case .secret(let secret):
            guard secret.wholeMatch(of: /[ -~]{16,256}/) != nil else {
                throw .invalid("the secret must have 16 to 256 printable ASCII characters")
            }
        case .key(let signing): guard keys.contains(where: { $0.name == signing }) else { throw .keyNotFound }
        }
        if format == .liveKit, case .secret = signer {
            throw .invalid(
                "receivers of LiveKit's format verify a token: give the name of an API key in place of a secret")
        }
        guard rooms?.count ?? 0 <= Limits.rooms else {
            throw .invalid("a webhook names at most \(Limits.rooms) rooms")
        }
        for room in rooms ?? [] {
            if let fault = TextRule.identifier.fault(in: room) { throw .invalid("the name of a room \(fault)") }
        }
    }
}
