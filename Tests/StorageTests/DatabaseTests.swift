import Foundation
import Testing

@testable import Storage

@Suite("Database")
struct DatabaseTests {
    @Test("Values of every type come back as they were written")
    func values() async throws {
        let database = try Database(path: nil)
        let row: [DatabaseValue] = [.null, .integer(.min), .text("ä\"'; DROP TABLE t"), .bytes([0, 255, 7])]
        let rows = try await database.transaction { (sql) throws(DatabaseError) in
            try sql.run("CREATE TABLE t (a, b, c, d)")
            try sql.run("INSERT INTO t VALUES (?, ?, ?, ?)", row[0], row[1], row[2], row[3])
            return try sql.run("SELECT * FROM t")
        }
        #expect(rows == [row])
    }

    @Test("A transaction that throws leaves nothing behind, and the next one works")
    func rollback() async throws {
        let database = try Database(path: nil)
        try await database.transaction { (sql) throws(DatabaseError) in _ = try sql.run("CREATE TABLE t (a UNIQUE)") }
        await #expect(throws: DatabaseError.self) {
            try await database.transaction { (sql) throws(DatabaseError) in
                try sql.run("INSERT INTO t VALUES (1)")
                try sql.run("INSERT INTO t VALUES (1)")
            }
        }
        let count = try await database.transaction { (sql) throws(DatabaseError) in
            try sql.run("INSERT INTO t VALUES (2)")
            return try sql.run("SELECT count(*), max(a) FROM t")
        }
        #expect(count == [[.integer(1), .integer(2)]])
    }

    @Test("A column that a table of an earlier release lacks is added once, and its rows stay")
    func column() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
        defer { for ending in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + ending) } }
        do {
            let earlier = try Database(path: path, schema: ["CREATE TABLE IF NOT EXISTS t (a)"])
            try await earlier.transaction { (sql) throws(DatabaseError) in _ = try sql.run("INSERT INTO t VALUES (1)") }
        }
        for _ in 0..<2 {
            let database = try Database(
                path: path, schema: ["CREATE TABLE IF NOT EXISTS t (a)", .column("b", type: "TEXT", of: "t")])
            let rows = try await database.transaction { (sql) throws(DatabaseError) in try sql.run("SELECT a, b FROM t")
            }
            #expect(rows == [[.integer(1), .null]])
        }
    }

    @Test(
        "What was written to a file is there when it is opened again; a folder is no database, and the error names it")
    func file() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appending(path: "martlet.db").path
        for expected in 1...3 {
            let database = try Database(path: path)
            let count = try await database.transaction { (sql) throws(DatabaseError) in
                try sql.run("CREATE TABLE IF NOT EXISTS t (a)")
                try sql.run("INSERT INTO t VALUES (1)")
                return try sql.run("SELECT count(*) FROM t")
            }
            #expect(count == [[.integer(Int64(expected))]])
        }
        do throws(DatabaseError) {
            _ = try Database(path: folder.path)
            Issue.record("opened")
        } catch {
            #expect(error.description.contains(folder.path))
        }
    }
}

@Suite("Database file")
struct DatabaseFileTests {
    @Test("A file that is no database is reported as damaged, and one that cannot be opened is not")
    func damage() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func failure(_ path: String) -> DatabaseError? {
            do throws(DatabaseError) {
                _ = try Database(path: path)
                return nil
            } catch {
                return error
            }
        }
        let file = folder.appending(path: "martlet.db")
        try (Data("SQLite format 3\0".utf8) + Data(count: 8_192)).write(to: file)
        #expect(failure(file.path)?.isDamaged == true)
        #expect(failure(folder.path)?.isDamaged == false)
    }

    @Test("A new file and those beside it are their user's alone: webhooks' secrets are in it")
    func mode() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let database = try Database(path: folder.appending(path: "martlet.db").path)
        try await database.transaction { (sql) throws(DatabaseError) in _ = try sql.run("CREATE TABLE t (a)") }
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(files.contains("martlet.db"))
        for file in files {
            let path = folder.appending(path: file).path
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600, "\(file)")
        }
    }
}
