import AccessTokens
import Primitives
import RoomService
import Rooms
import Storage
import Synchronization
import Testing

@testable import SessionStore

@Suite("Past sessions")
struct SessionStoreTests {
    private func summary(_ number: Int, room: String = "R", identity: String = "ada", leftAt: Int64 = 0) -> StaySummary
    {
        let info = ParticipantInfo(
            sid: "PA_\(number)", identity: identity, name: "", metadata: "", profile: .full,
            permissions: Permissions(VideoGrant()), joinedAt: 0)
        return StaySummary(
            room: room, roomSID: "RM_1", info: info, leftAt: leftAt, reason: .left, tracks: [], bytesReceived: 0,
            bytesSent: 0)
    }

    private func store(
        _ database: Database, kept: TimeSpan = .seconds(60), maxSessions: Int64 = 100, at now: Int64 = 5_000
    ) -> SessionDatabase {
        SessionDatabase(
            database, kept: kept, wallClock: { now }, maxSessions: maxSessions,
            encode: { Array($0.info.sid.utf8) }, encodeHistory: { Array("\($0.samples.count)".utf8) })
    }

    private func sids(_ page: SessionDatabase.Page) -> [String] {
        page.bodies.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(
        "Pages follow each other without a gap, all or those of one room and identity; of stays that ended together the one written last is first"
    )
    func pages() async throws {
        let store = store(try Database(path: nil, schema: SessionDatabase.schema))
        for number in 0..<10 {
            try await store.write(
                summary(number, room: number % 2 == 0 ? "even" : "odd", identity: number < 5 ? "ada" : "bob"))
        }
        var all: [String] = []
        var query = SessionDatabase.Query(limit: 4)
        repeat {
            let page = try await store.page(query)
            all += sids(page)
            query.before = page.next
        } while query.before != nil
        #expect(all == (0..<10).reversed().map { "PA_\($0)" })
        #expect(sids(try await store.page(.init(room: "odd", limit: 9))) == ["PA_9", "PA_7", "PA_5", "PA_3", "PA_1"])
        #expect(sids(try await store.page(.init(room: "odd", identity: "ada", limit: 9))) == ["PA_3", "PA_1"])
        #expect(try await store.page(.init(room: "odd", limit: 5)).next == nil, "there is no further one")
        #expect(try await store.summary(of: "PA_3") == Array("PA_3".utf8))
        #expect(try await store.summary(of: "PA_99") == nil)
    }

    @Test(
        "A stay that is written down later than one that ended after it still stands in the order they ended in, on any page"
    )
    func writtenLate() async throws {
        let store = store(try Database(path: nil, schema: SessionDatabase.schema))
        for (number, leftAt) in [(1, 3_000), (2, 1_000), (3, 2_000), (4, 3_000)] as [(Int, Int64)] {
            try await store.write(summary(number, leftAt: leftAt))
        }
        var pages: [[String]] = []
        var query = SessionDatabase.Query(room: "R", identity: "ada", limit: 1)
        repeat {
            let page = try await store.page(query)
            pages.append(sids(page))
            query.before = page.next.flatMap { SessionDatabase.Place($0.description) }
        } while query.before != nil
        #expect(pages == [["PA_4"], ["PA_1"], ["PA_3"], ["PA_2"]])
        for text in ["", "5", "-5", "5-", "-5-3", "+5-3", "5-3-1", "5-x", "99999999999999999999-1"] {
            #expect(SessionDatabase.Place(text) == nil, "\(text) is no place")
        }
    }

    @Test("Summaries that are older than they may become are read by nobody, and deleted when the server starts")
    func age() async throws {
        let database = try Database(path: nil, schema: SessionDatabase.schema)
        let store = store(database, kept: .seconds(10), at: 11_000)
        for (number, leftAt) in [(1, 1_000), (2, 5_000), (3, 11_000)] as [(Int, Int64)] {
            try await store.write(summary(number, leftAt: leftAt))
        }
        #expect(sids(try await store.page(.init(limit: 9))) == ["PA_3", "PA_2", "PA_1"])
        let later = self.store(database, kept: .seconds(10), at: 15_001)
        #expect(sids(try await later.page(.init(limit: 9))) == ["PA_3"])
        #expect(try await later.summary(of: "PA_2") == nil)
        #expect(try await later.history(of: "PA_2") == nil)
        #expect(try await later.summary(of: "PA_3") != nil)
        #expect(sids(try await store.page(.init(limit: 9))).count == 3, "they are still in the database")
        later.finish()
        await later.run { Issue.record("\($0)") }
        #expect(sids(try await store.page(.init(limit: 9))) == ["PA_3"])
    }

    @Test("Summaries that are too old, or more than there may be, are deleted with the next that is written")
    func retention() async throws {
        let database = try Database(path: nil, schema: SessionDatabase.schema)
        for (number, leftAt) in [(1, 1_000), (2, 5_000), (3, 11_001)] as [(Int, Int64)] {
            try await store(database, kept: .seconds(10), at: leftAt).write(summary(number, leftAt: leftAt))
        }
        #expect(sids(try await store(database).page(.init(limit: 9))) == ["PA_3", "PA_2"])
        let small = self.store(try Database(path: nil, schema: SessionDatabase.schema), maxSessions: 2)
        for number in 0..<5 { try await small.write(summary(number)) }
        #expect(sids(try await small.page(.init(limit: 9))) == ["PA_4", "PA_3"], "the newest stay within the bound")
    }

    @Test("Each summary has its history, of which the newest are kept: one for each fifty summaries")
    func histories() async throws {
        let store = store(try Database(path: nil, schema: SessionDatabase.schema), maxSessions: 150)
        for number in 1...5 {
            var summary = summary(number)
            summary.history.samples = (0..<number).map {
                StaySample(
                    at: Int64($0), uplink: .zero, downlink: .zero, loss: 0, roundTripMilliseconds: nil, quality: 5)
            }
            try await store.write(summary)
        }
        var kept: [Int: String] = [:]
        for number in 1...5 {
            kept[number] = try await store.history(of: "PA_\(number)").map { String(decoding: $0, as: UTF8.self) }
        }
        #expect(kept == [3: "3", 4: "4", 5: "5"])
        #expect(try await store.history(of: "PA_unknown") == nil)
        #expect(try await store.summary(of: "PA_1") != nil)
    }

    @Test("I6: whoever is moved has a past stay in each room, and its sid finds the last one, or that of a room")
    func movedStays() async throws {
        let database = try Database(path: nil, schema: SessionDatabase.schema)
        let store = SessionDatabase(
            database, kept: .seconds(60), wallClock: { 9_000 }, maxSessions: 1_000,
            encode: { Array("\($0.room) \($0.leftAt)".utf8) },
            encodeHistory: { Array("\($0.samples.count)".utf8) })
        for (room, leftAt, samples) in [("A", 1_000, 1), ("B", 2_000, 2), ("A", 3_000, 3)] as [(String, Int64, Int)] {
            var stay = summary(1, room: room, leftAt: leftAt)
            stay.info.joinedAt = leftAt - 500
            stay.history.samples = (0..<samples).map {
                StaySample(
                    at: Int64($0), uplink: .zero, downlink: .zero, loss: 0, roundTripMilliseconds: nil, quality: 5)
            }
            // One that is written twice is there once.
            for _ in 0..<2 { try await store.write(stay) }
        }
        try await store.write(summary(10, room: "C", leftAt: 9_000))
        #expect(sids(try await store.page(.init(limit: 9))) == ["C 9000", "A 3000", "B 2000", "A 1000"])
        #expect(try await store.summary(of: "PA_1") == Array("A 3000".utf8))
        #expect(try await store.summary(of: "PA_1", in: "B") == Array("B 2000".utf8))
        #expect(try await store.history(of: "PA_1", in: "A") == Array("3".utf8))
        #expect(try await store.history(of: "PA_1", in: "B") == Array("2".utf8))
        #expect(try await store.summary(of: "PA_1", in: "C") == nil)
        #expect(try await store.summary(of: "PA_") == nil)
        // As releases wrote it that knew one stay of each participant.
        try await database.transaction { (sql) throws(DatabaseError) in
            _ = try sql.run(
                "INSERT INTO sessions (participant, room, identity, left_at, body) VALUES ('PA_7', 'R', 'ada', 5, x'37')"
            )
        }
        #expect(try await store.summary(of: "PA_7", in: "R") == [0x37])
        #expect(try await store.history(of: "PA_7") == nil)
    }

    @Test("What is added is written in order before the store ends, and a database that fails is reported")
    func running() async throws {
        let store = store(try Database(path: nil, schema: SessionDatabase.schema))
        for number in 0..<5 { store.add(summary(number)) }
        store.finish()
        await store.run { Issue.record("\($0)") }
        #expect(sids(try await store.page(.init(limit: 9))) == ["PA_4", "PA_3", "PA_2", "PA_1", "PA_0"])
        // Nothing can be deleted at the start, nor anything written.
        let broken = self.store(try Database(path: nil))
        broken.add(summary(1))
        broken.finish()
        let failures = Mutex(0)
        await broken.run { _ in failures.withLock { $0 += 1 } }
        #expect(failures.withLock { $0 } == 2)
    }
}
