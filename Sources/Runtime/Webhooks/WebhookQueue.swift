import Primitives
import Storage

/// An event on its way to a webhook.
struct QueuedEvent: Sendable, Hashable {
    var id: Int64
    var eventID: String
    /// In which it was written: the webhook may have another by now.
    var format: Webhook.Format
    var body: [UInt8]
}

/// The webhooks and what waits for them, in the database.
///
/// A room's events have one lane of several: within a lane the next is sent when the one before was accepted, so those of a room arrive in order, and
/// one lane's wait is not another's.
struct WebhookQueue: Sendable {
    /// Requests of one webhook that are on the way at once.
    static let lanes = 4
    /// Events that wait for one webhook, some 100 MB: more push the oldest out. A receiver that was dead for so long starts anew.
    static let maxEvents: Int64 = 100_000

    private let database: Database

    /// The tables that it needs.
    static let schema: [SchemaStep] = [
        "CREATE TABLE IF NOT EXISTS webhooks (name TEXT PRIMARY KEY, url TEXT, secret TEXT, key TEXT, events TEXT, rooms TEXT)",
        "CREATE TABLE IF NOT EXISTS webhook_events (id INTEGER PRIMARY KEY AUTOINCREMENT, webhook TEXT, lane INTEGER, event TEXT, body BLOB)",
        "CREATE INDEX IF NOT EXISTS webhook_lanes ON webhook_events (webhook, lane, id)",
        .column("format", type: "TEXT", of: "webhooks"),
        .column("format", type: "TEXT", of: "webhook_events"),
        // Why it is parked; NULL where it is not.
        .column("parked", type: "TEXT", of: "webhooks"),
    ]

    init(_ database: Database) { self.database = database }

    /// The lane of a room's events; the same in each life of the server.
    static func lane(of room: String) -> Int {
        Int(room.utf8.reduce(UInt32(7)) { $0 &* 31 &+ UInt32($1) } % UInt32(lanes))
    }

    /// Each webhook, and why it is parked; nil where it is not.
    func webhooks() async throws(DatabaseError) -> [(webhook: Webhook, parked: String?)] {
        try await database.transaction { (sql) throws(DatabaseError) in
            try sql.run("SELECT name, url, secret, key, events, rooms, format, parked FROM webhooks ORDER BY name")
        }.map { row in
            let webhook = Webhook(
                name: row[0].string ?? "", url: row[1].string ?? "",
                format: Self.format(row[6]), signer: row[2].string.map { .secret($0) } ?? .key(row[3].string ?? ""),
                events: row[4].string.map(Self.words), rooms: row[5].string.map(Self.words))
            return (webhook, row[7].string)
        }
    }

    /// The webhook is parked because of this error, until it is put again.
    func park(_ name: String, _ error: String) async throws(DatabaseError) {
        try await database.transaction { (sql) throws(DatabaseError) in
            _ = try sql.run("UPDATE webhooks SET parked = ? WHERE name = ?", .text(error), .text(name))
        }
    }

    /// Makes a webhook or replaces it, which ends its parking.
    func put(_ webhook: Webhook) async throws(DatabaseError) {
        var (secret, key) = (DatabaseValue.null, DatabaseValue.null)
        switch webhook.signer {
        case .secret(let text): secret = .text(text)
        case .key(let name): key = .text(name)
        }
        let (events, rooms) = (Self.text(webhook.events), Self.text(webhook.rooms))
        try await database.transaction { [secret, key] (sql) throws(DatabaseError) in
            _ = try sql.run(
                "INSERT OR REPLACE INTO webhooks (name, url, secret, key, events, rooms, format) VALUES (?, ?, ?, ?, ?, ?, ?)",
                .text(webhook.name), .text(webhook.url), secret, key, events, rooms, .text(webhook.format.rawValue))
        }
    }

    /// Forgets a webhook and what waits for it.
    func delete(_ name: String) async throws(DatabaseError) {
        try await database.transaction { (sql) throws(DatabaseError) in
            try sql.run("DELETE FROM webhooks WHERE name = ?", .text(name))
            try sql.run("DELETE FROM webhook_events WHERE webhook = ?", .text(name))
        }
    }

    /// Puts a message behind those that wait for each of `names`; how many older ones were pushed out, by name.
    func add(
        _ message: WebhookMessage, in format: Webhook.Format, room: String, to names: [String]
    ) async throws(DatabaseError) -> [String: Int] {
        let lane = Int64(Self.lane(of: room))
        return try await database.transaction { (sql) throws(DatabaseError) in
            var lost: [String: Int] = [:]
            for name in names {
                try sql.run(
                    "INSERT INTO webhook_events (webhook, lane, event, body, format) VALUES (?, ?, ?, ?, ?)",
                    .text(name),
                    .integer(lane), .text(message.id), .bytes(message.body), .text(format.rawValue))
                let count = try sql.run("SELECT count(*) FROM webhook_events WHERE webhook = ?", .text(name))[0][0]
                    .number
                guard count > Self.maxEvents else { continue }
                try sql.run(
                    "DELETE FROM webhook_events WHERE id IN (SELECT id FROM webhook_events WHERE webhook = ? ORDER BY id LIMIT ?)",
                    .text(name), .integer(count - Self.maxEvents))
                lost[name] = sql.changes
            }
            return lost
        }
    }

    /// The event of a lane that has waited the longest.
    func oldest(of name: String, lane: Int) async throws(DatabaseError) -> QueuedEvent? {
        try await database.transaction { (sql) throws(DatabaseError) in
            try sql.run(
                "SELECT id, event, body, format FROM webhook_events WHERE webhook = ? AND lane = ? ORDER BY id LIMIT 1",
                .text(name), .integer(Int64(lane)))
        }.first.map {
            QueuedEvent(
                id: $0[0].number, eventID: $0[1].string ?? "", format: Self.format($0[3]), body: $0[2].blob)
        }
    }

    func remove(_ id: Int64) async throws(DatabaseError) {
        try await database.transaction { (sql) throws(DatabaseError) in
            _ = try sql.run("DELETE FROM webhook_events WHERE id = ?", .integer(id))
        }
    }

    func count(of name: String) async throws(DatabaseError) -> Int {
        try await database.transaction { (sql) throws(DatabaseError) in
            Int(try sql.run("SELECT count(*) FROM webhook_events WHERE webhook = ?", .text(name))[0][0].number)
        }
    }

    /// None: from before there were two.
    private static func format(_ value: DatabaseValue) -> Webhook.Format {
        value.string.flatMap(Webhook.Format.init) ?? .martlet
    }

    // Names of rooms and types have no control characters.
    private static func text(_ words: Set<String>?) -> DatabaseValue {
        words.map { .text($0.sorted().joined(separator: "\n")) } ?? .null
    }

    private static func words(_ text: String) -> Set<String> { Set(text.split(separator: "\n").map(String.init)) }
}
