import AccessTokens
import EdgeSupport
import EdgeTestSupport
import Foundation
import HTTPServing
import RoomService
import Rooms
import Testing

@testable import ControlAPI

@Suite("Control API: events")
struct EventTests {
    private let api = TestAPI()

    private func ask(_ target: String, accept: String = "application/json", last: String? = nil) async throws -> Answer
    {
        var request = try request(.get, target, token: TestTokens.token(nil, TestTokens.operatorGrant))
        request.headers["Accept"] = accept
        request.headers["Last-Event-ID"] = last
        return Answer(response: await api.answer(request))
    }

    @Test("Readers that name types of events get those, in pages, streams and WebSockets; an unknown type is refused")
    func types() async throws {
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"R"}"#).status == 201)
        #expect(try await api.ask(.put, "/v1/rooms/R/lock", "{}").status == 200)
        #expect(try await api.ask(.delete, "/v1/rooms/R/lock").status == 200)
        #expect(try await api.ask(.delete, "/v1/rooms/R").status == 200)
        let first = try await ask("/v1/rooms/R/events?type=lockChanged,roomEnded&limit=1")
        #expect(first.list("events").map { $0["sequence"] as? Int } == [2])
        let next = try #require(first.members["next"] as? String)
        let rest = try await ask("/v1/events?type=lockChanged,roomEnded&after=\(next)")
        #expect(rest.list("events").map { $0["sequence"] as? Int } == [3, 4])
        let stream = try #require(try await ask("/v1/events?after=0&type=roomEnded", accept: "*/*").response.stream)
        var texts: [String] = []
        for await piece in stream.pieces {
            texts.append(String(decoding: piece, as: UTF8.self))
            if texts.count == 2 { break }
        }
        #expect(texts[1].contains("event: roomEnded"))
        let socket = ScriptedEventSocket()
        let feed = await api.rooms.rooms.follow(room: nil, types: [.roomEnded], after: .beginning)
        let serving = Task { await EventSocketFeed.run(feed, on: socket) }
        var received = socket.texts.makeAsyncIterator()
        #expect(await received.next()?.contains(#""type":"roomEnded""#) == true)
        socket.receive("anything")
        await serving.value
        for types in ["", "roomEnded,", "unknown", "roomended"] {
            #expect(try await ask("/v1/events?type=\(types)").status == 400, "\(types)")
        }
    }

    @Test("An event of a policy's change says who changed it, and bans are events of their own")
    func authors() async throws {
        try await api.publisher("ada", in: "R")
        #expect(try await api.ask(.patch, "/v1/rooms/R/policy", #"{"maxParticipants":3}"#).status == 200)
        #expect(try await api.ask(.delete, "/v1/rooms/R/participants/ada?ban=60&reason=spam").status == 200)
        #expect(try await api.ask(.delete, "/v1/rooms/R/bans/ada").status == 204)
        let events = try await ask("/v1/rooms/R/events?type=policyChanged,banStarted,banEnded").list("events")
        #expect(events.map { $0["type"] as? String } == ["policyChanged", "banStarted", "banEnded"])
        guard events.count == 3 else { return }
        #expect(events[0]["by"] as? String == TestTokens.key.name && events[0]["revision"] as? Int == 2)
        #expect(events[1]["identity"] as? String == "ada" && events[1]["reason"] as? String == "spam")
        #expect(events[1]["until"] as? Int64 == (TestTokens.now + 60) * 1_000 && events[2]["until"] == nil)
    }

    @Test(
        "A revocation is an event of the server that says what was revoked, until when and by whom, and no room's readers get it"
    )
    func revocations() async throws {
        #expect(try await api.ask(.put, "/v1/revocations/token/t-9", #"{"seconds":60}"#).status == 200)
        #expect(try await api.ask(.put, "/v1/revocations/identity/ada", #"{"seconds":90}"#).status == 200)
        #expect(try await api.ask(.delete, "/v1/revocations/token/t-9").status == 204)
        let events = try await ask("/v1/events?type=revocationStarted,revocationEnded").list("events")
        #expect(events.map { $0["type"] as? String } == ["revocationStarted", "revocationStarted", "revocationEnded"])
        #expect(events.map { $0["tokenId"] as? String } == ["t-9", nil, "t-9"])
        #expect(events.map { $0["identity"] as? String } == [nil, "ada", nil])
        #expect(events.map { $0["sequence"] as? Int } == [1, 2, 3])
        let ends = [60, 90].map { (TestTokens.now + $0) * 1_000 } as [Int64?]
        #expect(events.map { $0["until"] as? Int64 } == ends + [nil])
        #expect(events.allSatisfy { $0["by"] as? String == TestTokens.key.name })
        #expect(events.allSatisfy { $0["room"] as? String == "" && $0["roomSid"] as? String == "" })
        #expect(try await ask("/v1/rooms/R/events").list("events").isEmpty)
    }

    @Test("I9: an event of each type is what the document says, member by member", arguments: RoomLogEventType.allCases)
    func members(type: RoomLogEventType) throws {
        let event = SampleEvents.event(type)
        let model = EventModel(RoomLogEntry(room: "R", roomSID: "RM_1", sequence: 1, at: 1, event: event))
        #expect(model.type == type.rawValue)
        let json = try JSONSerialization.jsonObject(with: Data(JSONCoding.encode(model)))
        let faults = APIContract.shared.faults(json, as: "Event")
        #expect(faults.isEmpty, "\(faults)")
    }

    @Test("I4: pages of events follow each other without a gap, and each event has its type's members")
    func pages() async throws {
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"R"}"#).status == 201)
        #expect(try await api.ask(.put, "/v1/rooms/R/lock", #"{"password":"x"}"#).status == 200)
        let first = try await ask("/v1/rooms/R/events?limit=1")
        let started = try #require((first.members["events"] as? [[String: Any]])?.first)
        #expect(started["type"] as? String == "roomStarted" && started["sequence"] as? Int == 1)
        #expect(started["room"] as? String == "R" && (started["roomSid"] as? String)?.hasPrefix("RM_") == true)
        #expect(started["participant"] == nil && first.members["missesEvents"] as? Bool == false)
        let next = try #require(first.members["next"] as? String)
        let second = try await ask("/v1/rooms/R/events", last: next)
        let locked = try #require((second.members["events"] as? [[String: Any]])?.first)
        #expect(locked["type"] as? String == "lockChanged" && locked["lock"] as? String == "password")
        #expect((second.members["events"] as? [Any])?.count == 1)
        let all = try await ask("/v1/events?after=0")
        #expect((all.members["events"] as? [Any])?.count == 2)
        for target in [
            "/v1/events?after=x", "/v1/events?limit=0", "/v1/events?limit=1001", "/v1/events?limit=a",
            "/v1/rooms/%20/events",
        ] {
            #expect(try await ask(target).status == 400, "\(target)")
        }
    }

    @Test(
        "I4: server-sent events have id, type and data in one piece, what was missed first",
        arguments: ["*/*", "text/event-stream", "application/json, text/event-stream"])
    func stream(accept: String) async throws {
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"R"}"#).status == 201)
        let answer = try await ask("/v1/events?after=zz-9", accept: accept)
        #expect(answer.status == 200 && answer.response.headers["Content-Type"] == "text/event-stream")
        let stream = try #require(answer.response.stream)
        var texts: [String] = []
        for await piece in stream.pieces {
            texts.append(String(decoding: piece, as: UTF8.self))
            if texts.count == 2 { break }
        }
        let missed = texts[0].split(separator: "\n", omittingEmptySubsequences: false)
        #expect(missed.first == "retry: 2000" && missed.dropFirst(2) == ["event: eventsMissed", "data: {}", "", ""])
        #expect(missed[1].hasPrefix("id: ") && missed[1].hasSuffix("-0"), "the cursor is of another server's life")
        let lines = texts[1].split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == 5 && lines[0].hasPrefix("id: ") && lines[1] == "event: roomStarted")
        #expect(lines[2].hasPrefix(#"data: {"at":"#) && lines[3].isEmpty && lines[4].isEmpty)
    }

    @Test(
        "I4: a stream begins with an id, so that a client whose connection ends before the first event misses none",
        arguments: ["", "?after=0"])
    func streamWithoutEvents(query: String) async throws {
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"R"}"#).status == 201)
        let first = try #require(try await ask("/v1/rooms/Q/events\(query)", accept: "*/*").response.stream)
        var beginning = ""
        for await piece in first.pieces {
            beginning = String(decoding: piece, as: UTF8.self)
            break
        }
        let match = beginning.wholeMatch(of: /retry: 2000\nid: ([a-z0-9]+-[0-9]+)\n\n/)
        let id = try #require(match?.output.1)
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"Q"}"#).status == 201)
        let again = try await ask("/v1/rooms/Q/events", last: String(id))
        #expect(again.list("events").map { $0["type"] as? String } == ["roomStarted"])
        #expect(again.members["missesEvents"] as? Bool == false)
    }

    @Test(
        "I4: a WebSocket gets the entries of the stream after its cursor, what was missed first, and then what happens")
    func webSocket() async throws {
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"R"}"#).status == 201)
        let socket = ScriptedEventSocket()
        let cursor = try #require(EventCursor(text: "zz-9"))
        let feed = await api.rooms.rooms.follow(room: nil, after: cursor)
        let serving = Task { await EventSocketFeed.run(feed, on: socket) }
        var texts = socket.texts.makeAsyncIterator()
        #expect(await texts.next() == #"{"type":"eventsMissed"}"#)
        #expect(try await api.ask(.put, "/v1/rooms/R/lock", #"{"password":"x"}"#).status == 200)
        let streamed = try await ask("/v1/events?after=0").response.body
        for type in ["roomStarted", "lockChanged"] {
            let text = try #require(await texts.next())
            #expect(text.contains(#""type":"\#(type)""#) && String(decoding: streamed, as: UTF8.self).contains(text))
        }
        socket.receive("anything")
        #expect(await socket.closes.first { _ in true } == 1003)
        await serving.value
    }

    @Test(
        "A WebSocket whose client disconnected ends its feed, and one that the feed leaves behind is asked to reconnect"
    )
    func webSocketEnds() async throws {
        let socket = ScriptedEventSocket()
        let serving = Task {
            await EventSocketFeed.run(await api.rooms.rooms.follow(room: nil, after: nil), on: socket)
        }
        socket.end()
        await serving.value
        let late = ScriptedEventSocket()
        let feed = await api.rooms.rooms.follow(room: nil, after: nil)
        await api.rooms.rooms.shutDown()
        let behind = Task { await EventSocketFeed.run(feed, on: late) }
        #expect(await late.closes.first { _ in true } == 1013)
        late.end()
        await behind.value
    }

    @Test("With the token of a reader that is revoked its streams end, and its WebSockets are closed with 1008")
    func revokedReaders() async throws {
        let token = try TestTokens.token("mod", TestTokens.operatorGrant)
        var streaming = try request(.get, "/v1/rooms/R/events", token: token)
        streaming.headers["Accept"] = "*/*"
        let stream = try #require(await api.answer(streaming).stream)
        let claims = try TestTokens.gate.claims(of: token)
        let (rooms, socket) = (api.rooms.rooms, ScriptedEventSocket())
        let feed = await rooms.follow(room: "R", after: nil, bearer: claims)
        let serving = Task { await EventSocketFeed.run(feed, on: socket) { rooms.isGood(claims) } }
        #expect(try await api.ask(.put, "/v1/revocations/identity/mod", #"{"seconds":60}"#).status == 200)
        #expect(await socket.closes.first { _ in true } == 1008)
        socket.end()
        await serving.value
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"R"}"#).status == 201)
        var pieces = 0
        for await _ in stream.pieces { pieces += 1 }
        #expect(pieces == 1, "the beginning alone")
    }

    @Test("What happens in all rooms is not for a moderator of one, and nothing is for members")
    func permissions() async throws {
        func status(_ target: String, _ room: String?, _ change: (inout VideoGrant) -> Void) async throws -> Int {
            var grant = VideoGrant()
            grant.room = room
            change(&grant)
            var request = try request(.get, target, token: TestTokens.token("m", grant))
            request.headers["Accept"] = "application/json"
            return await api.answer(request).status
        }
        #expect(try await status("/v1/events", "R") { $0.roomAdmin = true } == 403)
        #expect(try await status("/v1/rooms/R/events", "R") { $0.roomAdmin = true } == 200)
        #expect(try await status("/v1/rooms/Q/events", "R") { $0.roomAdmin = true } == 403)
        #expect(try await status("/v1/rooms/R/events", "R") { $0.roomJoin = true } == 403)
        #expect(try await status("/v1/events", nil) { $0.roomJoin = true } == 403)
    }
}
