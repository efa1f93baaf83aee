import EdgeSupport
import Primitives
import Rooms

/// One frame from a client: a request that may ask for a reply, or what is wrong with it.
struct ClientFrame: Sendable {
    /// The client's number for the reply; nil when it wants none.
    var id: Int64?
    var request: Result<ClientRequest, SignallingError>
}

/// What a client may request (Protocol.md sections 3 to 6).
enum ClientRequest: Sendable, Hashable {
    case join(JoinFields)
    case resume(session: SessionID, after: UInt64, room: String? = nil)
    case snapshot
    /// What the client is sent, and why it is not more.
    case allocation
    case offer(connection: String, sdp: String)
    case answer(connection: String, sdp: String)
    case ice(connection: String, candidate: String?, mid: String?)
    case bye(connection: String, keepsSubscriptions: Bool)
    /// Everything that `RoomHost.perform` does; `announce` may bring several at once.
    case perform([SessionRequest])
    /// nil: only moderators may join.
    case lock(password: String?)
    case unlock
    /// Another token for the stay.
    case refresh(token: String)
    case ping
    case leave
}

/// The fields of `join`.
struct JoinFields: Sendable, Hashable {
    var room: String?
    var password: String?
    var name: String?
    var metadata: String?
    var profile = ParticipantProfile.full
    var autoSubscribe = true
    var audioOnly = false
    var encrypted = false
    var roster: Bool?
    var speakers = false
    var client: String?
    var trace: TraceContext?
    var data: Bool?
    var receivingConnection: String?
    /// Only the client makes offers, also for what it receives.
    var makesAllOffers = false
    var bandwidth = BandwidthProfile()
}

/// A refusal, as an `error` message carries it.
struct SignallingError: Error, Sendable, Hashable {
    var code: String
    var message: String
    var retryAfterSeconds: Double?
    /// Which field of the message it is about.
    var place: JSONFault?

    init(_ code: String, _ message: String, retryAfterSeconds: Double? = nil) {
        self.code = code
        self.message = message
        self.retryAfterSeconds = retryAfterSeconds
    }

    private init(_ code: String, _ place: JSONFault) {
        self.init(code, place.path.isEmpty ? "Not a JSON object." : place.sentence)
        self.place = place
    }

    init(_ error: RoomError) {
        self.init(error.code.rawValue, error.sentence, retryAfterSeconds: error.retryAfter?.seconds)
    }

    /// A field that is missing or has the wrong type, or text that is not JSON.
    static func malformed(_ place: JSONFault) -> Self { Self("malformed_message", place) }
    /// A field with a value that is not allowed.
    static func invalid(_ place: JSONFault) -> Self { Self("invalid_request", place) }
    static let unknownType = Self("unknown_type", "Unknown message type.")
    static let notJoined = Self("not_joined", "Join first.")
    static let alreadyJoined = Self("already_joined", "This socket already has a session.")
    /// The same, with what `text` contains where something else was expected.
    func explained(by text: String) -> Self {
        guard let place else { return self }
        var error = Self(code, JSONCoding.explained(place, by: Array(text.utf8)))
        error.retryAfterSeconds = retryAfterSeconds
        return error
    }

    static let tooManyRequests = Self("too_many_requests", "Too many requests.", retryAfterSeconds: 1)
}
