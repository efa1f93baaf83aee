import AccessTokens
import EdgeSupport
import EdgeTestSupport
import Foundation
import HTTPServing
import Logging
import OfflineJobs
import Primitives
import Recorder
import RoomService
import Rooms
import SessionStore
import Storage
import TestSupport
import Testing
import Webhooks

@testable import ControlAPI

/// The API's routes over rooms without media.
struct TestAPI {
    let rooms: TestRooms
    let router: Router

    init(
        callsPerSecond: Int = 1_000, recorder: FileRecorder? = nil, jobs: JobRunner? = nil,
        configuration: RoomServiceConfiguration = RoomServiceConfiguration()
    ) {
        rooms = TestRooms(configuration: configuration)
        var router = Router(refuse: { Problem($0).response })
        Self.edge(rooms, callsPerSecond: callsPerSecond, recorder: recorder, jobs: jobs).register(on: &router)
        self.router = router
    }

    static func edge(
        _ rooms: TestRooms, callsPerSecond: Int = 1_000, recorder: FileRecorder? = nil, jobs: JobRunner? = nil
    ) -> ControlAPIEdge {
        guard let database = try? Database(path: nil, schema: WebhookSender.schema + SessionDatabase.schema) else {
            preconditionFailure("no memory for a database")
        }
        let webhooks = WebhookSender(
            of: rooms.rooms, database: database, keys: [], allowsPrivate: false, encode: { _, _ in [:] },
            wallClock: { 0 }, logger: .quiet)
        let sessions = SessionDatabase(
            database, kept: .seconds(60), wallClock: { 0 }, maxSessions: 100,
            encode: { JSONCoding.encode(SessionModel($0)) }, encodeHistory: { JSONCoding.encode(HistoryModel($0)) })
        return ControlAPIEdge(
            context: rooms.context, webhooks: webhooks, sessions: sessions, recorder: recorder, jobs: jobs,
            callsPerSecond: Live(callsPerSecond)
        ) {
            NodeReport(
                server: "martlet/test", uptimeSeconds: 1, isDraining: false, rooms: 0, participants: 0, connections: 0,
                workers: [])
        }
    }

    func ask(
        _ method: HTTPMethod, _ target: String, _ body: String = "", grant: VideoGrant = TestTokens.operatorGrant,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Answer {
        let response = await answer(
            try request(
                method, target, token: TestTokens.token(nil, grant), type: body.isEmpty ? nil : "application/json",
                body: body), sourceLocation: sourceLocation)
        return Answer(response: response)
    }

    /// Somebody who publishes a microphone and a camera.
    @discardableResult
    func publisher(_ identity: String, in room: String) async throws -> ParticipantInfo {
        let claims = AccessClaims(
            apiKey: TestTokens.key.name, identity: identity, expiresAt: .max, video: .join(room))
        return try await rooms.rooms.joinPublisher(
            JoinRequest(claims: claims), offer: ClientDescriptions(ufrag: "clnt").offer([.audio("0"), .video("1")])
        ).participant
    }

    /// Somebody who receives the microphone and the camera of `publisher`.
    func viewer(_ identity: String, of publisher: String, in room: String) async throws {
        let claims = AccessClaims(
            apiKey: TestTokens.key.name, identity: identity, expiresAt: .max, video: .join(room))
        let offer = ClientDescriptions(ufrag: "view").offer([.audio("0", "recvonly"), .video("1", "recvonly")])
        _ = try await rooms.rooms.joinViewer(JoinRequest(claims: claims), offer: offer, follow: .identity(publisher))
    }
}

struct Answer {
    let response: HTTPResponse
    var status: Int { response.status }

    var members: [String: Any] {
        (try? JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any]) ?? [:]
    }
    var code: String? { members["code"] as? String }
    func list(_ name: String) -> [[String: Any]] { members[name] as? [[String: Any]] ?? [] }
}

@Suite("Control API: rooms")
struct RoomsTests {
    private let api = TestAPI()

    @Test("Rooms are listed by name in pages that follow each other without a gap, those of a prefix alone")
    func pages() async throws {
        for index in [3, 1, 4, 0, 2] {
            #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"r \#(index)"}"#).status == 201)
        }
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"other"}"#).status == 201)
        var names: [String] = []
        var query = "limit=2"
        while true {
            let page = try await api.ask(.get, "/v1/rooms?prefix=r%20&\(query)").members
            names += (page["rooms"] as? [[String: Any]] ?? []).compactMap { $0["name"] as? String }
            guard let next = page["next"] as? String else { break }
            query = "limit=2&after=\(PercentCoding.encode(next))"
        }
        #expect(names == (0..<5).map { "r \($0)" })
        #expect((try await api.ask(.get, "/v1/rooms").members["rooms"] as? [Any])?.count == 6)
        for query in ["limit=0", "limit=1001", "limit=x"] {
            #expect(try await api.ask(.get, "/v1/rooms?\(query)").status == 400)
        }
        #expect(try await api.ask(.get, "/v1/rooms/other/participants?profile=nobody").status == 400)
        #expect(
            (try await api.ask(.get, "/v1/rooms/other/participants?profile=viewer").members["participants"] as? [Any])?
                .isEmpty == true)
    }

    @Test("Every list that the document has comes in pages that follow each other without a gap")
    func allPages() async throws {
        var configuration = RoomServiceConfiguration()
        configuration.allowsCaptures = true
        let api = TestAPI(configuration: configuration)
        #expect(try await api.ask(.put, "/v1/rooms/lobby", #"{"policy":{"waitingRoom":true}}"#).status == 201)
        for index in 0..<4 {
            #expect(try await api.ask(.put, "/v1/presets/p\(index)", "{}").status == 201)
            #expect(try await api.ask(.put, "/v1/revocations/identity/i\(index)", "{}").status == 200)
            #expect(try await api.ask(.put, "/v1/webhooks/w\(index)", Self.webhook).status == 201)
            for room in ["hall", "den"] { try await api.publisher("ada \(index)", in: room) }
            try await api.viewer("vera \(index)", of: "ada 0", in: "hall")
            await #expect(throws: RoomError.self) { try await api.publisher("guest \(index)", in: "lobby") }
            #expect(try await api.ask(.put, "/v1/rooms/room%20\(index)").status == 201)
            #expect(try await api.ask(.delete, "/v1/rooms/den/participants/ada%20\(index)?ban=60").status == 200)
            #expect(try await api.ask(.post, "/v1/rooms/hall/participants/ada%200/captures").status == 201)
        }
        let targets = [
            "/v1/rooms": "/v1/rooms", "/v1/presets": "/v1/presets", "/v1/revocations": "/v1/revocations",
            "/v1/webhooks": "/v1/webhooks", "/v1/rooms/{room}/participants": "/v1/rooms/hall/participants",
            "/v1/rooms/{room}/tracks": "/v1/rooms/hall/tracks", "/v1/rooms/{room}/guests": "/v1/rooms/lobby/guests",
            "/v1/rooms/{room}/subscriptions": "/v1/rooms/hall/subscriptions",
            "/v1/rooms/{room}/bans": "/v1/rooms/den/bans",
            "/v1/rooms/{room}/participants/{participant}/captures": "/v1/rooms/hall/participants/ada%200/captures",
        ]
        // `JobTests` and `EventTests` have their pages; a playback needs a player with files.
        let others = [
            "/v1/recordings", "/v1/rooms/{room}/recordings", "/v1/jobs", "/v1/events", "/v1/rooms/{room}/events",
            "/v1/rooms/{room}/playbacks",
        ]
        #expect(APIContract.shared.lists(with: "after") == (targets.keys + others).sorted())
        for (path, target) in targets {
            let name = try #require(path.split(separator: "/").last.map(String.init))
            let whole = try await api.ask(.get, target)
            #expect(whole.list(name).count >= 4 && whole.members["next"] == nil, "\(path)")
            var paged: [[String: Any]] = []
            var query = "limit=3"
            while true {
                let page = try await api.ask(.get, "\(target)?\(query)")
                #expect(page.list(name).count <= 3)
                paged += page.list(name)
                guard let next = page.members["next"] as? String else { break }
                query = "limit=3&after=\(PercentCoding.encode(next))"
            }
            #expect(paged as NSArray == whole.list(name) as NSArray, "\(path)")
        }
    }

    private static let webhook =
        #"{"url":"https://hooks.example.org/","secret":"secret-secret-secret-secret-0001"}"#

    @Test("A merge patch changes a preset or a webhook, and leaves what it does not name: a webhook's secret, too")
    func patches() async throws {
        #expect(try await api.ask(.patch, "/v1/presets/small", #"{"maxParticipants":4}"#).status == 404)
        let preset = #"{"maxParticipants":4,"audioOnly":true}"#
        #expect(try await api.ask(.put, "/v1/presets/small", preset).status == 201)
        let changed = try await api.ask(.patch, "/v1/presets/small", #"{"maxParticipants":9,"audioOnly":null}"#)
        let policy = try await api.ask(.get, "/v1/presets/small").members["policy"] as? [String: Any]
        #expect(changed.status == 200 && policy?["maxParticipants"] as? Int == 9 && policy?["audioOnly"] == nil)
        #expect(try await api.ask(.patch, "/v1/presets/small", #"{"maxParticipants":0}"#).status == 400)

        let hook = #"{"url":"https://a.example.org/","secret":"sixteen bytes or more","events":["roomEnded"]}"#
        #expect(try await api.ask(.patch, "/v1/webhooks/w", #"{"url":"https://b.example.org/"}"#).status == 404)
        #expect(try await api.ask(.put, "/v1/webhooks/w", hook).status == 201)
        let moved = try await api.ask(
            .patch, "/v1/webhooks/w", #"{"url":"https://b.example.org/","events":null,"rooms":["R"]}"#)
        #expect(moved.status == 200 && moved.members["url"] as? String == "https://b.example.org/")
        #expect(moved.members["events"] == nil && moved.members["rooms"] as? [String] == ["R"])
        #expect(!moved.response.text.contains("sixteen"))
        let unsigned = try await api.ask(.patch, "/v1/webhooks/w", #"{"secret":null}"#)
        #expect(unsigned.status == 409 && unsigned.code == "conflict", "the secret was still there")
        #expect(try await api.ask(.patch, "/v1/webhooks/w", #"{"url":"ftp://b.example.org/"}"#).status == 400)
    }

    @Test("Of merge patches of one preset, webhook or participant that are made at a time each has its effect")
    func concurrentPatches() async throws {
        try await api.publisher("ada", in: "R")
        let hook = #"{"url":"https://a.example.org/","secret":"sixteen bytes or more"}"#
        #expect(try await api.ask(.put, "/v1/presets/p", "{}").status == 201)
        #expect(try await api.ask(.put, "/v1/webhooks/w", hook).status == 201)
        let api = api, isOn = [true, false]
        for round in 1...25 {
            let flag = isOn[round % 2]
            let patches = [
                ("presets/p", #"{"maxParticipants":\#(round)}"#), ("presets/p", #"{"maxPublishers":\#(round)}"#),
                ("presets/p", #"{"maxSpeakers":\#(round)}"#), ("webhooks/w", #"{"url":"https://\#(round).example/"}"#),
                ("webhooks/w", #"{"rooms":["\#(round)"]}"#),
                ("rooms/R/participants/ada", #"{"permissions":{"canPublish":\#(flag)}}"#),
                ("rooms/R/participants/ada", #"{"permissions":{"canPublishData":\#(flag)}}"#),
            ]
            try await withThrowingTaskGroup(of: Int.self) { group in
                for (path, body) in patches {
                    group.addTask { try await api.ask(.patch, "/v1/\(path)", body).status }
                }
                for try await status in group { #expect(status == 200) }
            }
            let policy = try await api.ask(.get, "/v1/presets/p").members["policy"] as? [String: Any]
            let numbers = ["maxParticipants", "maxPublishers", "maxSpeakers"].map { policy?[$0] as? Int }
            let webhook = try await api.ask(.get, "/v1/webhooks/w").members
            let ada = try await api.ask(.get, "/v1/rooms/R/participants/ada").members
            let permissions = ada["permissions"] as? [String: Any]
            let flags = ["canPublish", "canPublishData"].map { permissions?[$0] as? Bool }
            guard numbers == [round, round, round], webhook["url"] as? String == "https://\(round).example/",
                webhook["rooms"] as? [String] == ["\(round)"], flags == [flag, flag]
            else {
                Issue.record("round \(round) lost a patch: \(numbers), \(webhook), \(flags)")
                return
            }
        }
    }

    @Test("PUT makes a room once, however often it is called, and leaves it as it is")
    func ensured() async throws {
        let body = #"{"metadata":"m","policy":{"maxParticipants":4}}"#
        let made = try await api.ask(.put, "/v1/rooms/R", body)
        #expect(made.status == 201 && made.members["metadata"] as? String == "m")
        let again = try await api.ask(.put, "/v1/rooms/R", #"{"metadata":"other"}"#)
        #expect(again.status == 200 && again.response.body == made.response.body)
        #expect(try await api.ask(.put, "/v1/rooms/R", #"{"name":"Q"}"#).status == 400)
        #expect(try await api.ask(.put, "/v1/rooms/Q", #"{"preset":"none"}"#).code == "preset_not_found")
        var grant = VideoGrant()
        grant.roomAdmin = true
        #expect(try await api.ask(.put, "/v1/rooms/Q", grant: grant).status == 403)
    }

    @Test("Where the API is served elsewhere, clients still find their ICE servers, and nothing else")
    func clientsAlone() async throws {
        var router = Router(refuse: { Problem($0).response })
        TestAPI.edge(api.rooms).registerForClients(on: &router)
        let served = router
        func status(_ target: String) async throws -> Int {
            await served.handle(try request(.get, target, token: TestTokens.token("ada", .join("R")))).status
        }
        #expect(try await status("/v1/ice-servers") == 200)
        for target in ["/v1/rooms", "/v1/events", "/openapi.json"] { #expect(try await status(target) == 404) }
    }

    @Test("A room is made, listed, shown, and ended")
    func life() async throws {
        let made = try await api.ask(
            .post, "/v1/rooms",
            """
            {"name":"a b/c","metadata":"m","policy":{"maxParticipants":4,"videoCodecs":["h264","vp8"],"emptyTimeoutSeconds":60}}
            """)
        #expect(made.status == 201, "\(made.response.text)")
        #expect(made.response.headers["Location"] == "/v1/rooms/a%20b%2Fc")
        #expect(try await api.ask(.post, "/v1/rooms", "{\"name\":\"a b/c\"}").code == "room_exists")
        #expect(try await api.ask(.get, "/v1/rooms").list("rooms").map { $0["name"] as? String } == ["a b/c"])
        let shown = try await api.ask(.get, "/v1/rooms/a%20b%2Fc")
        let policy = try #require(shown.members["policy"] as? [String: Any])
        #expect(policy["maxParticipants"] as? Int == 4)
        #expect(policy["videoCodecs"] as? [String] == ["h264", "vp8"])
        #expect(policy["emptyTimeoutSeconds"] as? Int == 60)
        let deleted = try await api.ask(.delete, "/v1/rooms/a%20b%2Fc")
        #expect(deleted.status == 200)
        #expect(deleted.members["closedForSeconds"] as? Int == 3_600, "4.8")
        #expect(deleted.members["acceptsTokensIssuedAfter"] as? Int64 == TestTokens.now)
        #expect(try await api.ask(.get, "/v1/rooms/a%20b%2Fc").code == "room_not_found")
        #expect(try await api.ask(.delete, "/v1/rooms/a%20b%2Fc").status == 404)
    }

    @Test("No name and no body: a generated name")
    func generated() async throws {
        let made = try await api.ask(.post, "/v1/rooms")
        #expect(made.status == 201)
        #expect((made.members["name"] as? String)?.isEmpty == false)
    }

    @Test(
        "4.7: a wrong body is refused with its place, what must be there, what is, and what was probably meant",
        arguments: [
            (#"{"nmae":"x"}"#, "/nmae", nil, nil, "name"),
            (#"{"name":"r","maxParticipants":2}"#, "/maxParticipants", nil, nil, "policy.maxParticipants"),
            (#"{"maxParticpants":2}"#, "/maxParticpants", nil, nil, "policy.maxParticipants"),
            (#"{"policy":{"maxParticpants":3}}"#, "/policy/maxParticpants", nil, nil, "policy.maxParticipants"),
            (#"{"surprise":{}}"#, "/surprise", nil, nil, nil),
            (#"{"policy":{"maxParticipants":0}}"#, "/policy/maxParticipants", "1 to 1000000", "0", nil),
            (#"{"policy":{"maxParticipants":"2"}}"#, "/policy/maxParticipants", "a whole number", "\"2\"", nil),
            (#"{"policy":{"maxParticipants":2.5}}"#, "/policy/maxParticipants", "a whole number", "2.5", nil),
            (#"{"policy":{"audioOnly":1}}"#, "/policy/audioOnly", "true or false", "1", nil),
            (#"{"policy":{"topology":"star"}}"#, "/policy/topology", "routed or peerToPeer", "\"star\"", nil),
            (
                #"{"policy":{"audioCodecs":["vp8"]}}"#, "/policy/audioCodecs", "a list of: opus, red, otherAudio",
                "an array", nil
            ),
            (#"{"policy":{"maxUplinkBitrate":5}}"#, "/policy/maxUplinkBitrate", "10000 to 1000000000", "5", nil),
            (
                #"{"policy":{"oversendBitrate":5}}"#, "/policy/oversendBitrate", "absent without shortage oversend",
                "5", nil
            ),
            (#"{"policy":[]}"#, "/policy", "an object", "an array", nil),
            (#"{"name":7}"#, "/name", "a string", "7", nil),
            (#"{"name":".."}"#, "/name", nil, nil, nil), (#"{"name":"a\u202eb"}"#, "/name", nil, nil, nil),
            (#"{"name":""}"#, "/name", nil, nil, nil), (#"{"metadata":"\u0000"}"#, "/metadata", nil, nil, nil),
            ("[]", "", "an object", "an array", nil), ("{", "", nil, nil, nil),
        ] as [(String, String, String?, String?, String?)])
    func malformed(body: String, pointer: String, expected: String?, found: String?, meant: String?) async throws {
        let answer = try await api.ask(.post, "/v1/rooms", body)
        #expect(answer.status == 400)
        #expect(answer.code == "malformed_json")
        let text = answer.response.text
        #expect(answer.members["pointer"] as? String == pointer, "\(text)")
        #expect(answer.members["expected"] as? String == expected, "\(text)")
        #expect(answer.members["found"] as? String == found, "\(text)")
        #expect(answer.members["suggestion"] as? String == meant, "\(text)")
    }

    @Test("Another media type is 415")
    func mediaType() async throws {
        let response = await api.answer(
            try request(
                .post, "/v1/rooms", token: TestTokens.token(nil, TestTokens.operatorGrant), type: "text/plain",
                body: "{}"))
        #expect(response.status == 415)
    }

    @Test("Each operation wants its grant; a grant with a room is good for that room only")
    func grants() async throws {
        _ = try await api.ask(.post, "/v1/rooms", "{\"name\":\"one\"}")
        _ = try await api.ask(.post, "/v1/rooms", "{\"name\":\"two\"}")
        for target in ["/v1/rooms", "/v1/node", "/v1/rooms/one", "/v1/rooms/one/stats"] {
            #expect(try await api.ask(.get, target, grant: .join(nil)).code == "token_not_permitted")
            #expect(await api.answer(try request(.get, target)).status == 401)
        }
        var one = TestTokens.operatorGrant
        one.room = "one"
        #expect(try await api.ask(.get, "/v1/rooms", grant: one).list("rooms").count == 1)
        #expect(try await api.ask(.get, "/v1/rooms/one", grant: one).status == 200)
        for target in ["/v1/rooms/two", "/v1/rooms/none", "/v1/rooms/two/participants/ada", "/v1/rooms/two/stats"] {
            let refused = try await api.ask(.get, target, grant: one)
            #expect(refused.status == 403 && refused.code == "room_mismatch", "B4: \(target)")
        }
        #expect(try await api.ask(.delete, "/v1/rooms/two", grant: one).code == "room_mismatch")
        #expect(try await api.ask(.post, "/v1/rooms", "{\"name\":\"three\"}", grant: one).code == "room_mismatch")
        #expect(try await api.ask(.post, "/v1/rooms", grant: one).code == "token_not_permitted")
        #expect(try await api.ask(.get, "/v1/rooms/two", grant: .join("one")).code == "token_not_permitted")
    }

    @Test(
        "A list of what may outlive its room is empty for a room that is not there, and refused for a name that no room can have",
        arguments: ["recordings", "playbacks", "participants/ada/captures"])
    func impossibleNames(list: String) async throws {
        #expect(try await api.ask(.get, "/v1/rooms/nowhere/\(list)").status == 200)
        let refused = try await api.ask(.get, "/v1/rooms/\(String(repeating: "a", count: 257))/\(list)")
        #expect(refused.status == 400 && refused.code == "invalid_request")
    }

    @Test("The node reports on itself")
    func node() async throws {
        #expect(try await api.ask(.get, "/v1/node").members["server"] as? String == "martlet/test")
    }
}
