import AccessTokens
import CLiveKitProtocol
import EdgeSupport
import EdgeTestSupport
import Foundation
import HTTPServing
import MediaControl
import Primitives
import RoomService
import Rooms
import Testing

@testable import LiveKit

@Suite("What a client says when it joins")
struct JoinTests {
    static func wrapped(_ join: [UInt8], gzip: Bool = false) -> String {
        let arena = MessageArena()
        let bytes = arena.packed(
            arena.make(livekit__wrapped_join_request__init) { message in
                message.join_request = arena.bytes(join)
                if gzip { message.compression = LIVEKIT__WRAPPED_JOIN_REQUEST__COMPRESSION__GZIP }
            })
        return Data(bytes).base64EncodedString()
    }

    @Test(
        "A client is asked for a ping in a third of the keep-alive time, every 1 to 5 s",
        arguments: [(3, 1), (9, 3), (30, 5)] as [(Int64, Int32)])
    func pingInterval(keepAlive: Int64, interval: Int32) async throws {
        var configuration = RoomServiceConfiguration()
        configuration.keepAliveTimeout = .seconds(keepAlive)
        let rooms = TestRooms(configuration: configuration)
        let claims = try TestTokens.gate.claims(of: TestTokens.token("ada", .join("r")))
        let entrance = Entrance(
            context: rooms.context, claims: claims, parameters: JoinParameters(dual: [:]), address: "192.0.2.7",
            origin: nil)
        let session = try await entrance.enter()
        guard case .join(let reply)? = session.greeting.first else {
            Issue.record("the first message is no join")
            return
        }
        #expect(reply.pingInterval == interval && reply.pingTimeout == 3 * interval)
    }

    @Test("Others learn what a participant's token says it is, a refreshed one too; unknown words mean a person")
    func kinds() async throws {
        let rooms = TestRooms()
        let kinds: [(String?, Livekit__ParticipantInfo__Kind)] = [
            ("agent", LIVEKIT__PARTICIPANT_INFO__KIND__AGENT), ("robot", LIVEKIT__PARTICIPANT_INFO__KIND__STANDARD),
            (nil, LIVEKIT__PARTICIPANT_INFO__KIND__STANDARD),
        ]
        for (kind, number) in kinds {
            var claims = AccessClaims(
                apiKey: TestTokens.key.name, identity: "ada", expiresAt: TestTokens.now + 60, video: .join("r"))
            claims.kind = kind
            let refreshed = try #require(TestTokens.gate.returnToken(claims, room: "r"))
            let entrance = Entrance(
                context: rooms.context, claims: try TestTokens.gate.claims(of: refreshed),
                parameters: JoinParameters(dual: [:]), address: "192.0.2.7", origin: nil)
            guard case .join(let reply)? = try await entrance.enter().greeting.first else {
                Issue.record("the first message is no join")
                return
            }
            #expect(reply.participant.kindNumber == number)
        }
    }

    @Test("A client learns which codecs the room's policy lets it publish, the most wanted first")
    func codecs() async throws {
        let rooms = TestRooms()
        var document = PolicyDocument()
        document.videoCodecs = [.h264, .vp8]
        _ = try await rooms.rooms.createRoom(named: "strict", policy: document)
        for (room, video) in [("r", [.vp8, .h264, .vp9, .av1]), ("strict", [.h264, .vp8])] as [(String, [Codec])] {
            let claims = try TestTokens.gate.claims(of: TestTokens.token("ada", .join(room)))
            let entrance = Entrance(
                context: rooms.context, claims: claims, parameters: JoinParameters(dual: [:]), address: "192.0.2.7",
                origin: nil)
            let session = try await entrance.enter()
            guard case .join(let reply)? = session.greeting.first else {
                Issue.record("the first message is no join")
                return
            }
            #expect(reply.codecs == [.opus, .red] + video)
            try WireTests.read(.join(reply)) { message in
                let join = message.join.pointee
                let shown = (0..<join.n_enabled_publish_codecs).map { index in
                    String(join.enabled_publish_codecs[index]!.pointee.mime)
                }
                #expect(shown == reply.codecs.map(\.mimeType))
            }
        }
    }

    @Test("Video is not held for a client that says so: its smallest layers go beyond the estimate")
    func mayHoldVideo() async throws {
        for (flag, shortage) in [
            (nil, DownlinkPolicy().shortage), ("1", DownlinkPolicy().shortage),
            ("0", .oversend(.kilobitsPerSecond(10_000))),
        ] as [(String?, ShortagePolicy)] {
            let rooms = TestRooms()
            let claims = try TestTokens.gate.claims(of: TestTokens.token("ada", .join("r")))
            let query = flag.map { ["subscriber_allow_pause": $0] } ?? [:]
            let entrance = Entrance(
                context: rooms.context, claims: claims, parameters: JoinParameters(dual: query), address: "192.0.2.7",
                origin: nil)
            let session = try await entrance.enter()
            #expect(try await rooms.rooms.participant("ada", in: "r").bandwidth.shortage == shortage)
            withExtendedLifetime(session) {}
        }
        for (isSet, value, mayHold) in [(false, 0, true), (true, 1, true), (true, 0, false)] as [(Bool, Int32, Bool)] {
            let arena = MessageArena()
            let settings = arena.make(livekit__connection_settings__init) { settings in
                guard isSet else { return }
                settings.optional_subscriber_allow_pause_case =
                    LIVEKIT__CONNECTION_SETTINGS__OPTIONAL_SUBSCRIBER_ALLOW_PAUSE_SUBSCRIBER_ALLOW_PAUSE
                settings.subscriber_allow_pause = value
            }
            let join = arena.packed(arena.make(livekit__join_request__init) { $0.connection_settings = settings })
            #expect(try #require(JoinParameters(single: Self.wrapped(join))).mayHoldVideo == mayHold)
        }
    }

    @Test("A join announces 64 tracks at most")
    func manyTracks() throws {
        let arena = MessageArena()
        let join = arena.packed(
            arena.make(livekit__join_request__init) { message in
                message.n_add_track_requests = 5_000
                message.add_track_requests = arena.list(
                    (0..<5_000).map { number in
                        arena.make(livekit__add_track_request__init) { $0.cid = arena.text("\(number)") }
                    })
            })
        let parameters = try #require(JoinParameters(single: Self.wrapped(join, gzip: false)))
        #expect(parameters.tracks.map(\.clientID) == (0..<64).map(String.init))
    }

    static var join: [UInt8] {
        let arena = MessageArena()
        return arena.packed(
            arena.make(livekit__join_request__init) { message in
                message.connection_settings = arena.make(livekit__connection_settings__init) { $0.auto_subscribe = 1 }
                message.client_info = arena.make(livekit__client_info__init) { $0.protocol = 18 }
                message.publisher_offer = arena.make(livekit__session_description__init) { offer in
                    offer.sdp = arena.text("v=0>>>???")
                    offer.id = 7
                }
            })
    }

    @Test(
        "A join request is read in either alphabet of base64, without padding, and with blanks for what was not escaped"
    )
    func alphabets() throws {
        let standard = Self.wrapped(Self.join)
        let spellings = [
            standard, standard.replacing("+", with: "-").replacing("/", with: "_"), standard.replacing("=", with: ""),
            standard.replacing("+", with: " "),
        ]
        for text in spellings {
            let parameters = try #require(JoinParameters(single: text))
            #expect(parameters.protocolVersion == 18)
            #expect(parameters.autoSubscribe)
            #expect(parameters.offer == ClientSignal.Description(sdp: "v=0>>>???", id: 7))
        }
    }

    @Test("What is no join request is refused: nothing, no base64, a cut message, a compression that is none")
    func refused() {
        #expect(JoinParameters(single: nil) == nil)
        #expect(JoinParameters(single: "!") == nil)
        #expect(JoinParameters(single: Self.wrapped([0x0a, 0x7f])) == nil)
        #expect(JoinParameters(single: Self.wrapped(Self.join, gzip: true)) == nil)
    }

    @Test("A compressed request inflates to at most what is allowed")
    func gzip() throws {
        // 300 zeros, as gzip writes them.
        let member: [UInt8] = [
            0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xff, 0x63, 0x60, 0x18, 0x05, 0xc4, 0x02, 0x00, 0xd2,
            0x8f, 0x34, 0xb5, 0x2c, 0x01, 0x00, 0x00,
        ]
        #expect(Gzip.inflate(member, atMost: 300) == [UInt8](repeating: 0, count: 300))
        #expect(Gzip.inflate(member, atMost: 299) == nil)
        #expect(Gzip.inflate([], atMost: 10) == nil)
    }

    @Test("The query of two connections: booleans as digits and words, unknown parameters skipped")
    func query() {
        let parameters = JoinParameters(dual: [
            "protocol": "15", "auto_subscribe": "false", "reconnect": "1", "sid": "PA_1", "later": "x",
            "capabilities": "CAP_COMPRESSION_DEFLATE_RAW,CAP_LATER,CAP_PACKET_TRAILER",
            "auto_subscribe_data_track": "1",
        ])
        #expect(parameters.client.capabilities == [2, 1] && parameters.subscribesToDataTracks)
        #expect(parameters.protocolVersion == 15)
        #expect(!parameters.autoSubscribe)
        #expect(parameters.resumes == "PA_1")
        #expect(JoinParameters(dual: [:]).autoSubscribe)
    }
}

@Suite("Joins that are refused")
struct RefusedJoinTests {
    /// What keeps others than Ada, who is in the room "full", out of a room.
    struct Obstacle: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var room = "full"
        var status = 503
        var retryAfter: String?
        var text: String
        var put: @Sendable (RoomHost) async throws -> Void
    }

    private static func limit(_ change: @escaping @Sendable (inout RoomServiceConfiguration) -> Void)
        -> @Sendable (RoomHost) async throws -> Void
    {
        { rooms in
            var configuration = RoomServiceConfiguration()
            change(&configuration)
            await rooms.set(configuration)
        }
    }

    static let obstacles: [Obstacle] = [
        Obstacle(
            testDescription: "a full server", retryAfter: "10", text: "Participant limit of the server reached.",
            put: limit { $0.maxParticipants = 1 }),
        Obstacle(
            testDescription: "a full room", text: "The room is full.", put: limit { $0.maxParticipantsPerRoom = 1 }),
        Obstacle(
            testDescription: "a server on which joins make no rooms", room: "new", status: 404,
            text: "There is no such room.", put: limit { $0.autoCreateRooms = false }),
        Obstacle(
            testDescription: "a drain, for new rooms", room: "new", retryAfter: "5",
            text: "The server is about to end.",
            put: { await $0.setDrain(DrainNotice(deadline: nil)) }),
        Obstacle(
            testDescription: "a locked room", status: 403, text: "The room is locked.",
            put: { _ = try await $0.lock(room: "full", password: nil) }),
        Obstacle(
            testDescription: "a room with a password", status: 403, text: "The room asks for a password.",
            put: { _ = try await $0.lock(room: "full", password: "correct horse") }),
    ]

    /// What decides about sockets and calls, when Ada is in the room "full".
    private func entered(
        _ rooms: TestRooms
    ) async throws -> (Router, decide: @Sendable (HTTPRequest) async -> WebSocketDecision) {
        let edge = LiveKitEdge(context: rooms.context)
        var router = Router()
        edge.register(on: &router)
        let decide = try #require(edge.webSocketRoutes.first { $0.pattern == "/rtc" }).decide
        _ = await decide(try request(.get, "/rtc", token: TestTokens.token("ada", .join("full"))))
        return (router, decide)
    }

    @Test(
        "K3: a refused socket's answer has the reason and when to come back, and so has that of /rtc/validate",
        arguments: obstacles)
    func refused(obstacle: Obstacle) async throws {
        let rooms = TestRooms()
        let (router, decide) = try await entered(rooms)
        func asking(_ path: String, _ room: String) throws -> HTTPRequest {
            try request(.get, path, token: TestTokens.token("bob", .join(room)))
        }
        try await obstacle.put(rooms.rooms)

        let validated = await router.handle(try asking("/rtc/validate", obstacle.room))
        #expect(await rooms.rooms.statistics().refusals.isEmpty)
        guard case .refuse(let refused) = await decide(try asking("/rtc", obstacle.room)) else {
            Issue.record("bob came in")
            return
        }
        for response in [validated, refused] {
            #expect(response.status == obstacle.status && response.text == obstacle.text)
            #expect(response.headers["Retry-After"] == obstacle.retryAfter)
            #expect(response.headers["Content-Type"] == "text/plain; charset=utf-8")
        }
    }

    @Test(
        "A session that a newer one has replaced is refused with 403, at the socket and by /rtc/validate; one of nobody begins anew"
    )
    func replaced() async throws {
        let rooms = TestRooms()
        let (router, decide) = try await entered(rooms)
        func asking(_ path: String, _ identity: String) throws -> HTTPRequest {
            try request(.get, "\(path)?reconnect=1&sid=PA_gone", token: TestTokens.token(identity, .join("full")))
        }
        guard case .refuse(let refused) = await decide(try asking("/rtc", "ada")) else {
            Issue.record("the older device is let in")
            return
        }
        #expect(refused.status == 403)
        #expect(await router.handle(try asking("/rtc/validate", "ada")).status == 403)
        guard case .accept = await decide(try asking("/rtc", "bob")) else {
            Issue.record("bob is not asked to begin anew")
            return
        }
        #expect(await router.handle(try asking("/rtc/validate", "bob")).status == 200)
    }
}
