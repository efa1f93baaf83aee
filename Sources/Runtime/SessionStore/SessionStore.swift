public import RoomService
import Rooms
public import Storage

/// The summaries of past stays, in the database for as long as they are kept.
public struct SessionStore: Sendable {
    /// Which summaries are wanted, newest first.
    public struct Query: Sendable, Hashable {
        public var room: String?
        public var identity: String?
        /// Only those before this place, as the page before said.
        public var before: Int64?
        public var limit: Int

        /// At most `limit` summaries.
        public init(room: String? = nil, identity: String? = nil, before: Int64? = nil, limit: Int) {
            self.room = room
            self.identity = identity
            self.before = before
            self.limit = limit
        }
    }

    /// Summaries as they were written.
    public struct Page: Sendable, Hashable {
        public var bodies: [[UInt8]]
        /// What the next page's `before` is; nil: these were the last.
        public var next: Int64?
    }

    /// Stays that end faster than the database writes; more than so many at once are lost.
    private static let maxWaiting = 10_000
    /// Summaries that are kept at most: some 600 MB on a disk, and 6 MB where they are in memory.
    public static let maxInFile: Int64 = 1_000_000
    public static let maxInMemory: Int64 = 10_000
    /// Of every so many summaries that may be kept, the newest one has its history, too. The history of an hour takes some 100 kB: a file grows by a
    /// gigabyte at most, the memory by 20 MB.
    private static let summariesPerHistory: Int64 = 50
    private static let maxHistories: Int64 = 10_000

    private let database: Database
    private let maxSessions: Int64
    private let keptMilliseconds: Int64
    private let encode: @Sendable (StaySummary) -> [UInt8]
    private let encodeHistory: @Sendable (StayHistory) -> [UInt8]
    private let ended: AsyncStream<StaySummary>
    private let ending: AsyncStream<StaySummary>.Continuation

    /// The tables that it needs.
    public static let schema: [SchemaStep] = [
        "CREATE TABLE IF NOT EXISTS sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, participant TEXT UNIQUE, room TEXT, identity TEXT, left_at INTEGER, body BLOB)",
        "CREATE INDEX IF NOT EXISTS sessions_room ON sessions (room, id)",
        "CREATE INDEX IF NOT EXISTS sessions_identity ON sessions (identity, id)",
        "CREATE INDEX IF NOT EXISTS sessions_left ON sessions (left_at)",
        .column("history", type: "BLOB", of: "sessions"),
    ]

    /// Summaries in `database`, at most so many and for so many seconds, in the form that `encode` gives them and `encodeHistory` their histories.
    public init(
        _ database: Database, keptSeconds: Int64, maxSessions: Int64,
        encode: @escaping @Sendable (StaySummary) -> [UInt8],
        encodeHistory: @escaping @Sendable (StayHistory) -> [UInt8]
    ) {
        self.database = database
        self.maxSessions = maxSessions
        self.encode = encode
        self.encodeHistory = encodeHistory
        keptMilliseconds = keptSeconds * 1_000
        (ended, ending) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.maxWaiting))
    }

    /// Takes the summary of a stay that has ended. Returns at once.
    public func add(_ summary: StaySummary) { ending.yield(summary) }

    /// No further stays end.
    public func finish() { ending.finish() }

    /// Writes what was added, until `finish()`. `failed` is told what the database says where it fails.
    public func run(failed: @Sendable (DatabaseError) -> Void) async {
        for await summary in ended {
            do throws(DatabaseError) {
                try await write(summary)
            } catch {
                failed(error)
            }
        }
    }

    func write(_ summary: StaySummary) async throws(DatabaseError) {
        let (body, history) = (encode(summary), encodeHistory(summary.history))
        let (oldest, most) = (summary.leftAt - keptMilliseconds, maxSessions)
        let histories = min(Self.maxHistories, max(1, maxSessions / Self.summariesPerHistory))
        try await database.transaction { (sql) throws(DatabaseError) in
            try sql.run(
                "INSERT OR REPLACE INTO sessions (participant, room, identity, left_at, body, history) VALUES (?, ?, ?, ?, ?, ?)",
                .text(summary.info.sid), .text(summary.room), .text(summary.info.identity), .integer(summary.leftAt),
                .bytes(body), .bytes(history))
            // Numbers have no gap: with each summary one history goes.
            try sql.run(
                "UPDATE sessions SET history = NULL WHERE id = (SELECT max(id) FROM sessions) - ?",
                .integer(histories))
            try sql.run("DELETE FROM sessions WHERE left_at < ?", .integer(oldest))
            try sql.run(
                "DELETE FROM sessions WHERE id <= (SELECT max(id) FROM sessions) - ?", .integer(most))
        }
    }

    /// Some summaries, newest first.
    public func page(_ query: Query) async throws(DatabaseError) -> Page {
        let rows = try await database.transaction { (sql) throws(DatabaseError) in
            try sql.run(
                "SELECT id, body FROM sessions WHERE (?1 IS NULL OR room = ?1) AND (?2 IS NULL OR identity = ?2) AND id < ?3 ORDER BY id DESC LIMIT ?4",
                query.room.map { .text($0) } ?? .null, query.identity.map { .text($0) } ?? .null,
                .integer(query.before ?? .max), .integer(Int64(query.limit) + 1))
        }
        let shown = rows.prefix(query.limit)
        return Page(bodies: shown.map { $0[1].blob }, next: rows.count > query.limit ? shown.last?[0].number : nil)
    }

    /// The summary of one participant's stay, by its sid; nil where there is none.
    public func summary(of participant: String) async throws(DatabaseError) -> [UInt8]? {
        try await database.transaction { (sql) throws(DatabaseError) in
            try sql.run("SELECT body FROM sessions WHERE participant = ?", .text(participant))
        }.first?[0].blob
    }

    /// The history of one participant's stay, by its sid; nil where it is not kept.
    public func history(of participant: String) async throws(DatabaseError) -> [UInt8]? {
        let value = try await database.transaction { (sql) throws(DatabaseError) in
            try sql.run("SELECT history FROM sessions WHERE participant = ?", .text(participant))
        }.first?[0]
        return value == nil || value == .null ? nil : value?.blob
    }
}
