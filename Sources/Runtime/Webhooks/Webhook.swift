import AccessTokens
import HTTPClient
import NetworkIO
import Primitives
public import RoomService
import Rooms

/// A webhook: a receiver to which events are posted.
public struct Webhook: Sendable, Hashable {
    /// Limits of a webhook's values.
    public enum Limits {
        /// Webhooks per server: each has at most four concurrent requests.
        public static let webhooks = 16
        public static let urlBytes = 2_048
        /// The number of entries in `rooms`.
        public static let rooms = 1_000
    }

    /// The format of events.
    public enum Format: String, Sendable, Hashable, CaseIterable {
        /// The format of the control API.
        case martlet
        /// The format of LiveKit's servers, for existing receivers. An API key signs.
        case liveKit = "livekit"
    }

    /// How a receiver can verify that a request comes from the server.
    public enum Signer: Sendable, Hashable {
        /// A secret of this webhook: `Martlet-Signature`.
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

/// The content of one request.
public struct WebhookMessage: Sendable, Hashable {
    /// By this, receivers recognise one that arrives twice.
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

/// Encodes an event in each of the requested formats; most events make one message, some none or several. Called for every event, in order.
public typealias WebhookEncoder = @Sendable (RoomLogEntry, Set<Webhook.Format>) -> [Webhook.Format: [WebhookMessage]]

/// A webhook and its state.
public struct WebhookStatus: Sendable, Hashable {
    /// The state of its receiver.
    public enum State: String, Sendable, Hashable, CaseIterable {
        /// The last request was accepted, or none was made yet.
        case active
        /// The last request was not accepted; it is repeated.
        case failing
        /// No request was accepted for so long that none is made until the webhook is set again.
        case parked
    }

    public var webhook: Webhook
    public var state: State
    /// The number of waiting events.
    public var queued: Int
    /// Since the server started.
    public var delivered: UInt64
    /// Events that the receiver refused for good, and those that the queue had no room for, since the server started.
    public var lost: UInt64
    /// The last error; nil while all is well.
    public var lastError: String?
}

/// Why a webhook cannot be set.
public enum WebhookError: Error, Sendable, Hashable {
    /// A value is invalid, for the reason given.
    case invalid(String)
    /// The receiver is on this machine or in a private network, which is not permitted.
    case privateAddress
    /// There is no API key with the name that it contains.
    case keyNotFound
    /// The maximum number is reached.
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

    /// Refuses a webhook that cannot work. `keys`: those that may sign; `allowsPrivate`: receivers may be on this machine and in private networks.
    func check(keys: [APIKey], allowsPrivate: Bool) throws(WebhookError) {
        guard name.wholeMatch(of: /[A-Za-z0-9_-]{1,64}/) != nil else {
            throw .invalid("the name of a webhook must have 1 to 64 letters, digits, hyphens and underscores")
        }
        guard url.utf8.count <= Limits.urlBytes, let url = url.wholeMatch(of: Self.urlForm) else {
            throw .invalid(
                "the url must be http:// or https:// with a host, perhaps a port and a path, and have at most \(Limits.urlBytes) bytes"
            )
        }
        // Names are checked when they are resolved; literal addresses are refused at once.
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
