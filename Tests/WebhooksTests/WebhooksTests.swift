import AccessTokens
import EdgeTestSupport
import Logging
import Primitives
import Rooms
import Storage
import TestSupport
import Testing

@testable import RoomService
@testable import Webhooks

@Suite("Webhooks", .timeLimit(.minutes(1)))
struct WebhooksTests {
    private static let secret = "sixteen bytes or more"

    private func webhook(_ name: String = "w", events: Set<String>? = nil, rooms: Set<String>? = nil) -> Webhook {
        Webhook(name: name, url: "https://example.com/hook", signer: .secret(Self.secret), events: events, rooms: rooms)
    }

    private func webhooks(
        _ rooms: RoomHost, _ database: Database, _ receiver: Receiver, allowsPrivate: Bool = false,
        world: WebhookSender.World? = nil
    ) -> WebhookSender {
        WebhookSender(
            of: rooms, database: database, keys: [APIKey(name: "app", secret: "app-secret")],
            allowsPrivate: allowsPrivate,
            encode: { entry, formats in
                let words = String("\(entry.event)".prefix { $0 != "(" })
                var messages: [Webhook.Format: [WebhookMessage]] = [:]
                for format in formats {
                    let body = "\(entry.room) \(entry.sequence) \(words)\(format == .liveKit ? " for LiveKit" : "")"
                    messages[format] = [WebhookMessage(id: entry.cursor.text, type: words, body: Array(body.utf8))]
                }
                return messages
            }, world: world ?? receiver.world, logger: .quiet)
    }

    /// Runs webhooks over rooms of their own until `body` has ended.
    private func with(
        _ database: Database? = nil, _ receiver: Receiver,
        _ body: (RoomHost, WebhookSender) async throws -> Void
    ) async throws {
        let database = try database ?? Database(path: nil, schema: WebhookSender.schema)
        let rooms = RoomHost(media: TestPlane())
        let webhooks = webhooks(rooms, database, receiver)
        try await webhooks.load()
        let task = Task { await webhooks.run() }
        try await body(rooms, webhooks)
        await webhooks.stop()
        await rooms.shutDown()
        await task.value
    }

    @Test("I4: each event of a room is posted once and in order, also where the receiver is away for a while")
    func order() async throws {
        let receiver = Receiver()
        // Every third request fails, and ten in a row in the middle.
        receiver.answer { _, attempt in
            attempt % 3 == 0 || (20..<30).contains(attempt) ? .failed("nobody listens") : .answered(status: 200)
        }
        try await with(nil, receiver) { rooms, webhooks in
            #expect(try await webhooks.put(webhook()))
            for round in 0..<10 {
                for room in ["a", "b", "c"] { _ = try await rooms.createRoom(named: "\(room)\(round)") }
                for room in ["a", "b", "c"] { _ = try await rooms.deleteRoom(named: "\(room)\(round)") }
            }
            await receiver.accepted(60)
            // What was accepted leaves the queue a moment later; the time limit ends the wait.
            while try await webhooks.status(of: "w")?.queued != 0 { try await giveWay() }
        }
        let bodies = receiver.bodies
        #expect(bodies.count == 60 && Set(bodies).count == 60)
        for room in ["a", "b", "c"].flatMap({ room in (0..<10).map { "\(room)\($0)" } }) {
            #expect(bodies.filter { $0.hasPrefix("\(room) ") } == ["\(room) 1 roomStarted", "\(room) 2 roomEnded"])
        }
    }

    @Test(
        "I4: what waits when the server ends is posted in its next life, before what happens then, and the webhook is still there"
    )
    func restart() async throws {
        let database = try Database(path: nil, schema: WebhookSender.schema)
        let dead = Receiver()
        dead.answer { _, _ in .failed("nobody listens") }
        try await with(database, dead) { rooms, webhooks in
            try await webhooks.put(webhook())
            _ = try await rooms.createRoom(named: "R")
        }
        #expect(dead.bodies.isEmpty)
        let receiver = Receiver()
        try await with(database, receiver) { rooms, webhooks in
            await receiver.accepted(2)
            _ = try await rooms.createRoom(named: "R")
            await receiver.accepted(3)
            #expect(try await webhooks.list().map(\.webhook) == [webhook()])
        }
        #expect(receiver.bodies.prefix(3) == ["R 1 roomStarted", "R 2 roomEnded", "R 1 roomStarted"])
    }

    @Test("I4: a webhook that is set before the server runs is sent once what waits for it since an earlier life")
    func setEarly() async throws {
        let database = try Database(path: nil, schema: WebhookSender.schema)
        let dead = Receiver()
        dead.answer { _, _ in .failed("nobody listens") }
        try await with(database, dead) { rooms, webhooks in
            try await webhooks.put(webhook())
            _ = try await rooms.createRoom(named: "R")
        }
        let receiver = Receiver(), begun = Gate(), gate = Gate()
        var world = receiver.world
        let post = world.post
        world.post = { request, allowsPrivate in
            begun.open()
            await gate.wait()
            return await post(request, allowsPrivate)
        }
        let rooms = RoomHost(media: TestPlane())
        let webhooks = webhooks(rooms, database, receiver, world: world)
        try await webhooks.load()
        try await webhooks.put(webhook())
        await begun.wait()
        let task = Task { await webhooks.run() }
        _ = try await rooms.createRoom(named: "Q")
        // Then it runs.
        await webhooks.settle()
        gate.open()
        await receiver.accepted(3)
        await webhooks.stop()
        await rooms.shutDown()
        await task.value
        #expect(receiver.bodies.filter { $0.hasPrefix("R ") } == ["R 1 roomStarted", "R 2 roomEnded"])
    }

    @Test(
        "A receiver that accepts nothing for a day is parked, over a restart too; set again it gets what waited, in order"
    )
    func parking() async throws {
        let database = try Database(path: nil, schema: WebhookSender.schema)
        let dead = Receiver()
        dead.answer { _, _ in .failed("nobody listens") }
        try await with(database, dead) { rooms, webhooks in
            try await webhooks.put(webhook())
            _ = try await rooms.createRoom(named: "R")
            try await rooms.deleteRoom(named: "R")
            // The time limit ends the wait.
            while try await webhooks.status(of: "w")?.state != .parked { try await giveWay() }
            #expect(try await webhooks.status(of: "w")?.lastError == "nobody listens")
        }
        let waited = dead.waits.reduce(TimeSpan.zero) { $0 + $1 }
        #expect(waited >= WebhookBackoff.parking && waited < WebhookBackoff.parking + .seconds(61))
        let receiver = Receiver()
        try await with(database, receiver) { rooms, webhooks in
            let parked = try #require(try await webhooks.status(of: "w"))
            #expect(parked.state == .parked && parked.queued == 2 && parked.lastError == "nobody listens")
            _ = try await rooms.createRoom(named: "R")
            await webhooks.settle()
            #expect(try await webhooks.status(of: "w")?.queued == 3 && receiver.bodies.isEmpty)
            #expect(try await !webhooks.put(webhook()))
            await receiver.accepted(3)
            while try await webhooks.status(of: "w")?.queued != 0 { try await giveWay() }
            #expect(try await webhooks.status(of: "w")?.state == .active)
        }
        #expect(receiver.bodies.prefix(3) == ["R 1 roomStarted", "R 2 roomEnded", "R 1 roomStarted"])
        let last = Receiver()
        try await with(database, last) { _, webhooks in
            let state = try await webhooks.status(of: "w")?.state
            #expect(state == .active, "set again, it is parked no more")
        }
    }

    @Test(
        "A change or deletion that the database refuses leaves the webhook as it was, and it is sent what happens then"
    )
    func refusedChange() async throws {
        let url = "https://full.example.com"
        let refusal: SchemaStep = .statement(
            "CREATE TRIGGER refusal BEFORE INSERT ON webhooks WHEN NEW.url = '\(url)' BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
        let keeper: SchemaStep = .statement(
            "CREATE TRIGGER keeper BEFORE DELETE ON webhooks BEGIN SELECT RAISE(ABORT, 'locked'); END")
        let database = try Database(path: nil, schema: WebhookSender.schema + [refusal, keeper])
        let changed = Webhook(name: "w", url: url, signer: .secret(Self.secret))
        let added = Webhook(name: "new", url: url, signer: .secret(Self.secret))
        let receiver = Receiver()
        try await with(database, receiver) { rooms, webhooks in
            try await webhooks.put(webhook())
            _ = try await rooms.createRoom(named: "R")
            await receiver.accepted(1)
            // What was accepted leaves the queue a moment later; the time limit ends the wait.
            while try await webhooks.status(of: "w")?.queued != 0 { try await giveWay() }
            for refused in [changed, added] {
                await #expect(throws: WebhookError.storage("full")) { try await webhooks.put(refused) }
            }
            await #expect(throws: WebhookError.storage("locked")) { try await webhooks.delete("w") }
            let all = try await webhooks.list()
            #expect(all.map(\.webhook) == [webhook()] && all.first?.delivered == 1)
            try await rooms.deleteRoom(named: "R")
            await receiver.accepted(2)
        }
        #expect(receiver.bodies == ["R 1 roomStarted", "R 2 roomEnded"])
    }

    @Test("I4: an event that was accepted is not posted again while the database does not forget it")
    func forgetful() async throws {
        let database = try Database(path: nil, schema: WebhookSender.schema)
        let receiver = Receiver()
        try await with(database, receiver) { rooms, webhooks in
            try await webhooks.put(webhook())
            try await database.transaction { (sql) throws(DatabaseError) in
                _ = try sql.run(
                    "CREATE TRIGGER keeper BEFORE DELETE ON webhook_events BEGIN SELECT RAISE(ABORT, 'locked'); END")
            }
            _ = try await rooms.createRoom(named: "R")
            await receiver.accepted(1)
            while receiver.waits.count < 5 { try await giveWay() }
            #expect(receiver.bodies == ["R 1 roomStarted"])
            try await database.transaction { (sql) throws(DatabaseError) in _ = try sql.run("DROP TRIGGER keeper") }
            try await rooms.deleteRoom(named: "R")
            await receiver.accepted(2)
            while try await webhooks.status(of: "w")?.queued != 0 { try await giveWay() }
        }
        #expect(receiver.bodies == ["R 1 roomStarted", "R 2 roomEnded"])
    }

    @Test("I4: what happened before a call was answered is in the database by then, in order, though nobody takes it")
    func settled() async throws {
        let database = try Database(path: nil, schema: WebhookSender.schema)
        let dead = Receiver()
        dead.answer { _, _ in .failed("nobody listens") }
        try await with(database, dead) { rooms, webhooks in
            await webhooks.settle()
            try await webhooks.put(webhook())
            for count in 1...20 {
                _ = try await rooms.createRoom(named: "\(count)")
                await webhooks.settle()
                #expect(try await webhooks.status(of: "w")?.queued == count)
            }
        }
    }

    @Test("A webhook gets the types and rooms that it wants, and nothing once it is deleted")
    func filters() async throws {
        let receiver = Receiver()
        try await with(nil, receiver) { rooms, webhooks in
            try await webhooks.put(webhook("types", events: ["roomEnded"]))
            try await webhooks.put(webhook("rooms", rooms: ["b"]))
            for room in ["a", "b"] {
                _ = try await rooms.createRoom(named: room)
                try await rooms.deleteRoom(named: room)
            }
            await receiver.accepted(4)
            #expect(try await webhooks.delete("types"))
            #expect(try await !webhooks.delete("types"))
            #expect(try await webhooks.delete("rooms"))
            #expect(try await webhooks.list().isEmpty)
        }
        #expect(receiver.bodies.sorted() == ["a 2 roomEnded", "b 1 roomStarted", "b 2 roomEnded", "b 2 roomEnded"])
    }

    @Test(
        "Each webhook is sent its own format, and what waits when that is changed keeps the one in which it was written"
    )
    func formats() async throws {
        let database = try Database(path: nil, schema: WebhookSender.schema)
        let dead = Receiver()
        dead.answer { _, _ in .failed("nobody listens") }
        var lk = webhook("lk", events: ["roomStarted"])
        (lk.format, lk.signer) = (.liveKit, .key("app"))
        try await with(database, dead) { [lk] rooms, webhooks in
            try await webhooks.put(webhook(events: ["roomStarted"]))
            try await webhooks.put(lk)
            _ = try await rooms.createRoom(named: "R")
            while try await webhooks.status(of: "lk")?.queued != 1 { try await giveWay() }
            #expect(try await webhooks.list().map(\.webhook.format) == [.liveKit, .martlet])
        }
        lk.format = .martlet
        let receiver = Receiver()
        try await with(database, receiver) { [lk] _, webhooks in
            try await webhooks.put(lk)
            await receiver.accepted(2)
        }
        #expect(Set(receiver.bodies) == ["R 1 roomStarted", "R 1 roomStarted for LiveKit"])
        #expect(
            receiver.types == [
                "R 1 roomStarted": "application/json", "R 1 roomStarted for LiveKit": "application/webhook+json",
            ])
    }

    @Test("An event that the receiver refuses ten times is given up and counted, and the next one comes")
    func refusals() async throws {
        let receiver = Receiver()
        receiver.answer { body, _ in .answered(status: body.hasSuffix("roomStarted") ? 422 : 200) }
        try await with(nil, receiver) { rooms, webhooks in
            try await webhooks.put(webhook())
            _ = try await rooms.createRoom(named: "R")
            try await rooms.deleteRoom(named: "R")
            await receiver.accepted(1)
            #expect(try await webhooks.status(of: "w")?.lost == 1)
        }
        #expect(receiver.bodies == ["R 2 roomEnded"])
        #expect(receiver.waits.count == WebhookBackoff.refusals - 1)
    }

    @Test("What was delivered and lost is counted since the server started, whatever is changed of the webhook")
    func counts() async throws {
        let receiver = Receiver()
        receiver.answer { body, _ in .answered(status: body.hasSuffix("roomStarted") ? 422 : 200) }
        try await with(nil, receiver) { rooms, webhooks in
            try await webhooks.put(webhook())
            _ = try await rooms.createRoom(named: "R")
            try await rooms.deleteRoom(named: "R")
            await receiver.accepted(1)
            while try await webhooks.status(of: "w")?.queued != 0 { try await giveWay() }
            for room in ["a", "b"] { #expect(try await !webhooks.put(webhook(rooms: [room]))) }
            let status = try #require(try await webhooks.status(of: "w"))
            #expect(status.delivered == 1 && status.lost == 1)
        }
    }

    @Test("An event that fails for a day while the receiver accepts others is given up and counted; nothing is parked")
    func oneFails() async throws {
        let receiver = Receiver()
        receiver.answer { body, _ in .answered(status: body.hasPrefix("a ") ? 500 : 200) }
        try await with(nil, receiver) { rooms, webhooks in
            try await webhooks.put(webhook())
            // Only the lane of `a` waits, for a minute at most. Every hour and a half the receiver accepts another room's events.
            receiver.onWait { count in
                guard count % 100 == 0 else { return }
                let before = receiver.bodies.count
                _ = try? await rooms.createRoom(named: "b")
                _ = try? await rooms.deleteRoom(named: "b")
                await receiver.accepted(before + 2)
            }
            _ = try await rooms.createRoom(named: "a")
            // The time limit ends the wait.
            while try await webhooks.status(of: "w")?.lost == 0 { try await giveWay() }
            receiver.onWait { _ in }
            let status = try #require(try await webhooks.status(of: "w"))
            #expect(status.state != .parked && status.lost == 1 && status.delivered > 20)
        }
        #expect(receiver.bodies.allSatisfy { $0.hasPrefix("b ") })
    }

    @Test("What a webhook says is checked, and its error says what must be there")
    func checks() async throws {
        let rooms = RoomHost(media: TestPlane())
        let webhooks = webhooks(rooms, try Database(path: nil, schema: WebhookSender.schema), Receiver())
        let urls = [
            "", "ftp://example.com", "https://", "https:///x", "https://a b", "http://localhost/x", "http://127.0.0.1",
            "http://[::1]:80/", "http://10.1.2.3/x", "http://169.254.169.254/latest", "https://\u{e9}.com",
            "https://a@b.com/", "https://b.com?x",
            "https://e.com/" + String(repeating: "a", count: 2_048),
        ]
        for url in urls {
            var made = webhook()
            made.url = url
            await #expect(throws: WebhookError.self, "\(url)") { try await webhooks.put(made) }
        }
        for signer in [Webhook.Signer.secret("short"), .key("unknown")] {
            var made = webhook()
            made.signer = signer
            await #expect(throws: WebhookError.self) { try await webhooks.put(made) }
        }
        var unsigned = webhook()
        unsigned.format = .liveKit
        await #expect(throws: WebhookError.self, "LiveKit's receivers verify tokens") {
            try await webhooks.put(unsigned)
        }
        for index in 0..<Webhook.Limits.webhooks { #expect(try await webhooks.put(webhook("w\(index)"))) }
        await #expect(throws: WebhookError.tooMany) { try await webhooks.put(webhook()) }
        #expect(try await !webhooks.put(webhook("w3")), "one may be replaced")
    }
}
