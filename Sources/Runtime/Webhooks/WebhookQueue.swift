import Primitives
import Storage

/// An event that waits for a webhook.
struct QueuedEvent: Sendable, Hashable {
    var id: Int64
    var eventID: String
    /// The format in which it was encoded: the webhook may have another by now.
    var format: Webhook.Format
    var body: [UInt8]
}

/// The webhooks and their waiting events, in the database.
///
/// A room's events use one of several lanes: within a lane the next is sent when the one before was accepted, so those of a room arrive in order, and
/// one lane does not wait for another.
struct WebhookQueue: Sendable {
    /// Concurrent requests of one webhook.
    static let lanes = 4
    /// Waiting events per webhook, some 100 MB: further ones push out the oldest. A receiver that was unreachable for so long starts anew.
    static let maxEvents: Int64 = 100_000

    private let database: Database
    private let maxEvents: Int64

    /// The tables that it needs.
    static let schema: [SchemaStep] = [
        "CREATE TABLE IF NOT EXISTS webhooks (name TEXT PRIMARY KEY, url TEXT, secret TEXT, key TEXT, events TEXT, rooms TEXT)",
        "CREATE TABLE IF NOT EXISTS webhook_events (id INTEGER PRIMARY KEY AUTOINCREMENT, webhook TEXT, lane INTEGER, event TEXT, body BLOB)",
        "CREATE INDEX IF NOT EXISTS webhook_lanes ON webhook_events (webhook, lane, id)",
        .column("format", type: "TEXT", of: "webhooks"),
        .column("format", type: "TEXT", of: "webhook_events"),
        // Why it is parked; NULL if it is not.
        .column("parked", type: "TEXT", of: "webhooks"),
        // The number of waiting events per webhook: counting 100,000 takes milliseconds, for each event. Counted once per run of the process, and updated with
        // every change of the table.
        "CREATE TEMP TABLE IF NOT EXISTS webhook_backlogs (webhook TEXT PRIMARY KEY, events INTEGER)",
        "INSERT OR REPLACE INTO webhook_backlogs SELECT webhook, count(*) FROM webhook_events GROUP BY webhook",
        """
        CREATE TEMP TRIGGER IF NOT EXISTS webhook_event_added AFTER INSERT ON webhook_events BEGIN
          INSERT OR IGNORE INTO webhook_backlogs VALUES (NEW.webhook, 0);
          UPDATE webhook_backlogs SET events = events + 1 WHERE webhook = NEW.webhook;
        END
        """,
        """
        CREATE TEMP TRIGGER IF NOT EXISTS webhook_event_removed AFTER DELETE ON webhook_events BEGIN
          UPDATE webhook_backlogs SET events = events - 1 WHERE webhook = OLD.webhook;
        END
        """,
    ]

    init(_ database: Database, maxEvents: Int64 = WebhookQueue.maxEvents) {
        self.database = database
        self.maxEvents = maxEvents
    }

    /// The lane of a room's events; the same in each run of the server.
    static func lane(of room: String) -> Int {
        Int(room.utf8.reduce(UInt32(7)) { $0 &* 31 &+ UInt32($1) } % UInt32(lanes))
    }

    /// Each webhook, and why it is parked; nil if it is not.
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

    /// Creates a webhook or replaces it, which ends its parking.
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

    /// Removes a webhook and its waiting events.
    func delete(_ name: String) async throws(DatabaseError) {
        try await database.transaction { (sql) throws(DatabaseError) in
            try sql.run("DELETE FROM webhooks WHERE name = ?", .text(name))
            try sql.run("DELETE FROM webhook_events WHERE webhook = ?", .text(name))
        }
    }

    /// Adds a message after those that wait for each of `names`; returns how many older ones were pushed out, by name.
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
                let excess = try Self.backlog(of: name, sql) - maxEvents
                for _ in 0..<max(0, excess) {
                    try Self.removeOldest(of: name, sql)
                    lost[name, default: 0] += 1
                }
            }
            return lost
        }
    }

    private static func backlog(of name: String, _ sql: DatabaseConnection) throws(DatabaseError) -> Int64 {
        try sql.run("SELECT events FROM webhook_backlogs WHERE webhook = ?", .text(name)).first?[0].number ?? 0
    }

    /// Lane by lane, in the order of the index: sorting all waiting events took as long as counting them.
    private static func removeOldest(of name: String, _ sql: DatabaseConnection) throws(DatabaseError) {
        var oldest: [Int64] = []
        for lane in 0..<Int64(lanes) {
            let row = try sql.run(
                "SELECT min(id) FROM webhook_events WHERE webhook = ? AND lane = ?", .text(name), .integer(lane))[0]
            if row != [.null] { oldest.append(row[0].number) }
        }
        guard let id = oldest.min() else { return }
        try sql.run("DELETE FROM webhook_events WHERE id = ?", .integer(id))
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
            Int(try Self.backlog(of: name, sql))
        }
    }

    /// Empty: from before there were two formats.
    private static func format(_ value: DatabaseValue) -> Webhook.Format {
        value.string.flatMap(Webhook.Format.init) ?? .martlet
    }

    // Names of rooms and types have no control characters.
    private static func text(_ words: Set<String>?) -> DatabaseValue {
        words.map { .text($0.sorted().joined(separator: "\n")) } ?? .null
    }

    private static func words(_ text: String) -> Set<String> { Set(text.split(separator: "\n").map(String.init)) }
}
