import EdgeSupport
import Primitives
import RoomService
import Rooms

/// The server's messages other than events (Protocol.md).
enum ServerMessage: Sendable {
    case hello(Hello)
    /// New credentials before the last ones expire.
    case iceServers([ICEServer])
    case ok(id: Int64)
    case error(id: Int64?, SignallingError)
    case joined(id: Int64?, SessionID, SessionSnapshot)
    case snapshot(id: Int64?, SessionSnapshot)
    case resumed(id: Int64?, SessionID, sequence: UInt64)
    case answer(id: Int64?, connection: String, ConnectionAnswer)
    case allocation(id: Int64?, AllocationReport)
    case pong(id: Int64)

    /// The frame's text.
    var text: String { JSONCoding.encodeText(self) }
}

/// The first message of every socket.
struct Hello: Sendable, Hashable {
    var server: String
    var iceServers: [ICEServer]
    var pingIntervalSeconds: Int
    var resumeWindowSeconds: Int
    var maxMessageBytes: Int
}

extension ServerMessage: Encodable {
    func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: AnyKey.self)
        switch self {
        case .hello(let hello): try hello.encode(to: &fields)
        case .iceServers(let servers):
            try fields.set("type", "iceServers")
            try fields.set("iceServers", servers)
        case .ok(let id): try fields.write("ok", id: id)
        case .pong(let id): try fields.write("pong", id: id)
        case .error(let id, let error):
            try fields.write("error", id: id)
            try fields.set("code", error.code)
            try fields.set("message", error.message)
            try fields.set("retryAfter", error.retryAfterSeconds)
            try fields.set("pointer", error.place?.pointer)
            try fields.set("expected", error.place?.wanted)
            try fields.set("found", error.place?.found)
        case .joined(let id, let session, let snapshot):
            try fields.write("joined", id: id)
            try fields.set("session", session.rawValue)
            try fields.set("seq", snapshot.sequence)
            try snapshot.encode(to: &fields)
        case .snapshot(let id, let snapshot):
            try fields.write("snapshot", id: id)
            try fields.set("seq", snapshot.sequence)
            try snapshot.encode(to: &fields)
        case .resumed(let id, let session, let sequence):
            try fields.write("resumed", id: id)
            try fields.set("session", session.rawValue)
            try fields.set("seq", sequence)
        case .answer(let id, let connection, let answer):
            try fields.write("answer", id: id)
            try fields.set("connection", connection)
            try fields.set("sdp", answer.sdp)
            try fields.set("tracks", answer.tracks)
        case .allocation(let id, let report):
            try fields.write("allocation", id: id)
            try fields.set("estimate", report.estimate?.bitsPerSecond)
            try fields.set("allocated", report.allocated.bitsPerSecond)
            try fields.set("demand", report.wanted.bitsPerSecond)
            try fields.set("videos", report.videos.map { DecisionModel($0) })
        }
    }
}

typealias FieldWriter = KeyedEncodingContainer<AnyKey>

extension FieldWriter {
    /// A field; nil writes nothing.
    mutating func set(_ name: String, _ value: (some Encodable)?) throws {
        try encodeIfPresent(value, forKey: AnyKey(name))
    }

    /// Type and id of a reply.
    mutating func write(_ type: String, id: Int64?) throws {
        try set("type", type)
        try set("id", id)
    }
}

extension Hello {
    fileprivate func encode(to fields: inout FieldWriter) throws {
        try fields.set("type", "hello")
        try fields.set("protocol", SignallingEdge.subprotocol)
        try fields.set("server", server)
        try fields.set("iceServers", iceServers)
        try fields.set("pingIntervalSeconds", pingIntervalSeconds)
        try fields.set("resumeWindowSeconds", resumeWindowSeconds)
        try fields.set("maxMessageBytes", maxMessageBytes)
    }
}

extension SessionSnapshot {
    /// Writes all but `seq`, which is that of the message.
    func encode(to fields: inout FieldWriter) throws {
        try fields.set("room", RoomModel(room))
        try fields.set("participant", ParticipantModel(participant))
        try fields.set("participants", others.map { ParticipantModel($0) })
        try fields.set("subscriptions", subscriptions.map { SubscriptionModel($0) })
        try fields.set("dominantSpeaker", dominantSpeaker)
        if let drain { try fields.set("migrate", MigrationModel(deadline: drain.deadline)) }
        if !guests.isEmpty { try fields.set("guests", guests.map(GuestModel.init)) }
    }
}

/// That the server is about to end, and when, as JSON shows it.
private struct MigrationModel: Encodable {
    /// Milliseconds since 1970; absent: not known.
    var deadline: Int64?
}
