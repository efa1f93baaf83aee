public import RoomService

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
