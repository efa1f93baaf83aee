import AccessTokens
import CLiveKitProtocol
import EdgeSupport
import EdgeTestSupport
import HTTPServing
import MediaControl
import RoomService
import Rooms
import Synchronization
import TestSupport
import Testing

@testable import LiveKit

@Suite("Requests of LiveKit's clients")
struct SessionTests {
    /// Keeps what is sent.
    private final class Socket: LiveKitSocket {
        let messages = AsyncStream<WebSocketMessage> { $0.finish() }
        private let sent = Mutex<[[UInt8]]>([])

        var frames: [[UInt8]] { sent.withLock { $0 } }

        func send(_ bytes: [UInt8]) -> Bool {
            sent.withLock { $0.append(bytes) }
            return true
        }

        func close(code: UInt16, reason: String) {}
    }

    @Test("A subscription beyond the limit is answered, and one to a track that is not there")
    func refusedSubscription() async throws {
        var configuration = RoomServiceConfiguration()
        configuration.maxSubscriptionsPerParticipant = 1
        let rooms = TestRooms(configuration: configuration)
        let ada = AccessClaims(
            apiKey: TestTokens.key.name, identity: "ada", expiresAt: .max, video: .join("r"))
        let publisher = try await rooms.rooms.joinPublisher(
            JoinRequest(claims: ada), offer: ClientDescriptions().offer([.audio("0"), .video("1")])
        ).participant
        let tracks = publisher.tracks.map(\.sid)
        try #require(tracks.count == 2)
        let claims = try TestTokens.gate.claims(of: TestTokens.token("bob", .join("r")))
        let entrance = Entrance(
            context: rooms.context, claims: claims, parameters: JoinParameters(dual: ["auto_subscribe": "0"]),
            address: "192.0.2.7", origin: nil)
        let session = try await entrance.enter()
        guard let stay = session.stay else {
            Issue.record("bob is not in")
            return
        }
        let socket = Socket()
        await session.handle(.subscription(tracks: tracks + ["TR_none"], subscribes: true), stay.session, socket)
        var failures: [String: Livekit__SubscriptionError] = [:]
        for frame in socket.frames {
            try WireTests.read(frame: frame) { message in
                #expect(message.message_case == LIVEKIT__SIGNAL_RESPONSE__MESSAGE_SUBSCRIPTION_RESPONSE)
                let response = message.subscription_response.pointee
                failures[String(response.track_sid)] = response.err
            }
        }
        #expect(failures.count == 2)
        #expect(failures[tracks[1]] == LIVEKIT__SUBSCRIPTION_ERROR__SE_UNKNOWN)
        #expect(failures["TR_none"] == LIVEKIT__SUBSCRIPTION_ERROR__SE_TRACK_NOTFOUND)
    }

    /// Ada publishes two tracks; bob comes in with `query`.
    private func meeting(
        _ rooms: TestRooms, _ query: [String: String] = [:],
        publishing offer: String = ClientDescriptions().offer([.audio("0"), .video("1")])
    ) async throws -> (tracks: [String], bob: LiveKitSession, stay: LiveKitSession.Stay) {
        let ada = AccessClaims(apiKey: TestTokens.key.name, identity: "ada", expiresAt: .max, video: .join("r"))
        let tracks = try await rooms.rooms.joinPublisher(JoinRequest(claims: ada), offer: offer)
            .participant.tracks.map(\.sid)
        let entrance = Entrance(
            context: rooms.context, claims: try TestTokens.gate.claims(of: TestTokens.token("bob", .join("r"))),
            parameters: JoinParameters(dual: query), address: "192.0.2.7", origin: nil)
        let bob = try await entrance.enter()
        return (tracks, bob, try #require(bob.stay))
    }

    @Test("What a client says about a track before it subscribes to it counts from its subscription on")
    func settingsInAdvance() async throws {
        let rooms = TestRooms(), socket = Socket()
        let (tracks, bob, stay) = try await meeting(rooms, ["auto_subscribe": "0"])
        var settings = ClientSignal.TrackSettings()
        settings.height = 180
        await bob.handle(.trackSettings(tracks: [tracks[1]], settings), stay.session, socket)
        await bob.handle(.subscription(tracks: [tracks[1]], subscribes: true), stay.session, socket)
        #expect(try await rooms.rooms.subscriptions(of: stay.session).map(\.preference) == [.height(180)])
        #expect(socket.frames.isEmpty)
    }

    /// The first offer that bob is sent.
    private func offer(to stay: LiveKitSession.Stay) async -> (sdp: String, id: UInt32)? {
        var translator = EventTranslator(people: stay.people)
        for await event in stay.events {
            for case .offer(let sdp, let id) in translator.signals(for: event) { return (sdp, id) }
        }
        return nil
    }

    @Test("B22: what a client is offered has no address and no ICE credentials of another participant")
    func addresses() async throws {
        let rooms = TestRooms()
        var voice = ClientDescriptions.Section.audio("0")
        voice.extra = ["a=candidate:1 1 udp 2122260223 203.0.113.77 50123 typ host"]
        var ada = ClientDescriptions(ufrag: "adasfragment")
        ada.password = "adaspasswordadaspassword"
        let (_, _, stay) = try await meeting(rooms, publishing: ada.offer([voice, .video("1")]))
        let offered = try #require(await offer(to: stay)).sdp
        #expect(offered.contains("a=ice-ufrag:"))
        for secret in ["203.0.113.77", "adasfragment", "adaspassword", ClientDescriptions.fingerprint] {
            #expect(!offered.contains(secret), "\(secret)")
        }
        #expect(try await rooms.rooms.subscriptions(of: stay.session).count == 2)
    }

    @Test(
        "After a resume a client is not sent what it does not want and has agreed to before, and not what it has disabled; what it has not got yet stays"
    )
    func synchronizedSubscriptions() async throws {
        let rooms = TestRooms(), socket = Socket()
        let (tracks, bob, stay) = try await meeting(rooms)
        let unwanted = ClientSignal.syncState(
            .init(publications: [], tracks: [tracks[0], "TR_gone"], subscribes: false, disabled: []))
        await bob.handle(unwanted, stay.session, socket)
        #expect(try await rooms.rooms.subscriptions(of: stay.session).count == 2, "nothing was agreed")
        let offered = try #require(await offer(to: stay))
        try await rooms.rooms.answer(
            stay.session, connection: Room.serverConnection, sdp: ClientDescriptions().answer(to: offered.sdp))
        await bob.handle(unwanted, stay.session, socket)
        #expect(try await rooms.rooms.subscriptions(of: stay.session).map(\.track) == [tracks[1]])
        let disabled = ClientSignal.syncState(
            .init(publications: [], tracks: [], subscribes: false, disabled: [tracks[1]]))
        await bob.handle(disabled, stay.session, socket)
        #expect(try await rooms.rooms.subscriptions(of: stay.session).map(\.paused) == [true])
        #expect(socket.frames.isEmpty)
    }

    @Test(
        "After a resume a client that subscribes by hand is sent what it wants, and begins anew only where it publishes what it never announced"
    )
    func synchronizedPreferences() async throws {
        let rooms = TestRooms(), socket = Socket()
        let (tracks, bob, stay) = try await meeting(rooms, ["auto_subscribe": "0"])
        var announcement = TrackAnnouncement("a", source: .microphone)
        announcement.kind = .audio
        let mine = try await rooms.rooms.announce(announcement, in: stay.session).sid
        var state = ClientSignal.SyncState(
            publications: [mine, ""], tracks: [tracks[1]], subscribes: true, disabled: [])
        for _ in 0..<2 { await bob.handle(.syncState(state), stay.session, socket) }
        #expect(try await rooms.rooms.subscriptions(of: stay.session).map(\.track) == [tracks[1]])
        #expect(socket.frames.isEmpty)
        state.publications = ["TR_unknown"]
        await bob.handle(.syncState(state), stay.session, socket)
        try WireTests.read(frame: try #require(socket.frames.first)) { message in
            #expect(message.message_case == LIVEKIT__SIGNAL_RESPONSE__MESSAGE_LEAVE)
            #expect(message.leave.pointee.action == LIVEKIT__LEAVE_REQUEST__ACTION__RECONNECT)
        }
    }

    @Test("What a client changes about a track that it has announced and not offered yet is what the track has later")
    func changedBeforeOffer() async throws {
        let rooms = TestRooms(), socket = Socket()
        let (tracks, bob, stay) = try await meeting(rooms, ["auto_subscribe": "0"])
        var announcement = TrackAnnouncement("a", source: .microphone)
        announcement.kind = .audio
        let mine = try await rooms.rooms.announce(announcement, in: stay.session).sid
        await bob.handle(.updateTrack(sid: mine, .audioFeatures([4])), stay.session, socket)
        #expect(socket.frames.isEmpty)
        _ = try await rooms.rooms.offer(
            stay.session, connection: "publisher", sdp: ClientDescriptions().offer([.audio("0", track: "a")]))
        let published = try #require(try await rooms.rooms.participant(stay.session).tracks.first)
        #expect(published.sid == mine && published.details.audioFeatures == [4])
        // Another's track is not the client's to change.
        await bob.handle(.updateTrack(sid: tracks[0], .audioFeatures([4])), stay.session, socket)
        #expect(socket.frames.count == 1)
    }

    @Test("What a client changes about a track is that track's, also while another one of the same id is published")
    func changedByID() async throws {
        let rooms = TestRooms(), socket = Socket()
        let (_, bob, stay) = try await meeting(rooms, ["auto_subscribe": "0"])
        var announcement = TrackAnnouncement("a", source: .microphone)
        announcement.kind = .audio
        let former = try await rooms.rooms.announce(announcement, in: stay.session).sid
        _ = try await rooms.rooms.offer(
            stay.session, connection: "publisher", sdp: ClientDescriptions().offer([.audio("0", track: "a")]))
        // The same track object once more, before the offer that ends what it was.
        let mine = try await rooms.rooms.announce(announcement, in: stay.session).sid
        #expect(mine != former)
        await bob.handle(.updateTrack(sid: mine, .audioFeatures([4])), stay.session, socket)
        for (sid, features) in [(former, []), (mine, [4])] as [(String, [Int])] {
            let track = try #require(try await rooms.rooms.ownTrack(sid, of: stay.session))
            #expect(track.details.audioFeatures == features)
        }
        #expect(socket.frames.isEmpty)
    }

    @Test("A client that unmutes more often than a large room permits is muted again: it shows what others hear")
    func refusedUnmute() async throws {
        let rooms = TestRooms(), socket = Socket()
        let (_, bob, stay) = try await meeting(rooms, ["auto_subscribe": "0"])
        for number in 0..<400 {
            let claims = AccessClaims(
                apiKey: TestTokens.key.name, identity: "member \(number)", expiresAt: .max, video: .join("r"))
            var request = JoinRequest(claims: claims)
            (request.autoSubscribe, request.wantsRoster) = (false, false)
            _ = try await rooms.rooms.join(request)
        }
        _ = try await rooms.rooms.offer(
            stay.session, connection: "publisher", sdp: ClientDescriptions().offer([.audio("0")]))
        let mine = try #require(try await rooms.rooms.participant(stay.session).tracks.first?.sid)
        for _ in 0..<200 where socket.frames.isEmpty {
            for muted in [true, false] { await bob.handle(.mute(track: mine, muted), stay.session, socket) }
        }
        try WireTests.read(frame: try #require(socket.frames.first)) { message in
            #expect(message.message_case == LIVEKIT__SIGNAL_RESPONSE__MESSAGE_MUTE)
            #expect(String(message.mute.pointee.sid) == mine && message.mute.pointee.muted == 1)
        }
        #expect(try await rooms.rooms.participant(stay.session).tracks.first?.muted == true)
    }

    @Test("A refreshed token is good for ten minutes, and in its room as long as the one whose place it takes")
    func refreshedTokens() throws {
        let gate = TestTokens.gate
        func lifetime(of seconds: Int64, in room: String) throws -> Int64 {
            let claims = AccessClaims(
                apiKey: TestTokens.key.name, identity: "ada", expiresAt: TestTokens.now + seconds, video: .join("r"))
            let token = try #require(gate.returnToken(claims, room: room))
            return try gate.claims(of: token).expiresAt - TestTokens.now
        }
        #expect(try lifetime(of: 60, in: "r") == 600)
        #expect(try lifetime(of: 6 * 3_600, in: "r") == 6 * 3_600)
        // It is not its token's room: an operator moved it there.
        #expect(try lifetime(of: 6 * 3_600, in: "other") == 600)
    }
}
