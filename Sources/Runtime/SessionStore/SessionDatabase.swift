public import Primitives
public import RoomService
import Rooms
public import Storage

/// The summaries of past stays, in the database for as long as they are kept.
public struct SessionDatabase: Sendable {
    /// Selects summaries, latest end of a stay first.
    public struct Query: Sendable, Hashable {
        public var room: String?
        public var identity: String?
        /// Only those before this place, which the page before returned.
        public var before: Place?
        public var limit: Int

        /// At most `limit` summaries.
        public init(room: String? = nil, identity: String? = nil, before: Place? = nil, limit: Int) {
            self.room = room
            self.identity = identity
            self.before = before
            self.limit = limit
        }
    }

    /// A summary's place among all. Stays are stored when the last counters of their connections are known, which is not the order in which they ended.
    public struct Place: Sendable, Hashable, LosslessStringConvertible {
        /// Milliseconds since 1970.
        fileprivate let leftAt: Int64
        /// Distinguishes stays that ended in the same millisecond.
        fileprivate let id: Int64

        fileprivate init(leftAt: Int64, id: Int64) {
            self.leftAt = leftAt
            self.id = id
        }

        public init?(_ text: String) {
            let parts = text.split(separator: "-", omittingEmptySubsequences: false).map { digits in
                digits.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int64(digits) : nil
            }
            guard parts.count == 2, let leftAt = parts[0], let id = parts[1] else { return nil }
            self.init(leftAt: leftAt, id: id)
        }

        public var description: String { "\(leftAt)-\(id)" }
    }

    /// Summaries as they were stored.
    public struct Page: Sendable, Hashable {
        public var bodies: [[UInt8]]
        /// The value of `before` for the next page; nil: there is none.
        public var next: Place?
    }

    /// Stays may end faster than the database writes; beyond this number of waiting ones they are lost.
    private static let maxWaiting = 10_000
    /// The maximum number of summaries: some 600 MB on a disk, and 6 MB in memory.
    public static let maxInFile: Int64 = 1_000_000
    public static let maxInMemory: Int64 = 10_000
    /// One history is kept for this many summaries that may be kept; the newest have it. The history of an hour takes some 100 kB: a file grows by at most a
    /// gigabyte, the memory by 20 MB.
    private static let summariesPerHistory: Int64 = 50
    private static let maxHistories: Int64 = 10_000
    /// How often summaries that are too old are deleted if no stay ends; until then they cannot be read.
    private static let deletionInterval = Duration.seconds(3_600)

    private let database: Database
    private let maxSessions: Int64
    private let keptMilliseconds: Int64
    private let wallClock: @Sendable () -> Int64
    private let encode: @Sendable (StaySummary) -> [UInt8]
    private let encodeHistory: @Sendable (StayHistory) -> [UInt8]
    private let ended: AsyncStream<StaySummary>
    private let ending: AsyncStream<StaySummary>.Continuation

    /// The tables that it needs.
    public static let schema: [SchemaStep] = [
        "CREATE TABLE IF NOT EXISTS sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, participant TEXT UNIQUE, room TEXT, identity TEXT, left_at INTEGER, body BLOB)",
        "DROP INDEX IF EXISTS sessions_room",
        "DROP INDEX IF EXISTS sessions_identity",
        "CREATE INDEX IF NOT EXISTS sessions_room_left ON sessions (room, left_at)",
        "CREATE INDEX IF NOT EXISTS sessions_identity_left ON sessions (identity, left_at)",
        "CREATE INDEX IF NOT EXISTS sessions_left ON sessions (left_at)",
        .column("history", type: "BLOB", of: "sessions"),
    ]

    /// Summaries in `database`: the maximum number, and the maximum age by `wallClock` (milliseconds since 1970). `encode` encodes them,
    /// and `encodeHistory` their histories.
    public init(
        _ database: Database, kept: TimeSpan, wallClock: @escaping @Sendable () -> Int64, maxSessions: Int64,
        encode: @escaping @Sendable (StaySummary) -> [UInt8],
        encodeHistory: @escaping @Sendable (StayHistory) -> [UInt8]
    ) {
        self.database = database
        self.maxSessions = maxSessions
        self.wallClock = wallClock
        self.encode = encode
        self.encodeHistory = encodeHistory
        keptMilliseconds = kept.milliseconds
        (ended, ending) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.maxWaiting))
    }

    /// Adds the summary of a stay that has ended. Returns at once.
    public func add(_ summary: StaySummary) { ending.yield(summary) }

    /// No more stays will be added.
    public func finish() { ending.finish() }

    /// Writes added summaries, and deletes those that are too old, until `finish()`. `failed` gets the database's error if it fails.
    public func run(failed: @escaping @Sendable (DatabaseError) -> Void) async {
        // Cancelled when this function ends.
        async let _: Void = deleteExpiredRegularly(failed: failed)
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
        let (oldest, most) = (oldestKept, maxSessions)
        let histories = min(Self.maxHistories, max(1, maxSessions / Self.summariesPerHistory))
        try await database.transaction { (sql) throws(DatabaseError) in
            try sql.run(
                "INSERT OR REPLACE INTO sessions (participant, room, identity, left_at, body, history) VALUES (?, ?, ?, ?, ?, ?)",
                .text(Self.key(of: summary)), .text(summary.room), .text(summary.info.identity),
                .integer(summary.leftAt),
                .bytes(body), .bytes(history))
            // Numbers have no gap: each new summary removes one history.
            try sql.run(
                "UPDATE sessions SET history = NULL WHERE id = (SELECT max(id) FROM sessions) - ?",
                .integer(histories))
            try sql.run("DELETE FROM sessions WHERE left_at < ?", .integer(oldest))
            try sql.run(
                "DELETE FROM sessions WHERE id <= (SELECT max(id) FROM sessions) - ?", .integer(most))
        }
    }

    /// Some summaries, latest end of a stay first.
    public func page(_ query: Query) async throws(DatabaseError) -> Page {
        var conditions = ["left_at >= ?"]
        var values: [DatabaseValue] = [.integer(oldestKept)]
        if let room = query.room {
            conditions.append("room = ?")
            values.append(.text(room))
        }
        if let identity = query.identity {
            conditions.append("identity = ?")
            values.append(.text(identity))
        }
        if let before = query.before {
            conditions.append("(left_at, id) < (?, ?)")
            values += [.integer(before.leftAt), .integer(before.id)]
        }
        values.append(.integer(Int64(query.limit) + 1))
        let chosen = conditions.joined(separator: " AND ")
        let rows = try await database.transaction { [values] (sql) throws(DatabaseError) in
            try sql.run(
                "SELECT id, left_at, body FROM sessions WHERE \(chosen) ORDER BY left_at DESC, id DESC LIMIT ?", values)
        }
        let shown = rows.prefix(query.limit)
        let last = shown.last.map { Place(leftAt: $0[1].number, id: $0[0].number) }
        return Page(bodies: shown.map { $0[2].blob }, next: rows.count > query.limit ? last : nil)
    }

    /// The summary of a participant's last stay, by its sid, in one room, or, with nil, in any; nil if there is none.
    public func summary(of participant: String, in room: String? = nil) async throws(DatabaseError) -> [UInt8]? {
        try await last("body", of: participant, in: room)?.blob
    }

    /// The history of the same stay; nil if it is not kept.
    public func history(of participant: String, in room: String? = nil) async throws(DatabaseError) -> [UInt8]? {
        let value = try await last("history", of: participant, in: room)
        return value == nil || value == .null ? nil : value?.blob
    }

    /// Distinguishes a stay from all others: a participant that is moved has one in each room, all under its sid. Earlier releases stored only the sid.
    private static func key(of summary: StaySummary) -> String {
        "\(summary.info.sid) \(summary.roomSID) \(summary.info.joinedAt)"
    }

    private func last(
        _ column: String, of participant: String, in room: String?
    ) async throws(DatabaseError) -> DatabaseValue? {
        // Among the characters of keys, only the blank sorts before "!". The "+" makes SQLite use only the index of the keys, which finds a few rows.
        var values = [DatabaseValue.text(participant), .text(participant + "!"), .integer(oldestKept)]
        if let room { values.append(.text(room)) }
        let isThere = room == nil ? "" : "AND +room = ?"
        return try await database.transaction { [values] (sql) throws(DatabaseError) in
            try sql.run(
                "SELECT \(column) FROM sessions WHERE participant >= ? AND participant < ? AND +left_at >= ? \(isThere) ORDER BY +left_at DESC, id DESC LIMIT 1",
                values)
        }.first?[0]
    }

    /// Stays that ended before this time are too old.
    private var oldestKept: Int64 { wallClock() - keptMilliseconds }

    /// Deletes summaries that are too old.
    func deleteExpired() async throws(DatabaseError) {
        let oldest = oldestKept
        _ = try await database.transaction { (sql) throws(DatabaseError) in
            try sql.run("DELETE FROM sessions WHERE left_at < ?", .integer(oldest))
        }
    }

    /// Also deletes them on a server on which no stay ends, and after a long stop.
    private func deleteExpiredRegularly(failed: @Sendable (DatabaseError) -> Void) async {
        repeat {
            do throws(DatabaseError) {
                try await deleteExpired()
            } catch {
                failed(error)
            }
        } while (try? await Task.sleep(for: Self.deletionInterval)) != nil
    }
}
