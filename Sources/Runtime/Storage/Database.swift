import CSQLite
import Dispatch
import Glibc

/// Why the database failed, in SQLite's words.
public struct DatabaseError: Error, Sendable, Hashable, CustomStringConvertible {
    public let description: String
    /// Whether the file is not a database, or is corrupt: no retry can succeed.
    public let isDamaged: Bool

    fileprivate init(description: String, status: Int32) {
        self.description = description
        // The low byte is the kind of error, the bits above it are its details.
        isDamaged = [SQLITE_CORRUPT, SQLITE_NOTADB].contains(status & 0xff)
    }
}

/// One SQLite database. Its calls run one at a time on a separate thread, so that only their callers wait for a disk.
public final class Database: Sendable {
    private let queue = DispatchQueue(label: "database", qos: .utility)
    /// Used only on the queue.
    nonisolated(unsafe) private let connection: DatabaseConnection

    /// The database in the file at `path`, created if it does not exist; nil: one in memory, which ends with the process. `schema` creates what is missing.
    public init(path: String?, schema: [SchemaStep] = []) throws(DatabaseError) {
        connection = try DatabaseConnection(path: path)
        for step in schema {
            switch step {
            case .statement(let text): try connection.run(text)
            case .column(let name, let type, let table):
                let names = try connection.run("SELECT name FROM pragma_table_info(?)", .text(table))
                guard !names.contains([.text(name)]) else { continue }
                try connection.run("ALTER TABLE \(table) ADD COLUMN \(name) \(type)")
            }
        }
    }

    /// Carries out `work` in one transaction: all of it, or nothing if it throws.
    public func transaction<Value: Sendable>(
        _ work: @escaping @Sendable (DatabaseConnection) throws(DatabaseError) -> Value
    ) async throws(DatabaseError) -> Value {
        let result: Result<Value, DatabaseError> = await withCheckedContinuation { continuation in
            queue.async { [self] in
                continuation.resume(
                    returning: Result { () throws(DatabaseError) in try connection.transaction(work) })
            }
        }
        return try result.get()
    }
}

/// One idempotent step of a schema migration: a database of an earlier release gets what is missing.
public enum SchemaStep: Sendable, Hashable, ExpressibleByStringLiteral {
    /// SQL that creates a table or an index if it does not exist.
    case statement(String)
    /// A column that an earlier version of a table did not have. Names and type are constants of the program.
    case column(String, type: String, of: String)

    public init(stringLiteral text: String) { self = .statement(text) }
}

/// The value of a column.
public enum DatabaseValue: Sendable, Hashable {
    case null
    case integer(Int64)
    case text(String)
    case bytes([UInt8])

    /// The number; 0 if there is none.
    public var number: Int64 { if case .integer(let value) = self { value } else { 0 } }
    /// The text; nil if there is none.
    public var string: String? { if case .text(let value) = self { value } else { nil } }
    /// The bytes; empty if there are none.
    public var blob: [UInt8] { if case .bytes(let value) = self { value } else { [] } }
}

/// An open database within a transaction. Belongs to the database's thread.
public final class DatabaseConnection {
    private let handle: OpaquePointer
    /// Prepared statements, by their text.
    private var statements: [String: OpaquePointer] = [:]

    /// How long to wait for another process that locks the file, such as a user's shell.
    private static let busyMilliseconds: Int32 = 2_000

    fileprivate init(path: String?) throws(DatabaseError) {
        if let path { Self.create(path) }
        var opened: OpaquePointer?
        let status = sqlite3_open_v2(
            path ?? ":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nil)
        guard status == SQLITE_OK, let opened else {
            sqlite3_close(opened)
            let reason = String(cString: sqlite3_errstr(status))
            throw DatabaseError(
                description: "cannot open \(path ?? "a database in memory"): \(reason)", status: status)
        }
        handle = opened
        sqlite3_busy_timeout(handle, Self.busyMilliseconds)
        // With a write-ahead log a transaction survives the end of the process, though perhaps not a power loss: an event may then be posted twice.
        _ = try run("PRAGMA journal_mode=WAL")
        _ = try run("PRAGMA synchronous=NORMAL")
    }

    /// Webhooks' secrets are in it, so only its user may read a new file; SQLite gives the files beside it the same mode. If this fails, opening fails, too,
    /// with a reason.
    private static func create(_ path: String) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        if descriptor >= 0 { close(descriptor) }
    }

    deinit {
        for statement in statements.values { sqlite3_finalize(statement) }
        sqlite3_close(handle)
    }

    fileprivate func transaction<Value>(
        _ work: (DatabaseConnection) throws(DatabaseError) -> Value
    ) throws(DatabaseError) -> Value {
        try run("BEGIN IMMEDIATE")
        do throws(DatabaseError) {
            let value = try work(self)
            try run("COMMIT")
            return value
        } catch {
            _ = try? run("ROLLBACK")
            throw error
        }
    }

    /// The rows that one statement returns, with `values` in place of its question marks.
    @discardableResult
    public func run(_ sql: String, _ values: DatabaseValue...) throws(DatabaseError) -> [[DatabaseValue]] {
        try run(sql, values)
    }

    /// The rows that one statement returns, with `values` in place of its question marks.
    @discardableResult
    public func run(_ sql: String, _ values: [DatabaseValue]) throws(DatabaseError) -> [[DatabaseValue]] {
        let statement = try prepared(sql)
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        for (index, value) in values.enumerated() { try check(bind(value, to: Int32(index + 1), of: statement)) }
        var rows: [[DatabaseValue]] = []
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: rows.append((0..<sqlite3_column_count(statement)).map { column(Int32($0), of: statement) })
            case SQLITE_DONE: return rows
            default: throw failure
            }
        }
    }

    /// The number of rows that the last statement changed.
    public var changes: Int { Int(sqlite3_changes(handle)) }

    private func prepared(_ sql: String) throws(DatabaseError) -> OpaquePointer {
        if let known = statements[sql] { return known }
        var made: OpaquePointer?
        try check(sqlite3_prepare_v2(handle, sql, -1, &made, nil))
        guard let made else { throw DatabaseError(description: "the statement is empty", status: SQLITE_MISUSE) }
        statements[sql] = made
        return made
    }

    private func bind(_ value: DatabaseValue, to index: Int32, of statement: OpaquePointer) -> Int32 {
        // SQLite copies the bytes.
        let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        return switch value {
        case .null: sqlite3_bind_null(statement, index)
        case .integer(let number): sqlite3_bind_int64(statement, index, number)
        case .text(let text): sqlite3_bind_text(statement, index, text, -1, transient)
        case .bytes(let bytes): sqlite3_bind_blob64(statement, index, bytes, UInt64(bytes.count), transient)
        }
    }

    private func column(_ index: Int32, of statement: OpaquePointer) -> DatabaseValue {
        switch sqlite3_column_type(statement, index) {
        case SQLITE_INTEGER: .integer(sqlite3_column_int64(statement, index))
        case SQLITE_TEXT: sqlite3_column_text(statement, index).map { .text(String(cString: $0)) } ?? .null
        case SQLITE_BLOB:
            .bytes(
                Array(
                    UnsafeRawBufferPointer(
                        start: sqlite3_column_blob(statement, index), count: Int(sqlite3_column_bytes(statement, index))
                    )))
        default: .null
        }
    }

    private func check(_ status: Int32) throws(DatabaseError) {
        guard status == SQLITE_OK else { throw failure }
    }

    private var failure: DatabaseError {
        DatabaseError(description: String(cString: sqlite3_errmsg(handle)), status: sqlite3_errcode(handle))
    }
}
