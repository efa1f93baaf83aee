public import RoomService
public import Rooms
public import Storage

/// Decisions of operators that must outlast the process, in the database: presets, bans, revoked tokens, and cutoffs for older tokens.
public struct RuleDatabase: Sendable {
    private let database: Database
    private let encode: @Sendable (PolicyDocument) -> [UInt8]
    private let decode: @Sendable ([UInt8]) -> PolicyDocument?

    /// The tables that it needs. A rule without an end has `until` 0.
    public static let schema: [SchemaStep] = [
        "CREATE TABLE IF NOT EXISTS rules (kind TEXT, room TEXT, subject TEXT, until INTEGER, number INTEGER, body BLOB, PRIMARY KEY (kind, room, subject))"
    ]

    /// Rules in `database`; `encode` and `decode` convert policies to and from their stored form.
    public init(
        _ database: Database, encode: @escaping @Sendable (PolicyDocument) -> [UInt8],
        decode: @escaping @Sendable ([UInt8]) -> PolicyDocument?
    ) {
        self.database = database
        self.encode = encode
        self.decode = decode
    }

    /// Every rule that is in force at `now` (milliseconds since 1970); a policy in a form that can no longer be read is skipped and passed to `unreadable`.
    /// Nothing is deleted: when a machine starts, its clock may be wrong, and the next start must find the rules that are in force then.
    public func load(
        now: Int64, unreadable: @Sendable (String) -> Void = { _ in }
    ) async throws(DatabaseError) -> [StandingRule] {
        let rows = try await database.transaction { (sql) throws(DatabaseError) in
            try sql.run(
                "SELECT kind, room, subject, until, number, body FROM rules WHERE until = 0 OR until > ? ORDER BY until",
                .integer(now))
        }
        return rows.compactMap { row in
            let rule = rule(row)
            if rule == nil { unreadable(row[2].string ?? "") }
            return rule
        }
    }

    /// How long expired rules are kept: a clock that is wrong for a while deletes no rule that is still in force.
    private static let graceMilliseconds: Int64 = 86_400_000

    /// Stores rules that are in force from `now` on (milliseconds since 1970); returns when they are written. Each removal of a participant and each deletion
    /// of a room is a rule for an hour: expired ones are deleted here, because a server may run for years.
    public func keep(_ rule: StandingRule, now: Int64) async throws(DatabaseError) {
        let row = Row(rule, encode: encode)
        try await database.transaction { (sql) throws(DatabaseError) in
            try sql.run("DELETE FROM rules WHERE until > 0 AND until <= ?", .integer(now - Self.graceMilliseconds))
            guard row.isInForce else {
                _ = try sql.run(
                    "DELETE FROM rules WHERE kind = ? AND room = ? AND subject = ?", .text(row.kind), .text(row.room),
                    .text(row.subject))
                return
            }
            try sql.run(
                "INSERT OR REPLACE INTO rules (kind, room, subject, until, number, body) VALUES (?, ?, ?, ?, ?, ?)",
                .text(row.kind), .text(row.room), .text(row.subject), .integer(row.until), .integer(row.number),
                .bytes(row.body))
        }
    }

    private func rule(_ row: [DatabaseValue]) -> StandingRule? {
        let (room, subject, until) = (row[1].string ?? "", row[2].string ?? "", row[3].number)
        let closure = StandingRule.Closure(issuedAfter: row[4].number, until: until)
        switch row[0].string {
        case "preset": return decode(row[5].blob).map { .preset(name: subject, $0) }
        case "ban":
            let reason = String(decoding: row[5].blob, as: UTF8.self)
            return .ban(identity: subject, room: room, StandingRule.Ban(until: until, reason: reason))
        case "token": return .revocation(.token(subject), closure)
        case "identity": return .revocation(.identity(subject), closure)
        case "room": return .closure(room: room, identity: nil, closure)
        case "participant": return .closure(room: room, identity: subject, closure)
        default: return nil
        }
    }
}

/// One rule as a row of the table.
private struct Row: Sendable {
    var kind: String
    var room = ""
    var subject = ""
    var until: Int64 = 0
    var number: Int64 = 0
    var body: [UInt8] = []
    var isInForce = true

    init(_ rule: StandingRule, encode: (PolicyDocument) -> [UInt8]) {
        switch rule {
        case .preset(let name, let document):
            (kind, subject) = ("preset", name)
            isInForce = document != nil
            body = document.map(encode) ?? []
        case .ban(let identity, let room, let ban):
            (kind, self.room, subject) = ("ban", room, identity)
            isInForce = ban != nil
            until = ban?.until ?? 0
            body = Array((ban?.reason ?? "").utf8)
        case .revocation(.token(let id), let closure):
            (kind, subject) = ("token", id)
            set(closure)
        case .revocation(.identity(let identity), let closure):
            (kind, subject) = ("identity", identity)
            set(closure)
        case .closure(let room, let identity, let closure):
            (kind, self.room, subject) = (identity == nil ? "room" : "participant", room, identity ?? "")
            set(closure)
        }
    }

    private mutating func set(_ closure: StandingRule.Closure?) {
        isInForce = closure != nil
        until = closure?.until ?? 0
        number = closure?.issuedAfter ?? 0
    }
}
