import Foundation
import Storage
import Testing

@testable import Webhooks

@Suite("The queue of webhooks")
struct WebhookQueueTests {
    private static func message(_ number: Int) -> WebhookMessage {
        WebhookMessage(id: "\(number)", type: "t", body: [UInt8(number)])
    }

    /// What is counted, and what there is.
    private static func backlog(of name: String, _ queue: WebhookQueue, _ database: Database) async throws -> [Int] {
        let rows = try await database.transaction { (sql) throws(DatabaseError) in
            try sql.run("SELECT count(*) FROM webhook_events WHERE webhook = ?", .text(name))
        }
        return [try await queue.count(of: name), Int(rows[0][0].number)]
    }

    @Test("Beyond the bound the oldest event of a webhook goes for each new one, whatever its lane")
    func bound() async throws {
        let database = try Database(path: nil, schema: WebhookSender.schema)
        let queue = WebhookQueue(database, maxEvents: 3)
        // "a" to "d" are of four lanes.
        #expect(Set(["a", "b", "c", "d"].map(WebhookQueue.lane)).count == 4)
        var lost: [[String: Int]] = []
        for (number, room) in ["a", "b", "b", "c", "d", "b"].enumerated() {
            let names = number == 0 ? ["v", "w"] : ["w"]
            lost.append(try await queue.add(Self.message(number), in: .martlet, room: room, to: names))
        }
        #expect(lost == [[:], [:], [:], ["w": 1], ["w": 1], ["w": 1]])
        #expect(try await Self.backlog(of: "w", queue, database) == [3, 3])
        #expect(try await Self.backlog(of: "v", queue, database) == [1, 1])
        #expect(WebhookQueue.maxEvents == 100_000, "of a server")
        let oldest = try #require(try await queue.oldest(of: "w", lane: WebhookQueue.lane(of: "c")))
        #expect(oldest.eventID == "3")
        #expect(try await queue.oldest(of: "w", lane: WebhookQueue.lane(of: "a")) == nil)
    }

    @Test("The number of events that wait is right after acceptance, deletion and failure, and after a restart")
    func count() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
        defer { for ending in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + ending) } }
        do {
            let database = try Database(path: path, schema: WebhookSender.schema)
            let queue = WebhookQueue(database)
            for number in 0..<5 {
                _ = try await queue.add(Self.message(number), in: .martlet, room: "a", to: ["v", "w"])
            }
            let first = try #require(try await queue.oldest(of: "w", lane: WebhookQueue.lane(of: "a")))
            for _ in 0..<2 { try await queue.remove(first.id) }
            await #expect(throws: DatabaseError.self) {
                try await database.transaction { (sql) throws(DatabaseError) in
                    try sql.run("DELETE FROM webhook_events")
                    try sql.run("INSERT INTO none VALUES (1)")
                }
            }
            #expect(try await Self.backlog(of: "w", queue, database) == [4, 4])
        }
        let database = try Database(path: path, schema: WebhookSender.schema)
        let queue = WebhookQueue(database)
        #expect(try await Self.backlog(of: "w", queue, database) == [4, 4])
        try await queue.delete("w")
        #expect(try await Self.backlog(of: "w", queue, database) == [0, 0])
        #expect(try await Self.backlog(of: "v", queue, database) == [5, 5])
    }
}
