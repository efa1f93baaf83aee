import AccessTokens
import MediaControl
import Primitives
import Rooms
import TestSupport
import Testing

@testable import RoomService

@Suite("Event log")
struct EventLogTests {
    private func log(_ maxEntries: Int = 100) -> EventLog { EventLog(epoch: "e1", maxEntries: maxEntries) }

    private func fill(_ log: inout EventLog, _ rooms: [String]) {
        var last: [String: UInt64] = [:]
        for room in rooms {
            last[room, default: 0] += 1
            _ = log.append(room: room, roomSID: "RM_\(room)", sequence: last[room] ?? 0, at: 0, .roomStarted)
        }
    }

    @Test("I4: a page has what came after its cursor, in order; the next page begins behind it and none is sent twice")
    func pages() throws {
        var log = log()
        fill(&log, ["a", "b", "a", "a", "b"])
        let first = log.page(room: nil, after: .beginning, limit: 3)
        #expect(first.events.map(\.room) == ["a", "b", "a"] && !first.missesEvents)
        let second = log.page(room: nil, after: first.next, limit: 3)
        #expect(second.events.map(\.room) == ["a", "b"])
        #expect(log.page(room: nil, after: second.next, limit: 3).events.isEmpty)
        #expect(log.page(room: "a", after: .beginning, limit: 9).events.map(\.sequence) == [1, 2, 3])
        let cursor = try #require(EventCursor(text: first.events[1].cursor.text))
        #expect(log.page(room: "a", after: cursor, limit: 9).events.map(\.sequence) == [2, 3])
    }

    @Test("I4: where events are no longer kept, or the cursor is of another life of the server, the reader is notified")
    func missed() throws {
        var log = log(4)
        fill(&log, Array(repeating: "a", count: 10))
        let page = log.page(room: nil, after: .beginning, limit: 100)
        #expect(page.missesEvents && page.events.map(\.sequence) == [7, 8, 9, 10])
        let cases: [(cursor: String, misses: Bool, sequences: [UInt64])] = [
            ("e1-5", true, [7, 8, 9, 10]), ("e1-6", false, [7, 8, 9, 10]), ("e1-9", false, [10]), ("e1-10", false, []),
            ("e1-11", true, [7, 8, 9, 10]), ("e2-9", true, [7, 8, 9, 10]),
        ]
        for (text, misses, sequences) in cases {
            let page = log.page(room: nil, after: try #require(EventCursor(text: text)), limit: 100)
            #expect(page.missesEvents == misses && page.events.map(\.sequence) == sequences, "\(text)")
        }
        for text in ["", "-", "e1", "e1-", "-5", "E1-5", "e1-5-6", "e1--5", "e1-+5", "e1-99999999999999999999"] {
            #expect(EventCursor(text: text) == nil, "\(text)")
        }
        #expect(EventCursor(text: "0") == .beginning)
    }

    @Test(
        "I4: a reader of some types is notified of what it misses of those, and of nothing that its filter leaves out")
    func missedTypes() throws {
        var log = log(4)
        fill(&log, ["a"])
        for sequence in 2...11 {
            _ = log.append(
                room: "a", roomSID: "RM_a", sequence: UInt64(sequence), at: 0, .lockChanged(.open, by: nil))
        }
        // Of all rooms 8 to 11 are kept, of one room two more.
        let cases: [(types: Set<RoomLogEventType>?, after: String, missesOfAll: Bool, missesOfRoom: Bool)] = [
            ([.roomStarted], "e1-1", false, false), ([.roomStarted], "0", true, true),
            ([.roomEnded], "0", false, false), ([.lockChanged], "e1-1", true, true),
            ([.lockChanged], "e1-5", true, false), ([.lockChanged], "e1-7", false, false), (nil, "e1-1", true, true),
            ([.roomStarted, .lockChanged], "e1-1", true, true), ([.roomStarted], "e2-1", true, true),
        ]
        for (types, after, missesOfAll, missesOfRoom) in cases {
            let cursor = try #require(EventCursor(text: after))
            for (room, misses) in [(nil, missesOfAll), ("a", missesOfRoom)] {
                let page = log.page(room: room, types: types, after: cursor, limit: 100)
                #expect(page.missesEvents == misses, "\(room ?? "all"), \(types ?? []) after \(after)")
                let feed = log.follow(room: room, types: types, after: cursor) { _ in }
                #expect(feed.missesEvents == misses, "\(room ?? "all"), \(types ?? []) after \(after)")
            }
        }
    }

    @Test(
        "What is forgotten of very many rooms is remembered by its types alone, so that readers of others miss nothing")
    func forgottenTypes() {
        var spare = SpareEvents(maxEntries: 1)
        for position in 1...10_001 {
            spare.note(
                forgotten: RoomLogEntry(
                    cursor: EventCursor(epoch: "e", position: UInt64(position)), room: "\(position)", roomSID: "RM_1",
                    sequence: 1, at: 0, event: .roomStarted))
        }
        #expect(spare.lastForgotten(of: "1", types: nil) == 10_001, "its own place is no longer known")
        #expect(spare.lastForgotten(of: "1", types: [.roomStarted]) == 10_001)
        #expect(spare.lastForgotten(of: "1", types: [.roomEnded]) == 0)
    }

    @Test(
        "I4: a busy room does not push a quiet one's last events out, nor is a gap reported to the quiet one's reader"
    )
    func noisyNeighbour() throws {
        var log = log(100)
        fill(&log, ["quiet", "quiet", "quiet"] + Array(repeating: "noisy", count: 5_000))
        let quiet = log.page(room: "quiet", after: .beginning, limit: 100)
        #expect(quiet.events.map(\.sequence) == [1, 2, 3] && !quiet.missesEvents)
        let cursor = try #require(EventCursor(text: quiet.events[1].cursor.text))
        #expect(log.page(room: "quiet", after: cursor, limit: 100).events.map(\.sequence) == [3])
        let noisy = log.page(room: "noisy", after: .beginning, limit: 1_000)
        #expect(noisy.missesEvents && noisy.events.map(\.sequence) == Array(4_901...5_000))
        _ = log.append(room: "quiet", roomSID: "RM_q", sequence: 4, at: 0, .roomEnded)
        #expect(log.page(room: "quiet", after: cursor, limit: 100).events.map(\.sequence) == [3, 4])
    }

    @Test(
        "Of each room the last fifty are set aside, of all rooms half as many as the log has; who misses some is notified"
    )
    func spareEventsAreBounded() throws {
        var log = log(200)
        fill(&log, Array(repeating: "a", count: 120) + Array(repeating: "noisy", count: 500))
        let a = log.page(room: "a", after: .beginning, limit: 1_000)
        #expect(a.missesEvents && a.events.map(\.sequence) == Array(71...120))
        // Three more rooms of fifty: the oldest room's are forgotten first.
        fill(&log, ["b", "c", "d"].flatMap { Array(repeating: $0, count: 50) } + Array(repeating: "noisy", count: 500))
        #expect(log.page(room: "a", after: .beginning, limit: 1_000).events.isEmpty)
        #expect(log.page(room: "a", after: .beginning, limit: 1_000).missesEvents)
        #expect(log.page(room: "b", after: .beginning, limit: 1_000).missesEvents)
        #expect(log.page(room: "d", after: .beginning, limit: 1_000).events.count == 50)
        #expect(!log.page(room: "d", after: .beginning, limit: 1_000).missesEvents)
    }

    @Test("The kept events are bounded by their size too")
    func size() {
        var log = log(1_000_000)
        var info = ParticipantInfo(
            sid: "PA_1", identity: "ada", name: "", metadata: String(repeating: "m", count: 1 << 20), profile: .full,
            permissions: Permissions(.init()), joinedAt: 0)
        for index in 0..<100 {
            info.sid = "PA_\(index)"
            _ = log.append(room: "a", roomSID: "RM_a", sequence: UInt64(index + 1), at: 0, .participantJoined(info))
        }
        #expect(log.page(room: nil, after: .beginning, limit: 1_000).events.map(\.sequence) == Array(38...100))
    }

    @Test(
        "I4: a follower gets what it missed and then what happens, of its room; one that does not read comes to an end")
    func follow() async {
        var log = log(5_000)
        fill(&log, ["a", "b", "a"])
        let all = log.follow(room: nil, after: .beginning) { _ in }
        let one = log.follow(room: "b", after: .beginning) { _ in }
        let new = log.follow(room: nil, after: nil) { _ in }
        fill(&log, ["b", "c"])
        log.close()
        func rooms(_ feed: EventFeed) async -> [String] { await feed.events.reduce(into: []) { $0.append($1.room) } }
        #expect(await rooms(all) == ["a", "b", "a", "b", "c"])
        #expect(await rooms(one) == ["b", "b"])
        #expect(await rooms(new) == ["b", "c"])
        let late = log.follow(room: "a", after: .beginning) { _ in }
        #expect(await rooms(late) == ["a", "a"], "who asks after the end gets what is kept, and waits for nothing")
        log = self.log(5_000)
        let slow = log.follow(room: nil, after: nil) { _ in }
        fill(&log, Array(repeating: "a", count: EventLog.maxQueued + 5))
        #expect(await rooms(slow).count == EventLog.maxQueued)
        log = self.log(5_000)
        let filtered = log.follow(room: nil, types: [.roomEnded], after: nil) { _ in }
        fill(&log, Array(repeating: "a", count: EventLog.maxQueued + 5))
        _ = log.append(room: "b", roomSID: "RM_b", sequence: 1, at: 0, .roomEnded)
        log.close()
        #expect(await rooms(filtered) == ["b"], "what it does not want does not fill its queue")
    }

    @Test("A refused publication is an event, one in a second for each code")
    func refusedPublications() async throws {
        let plane = FakePlane()
        let service = RoomHost(media: plane)
        var document = PolicyDocument()
        document.maxPublishers = 0
        let feed = await service.follow(room: "R", after: nil)
        _ = try await service.createRoom(named: "R", policy: document)
        let ada = try await service.join(request("ada")).session
        let offer = ClientDescriptions(ufrag: "clnt").offer([.audio("0")])
        func publish() async -> RoomError.Code? {
            await code { _ = try await service.offer(ada, connection: "pub", sdp: offer) }
        }
        for _ in 0..<3 { #expect(await publish() == .limitExceeded) }
        plane.pass(.seconds(1))
        #expect(await publish() == .limitExceeded)
        await service.closeEvents()
        let refused: [String] = await feed.events.reduce(into: []) { events, entry in
            if case .publicationRefused(_, let identity, let code) = entry.event {
                events.append("\(identity) \(code)")
            }
        }
        #expect(refused == ["ada limitExceeded", "ada limitExceeded"])
    }

    @Test("A server that ends reports what it waits for after its rooms have ended, and then no more")
    func lastNews() async throws {
        let service = RoomHost(media: FakePlane())
        let feed = await service.follow(room: nil, after: nil)
        let room = try await service.createRoom(named: "R")
        await service.shutDown {
            await service.recordingHappened(RecordingEvent(.ready, recording: "RC_1"), room: "R", roomSID: room.sid)
        }
        await service.recordingHappened(RecordingEvent(.ready, recording: "RC_2"), room: "R", roomSID: room.sid)
        let entries = await feed.events.reduce(into: []) { $0.append($1) }
        #expect(entries.map(\.event.type) == [.roomStarted, .roomEnded, .recordingReady])
        #expect(entries.allSatisfy { $0.roomSID == room.sid })
    }

    @Test("What is set aside takes bounded memory, however long many rooms are busy alike")
    func spareOrder() {
        var spare = SpareEvents(maxEntries: 5_000)
        for position in 1...100_000 {
            let room = "\(position % 250)"
            _ = spare.add(
                RoomLogEntry(
                    cursor: EventCursor(epoch: "e", position: UInt64(position)), room: room, roomSID: "RM_\(room)",
                    sequence: UInt64(position), at: 0, event: .roomStarted))
            _ = spare.trim(room, keeping: 10)
        }
        #expect(spare.order.count <= 3 * 2_500 + 1_025, "\(spare.order.count)")
        let kept = spare.events(of: "7").map { Int($0.cursor.position) }
        #expect(kept == Array(stride(from: 97_507, through: 99_757, by: 250)))
        let oldest = spare.forgetOldest()?.cursor.position
        #expect(oldest == 97_501, "the order is still that of the events")
    }

    @Test(
        "I4, B16, C14: what happens in a room is logged in order with gap-free numbers, and each life of a room begins at 1"
    )
    func service() async throws {
        let plane = FakePlane()
        let service = RoomHost(media: plane)
        let feed = await service.follow(room: "R", after: nil)
        _ = try await service.createRoom(named: "R")
        let ada = try await service.join(request("ada"))
        try await service.lock(room: "R", password: nil)
        #expect(await code { _ = try await service.join(request("bob")) } == .roomLocked)
        #expect(await code { _ = try await service.join(request("bob")) } == .roomLocked, "written down once a second")
        await service.leave(ada.session)
        _ = try await service.deleteRoom(named: "R")
        _ = try await service.createRoom(named: "R")
        await service.closeEvents()
        let entries = await feed.events.reduce(into: []) { $0.append($1) }
        #expect(entries.map(\.sequence) == [1, 2, 3, 4, 5, 6, 1])
        guard entries.count == 7 else { return }
        #expect(entries[0].event == .roomStarted && entries[5].event == .roomEnded && entries[6].event == .roomStarted)
        #expect(entries[2].event == .lockChanged(.closed, by: nil))
        #expect(entries[3].event == .joinRefused(identity: "bob", code: .roomLocked))
        guard case .participantLeft(let info, .left, hasConnected: false, _) = entries[4].event else {
            Issue.record("\(entries[4].event)")
            return
        }
        #expect(info.identity == "ada", "ada gave up before a connection came up, and the event says so")
        #expect(entries[0].roomSID != entries[6].roomSID && Set(entries.map(\.room)) == ["R"])
    }
}
