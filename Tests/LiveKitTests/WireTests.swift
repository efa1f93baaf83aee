import CLiveKitProtocol
import EdgeSupport
import MediaControl
import Rooms
import Testing

@testable import LiveKit

@Suite("LiveKit's frames")
struct WireTests {
    /// A client's frame.
    static func frame(_ fill: (inout Livekit__SignalRequest, MessageArena) -> Void) -> [UInt8] {
        let arena = MessageArena()
        return arena.packed(arena.make(livekit__signal_request__init) { fill(&$0, arena) })
    }

    /// What the server's frame says.
    static func read<Value>(_ signal: ServerSignal, _ body: (Livekit__SignalResponse) -> Value) throws -> Value {
        try read(frame: signal.frame, body)
    }

    static func read<Value>(frame: [UInt8], _ body: (Livekit__SignalResponse) -> Value) throws -> Value {
        let message = UnpackedMessage<Livekit__SignalResponse>(frame, livekit__signal_response__unpack)
        guard let message else { throw Unreadable() }
        return message.read(body)
    }

    struct Unreadable: Error {}

    static let participant = ParticipantInfo(
        sid: "PA_1", identity: "ada", name: "Ada", metadata: "", profile: .full, permissions: Permissions(),
        joinedAt: 1_790_000_000_000)
    static let room = RoomInfo(
        sid: "RM_1", name: "r", metadata: "m", topology: .routed, maxParticipants: nil, createdAt: 1_790_000_000_000)

    @Test("A subscription that fails names its track, and whether there is one")
    func subscriptionFailed() throws {
        for isKnown in [true, false] {
            try Self.read(.subscriptionFailed(track: "TR_1", isKnown: isKnown)) { message in
                #expect(message.message_case == LIVEKIT__SIGNAL_RESPONSE__MESSAGE_SUBSCRIPTION_RESPONSE)
                let response = message.subscription_response.pointee
                #expect(String(response.track_sid) == "TR_1")
                let notFound = response.err == LIVEKIT__SUBSCRIPTION_ERROR__SE_TRACK_NOTFOUND
                #expect(notFound == !isKnown)
            }
        }
    }

    @Test("The join message has what clients end their process without: room, participant, ping interval")
    func join() throws {
        let reply = JoinReply(
            room: Self.room, participant: Self.participant, others: [Self.participant], iceServers: [],
            isSubscriberPrimary: true, server: "martlet/test")
        try Self.read(.join(reply)) { message in
            #expect(message.message_case == LIVEKIT__SIGNAL_RESPONSE__MESSAGE_JOIN)
            let join = message.join.pointee
            #expect(String(join.room.pointee.sid) == "RM_1")
            #expect(String(join.participant.pointee.sid) == "PA_1")
            #expect(join.participant.pointee.state == LIVEKIT__PARTICIPANT_INFO__STATE__JOINED)
            #expect(join.ping_interval == 5 && join.ping_timeout == 15)
            #expect(join.n_other_participants == 1)
            #expect(join.subscriber_primary == 1)
        }
    }

    @Test(
        "Relays reach the client with name and credential when it joins and when it resumes, beside the number of its last packet"
    )
    func iceServers() throws {
        let server = ICEServer(urls: ["turn:192.0.2.9:3478"], username: "1790000000:ada", credential: "c2VjcmV0")
        let reply = JoinReply(
            room: Self.room, participant: Self.participant, others: [], iceServers: [server], isSubscriberPrimary: true,
            server: "martlet/test")
        func check(_ read: Livekit__ICEServer) {
            #expect(read.n_urls == 1 && String(read.urls[0]) == "turn:192.0.2.9:3478")
            #expect(String(read.username) == "1790000000:ada" && String(read.credential) == "c2VjcmV0")
        }
        try Self.read(.join(reply)) { message in
            #expect(message.join.pointee.n_ice_servers == 1)
            check(message.join.pointee.ice_servers[0]!.pointee)
        }
        try Self.read(.reconnect([server], lastSequence: 9)) { message in
            #expect(message.reconnect.pointee.n_ice_servers == 1)
            check(message.reconnect.pointee.ice_servers[0]!.pointee)
            #expect(message.reconnect.pointee.last_message_seq == 9)
        }
    }

    @Test("A participant is shown as joined until its first connection is up, and as active from then on")
    func state() throws {
        for (hasConnected, state) in [
            (false, LIVEKIT__PARTICIPANT_INFO__STATE__JOINED), (true, LIVEKIT__PARTICIPANT_INFO__STATE__ACTIVE),
        ] {
            var info = Self.participant
            info.hasConnected = hasConnected
            try Self.read(.update([info])) { message in
                #expect(message.update.pointee.participants[0]!.pointee.state == state)
            }
        }
    }

    @Test("A track that a subscription names twice is meant once")
    func subscription() {
        let frame = Self.frame { request, arena in
            request.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_SUBSCRIPTION
            request.subscription = arena.make(livekit__update_subscription__init) { update in
                update.subscribe = 1
                update.n_track_sids = 1
                update.track_sids = arena.list([arena.text("TR_1")])
                update.n_participant_tracks = 1
                update.participant_tracks = arena.list([
                    arena.make(livekit__participant_tracks__init) { tracks in
                        tracks.n_track_sids = 2
                        tracks.track_sids = arena.list([arena.text("TR_1"), arena.text("TR_2")])
                    }
                ])
            }
        }
        #expect(ClientSignal(frame: frame) == .subscription(tracks: ["TR_1", "TR_2"], subscribes: true))
    }

    @Test(
        "A frame of 50,000 track ids, about as many as fit, names 250 of them, each once, and counts as so many requests"
    )
    func manyTracks() {
        let names = (0..<50_000).map { String($0 / 2, radix: 36) }
        let asked = Self.frame { request, arena in
            request.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_SUBSCRIPTION
            request.subscription = arena.make(livekit__update_subscription__init) { update in
                update.n_track_sids = names.count
                update.track_sids = arena.list(names.map(arena.text))
            }
        }
        let set = Self.frame { request, arena in
            request.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_TRACK_SETTING
            request.track_setting = arena.make(livekit__update_track_settings__init) { setting in
                setting.n_track_sids = names.count
                setting.track_sids = arena.list(names.map(arena.text))
            }
        }
        let first = (0..<250).map { String($0, radix: 36) }
        #expect(ClientSignal(frame: asked) == .subscription(tracks: first, subscribes: false))
        #expect(ClientSignal(frame: set) == .trackSettings(tracks: first, ClientSignal.TrackSettings()))
        #expect(ClientSignal(frame: asked)?.requests == 250 && ClientSignal.leave.requests == 1)
    }

    @Test("The codecs of a track are named by their words, or by their media types as the Go SDK does")
    func codecNames() {
        let frame = Self.frame { message, arena in
            message.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_ADD_TRACK
            message.add_track = arena.make(livekit__add_track_request__init) { request in
                let names = ["video/VP9", "h264", "video/av1", "audio/VP8", "video/H265"]
                request.n_simulcast_codecs = names.count
                request.simulcast_codecs = arena.list(
                    names.map { name in arena.make(livekit__simulcast_codec__init) { $0.codec = arena.text(name) } })
            }
        }
        guard case .addTrack(let request)? = ClientSignal(frame: frame) else {
            Issue.record("the frame announces no track")
            return
        }
        #expect(request.codecs == [.vp9, .h264, .av1])
    }

    @Test(
        "A track has the media type that was agreed until its first packet comes: clients set up decryption by it")
    func mediaType() throws {
        var track = TrackInfo(
            sid: "TR_1", participant: "PA_1", identity: "ada", name: "", kind: .video, source: .camera, mid: "0")
        func shown() throws -> String {
            var ada = Self.participant
            ada.tracks = [track]
            return try Self.read(.update([ada])) { message in
                String(message.update.pointee.participants[0]!.pointee.tracks[0]!.pointee.mime_type)
            }
        }
        #expect(try shown().isEmpty, "announced only")
        track.agreedCodec = .vp8
        #expect(try shown() == "video/VP8")
        track.codec = .h264
        #expect(try shown() == "video/H264")
    }

    @Test("A grant names 64 tracks at most")
    func manyGrants() {
        let names = (0..<1_000).map { "TR_\($0)" }
        let frame = Self.frame { request, arena in
            request.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_SUBSCRIPTION_PERMISSION
            request.subscription_permission = arena.make(livekit__subscription_permission__init) { permission in
                permission.n_track_permissions = 1
                permission.track_permissions = arena.list([
                    arena.make(livekit__track_permission__init) { grant in
                        grant.participant_identity = arena.text("bob")
                        grant.n_track_sids = names.count
                        grant.track_sids = arena.list(names.map(arena.text))
                    }
                ])
            }
        }
        let grant = ClientSignal.TrackGrant(participant: "", identity: "bob", tracks: Array(names.prefix(64)))
        #expect(ClientSignal(frame: frame) == .subscriptionPermission([grant]))
    }

    @Test("The state of a client that goes on names its tracks, and what it wants of others, 250 of theirs at most")
    func syncState() {
        let names = (0..<300).map { "TR_\($0)" }
        func frame(_ count: Int, _ subscribe: Int32) -> [UInt8] {
            Self.frame { request, arena in
                request.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_SYNC_STATE
                request.sync_state = arena.make(livekit__sync_state__init) { state in
                    state.subscription = arena.make(livekit__update_subscription__init) { update in
                        update.n_track_sids = count
                        update.track_sids = arena.list(names.prefix(count).map(arena.text))
                        update.subscribe = subscribe
                    }
                    state.n_publish_tracks = 1
                    state.publish_tracks = arena.list([
                        arena.make(livekit__track_published_response__init) { published in
                            published.track = arena.make(livekit__track_info__init) { $0.sid = arena.text("TR_mine") }
                        }
                    ])
                    state.n_track_sids_disabled = names.count
                    state.track_sids_disabled = arena.list(names.map(arena.text))
                }
            }
        }
        for (count, subscribe) in [(2, 0), (300, 1)] as [(Int, Int32)] {
            let signal = ClientSignal(frame: frame(count, subscribe))
            let tracks = Array(names.prefix(min(count, 250)))
            #expect(
                signal
                    == .syncState(
                        .init(
                            publications: ["TR_mine"], tracks: tracks, subscribes: subscribe != 0,
                            disabled: Array(names.prefix(250 - tracks.count)))))
            #expect(signal?.requests == 250)
        }
    }

    @Test("Track settings without a quality mean the lowest; sizes win over it")
    func settings() {
        var settings = ClientSignal.TrackSettings()
        #expect(TrackView(settings).preference == .spatial(0))
        settings.quality = 2
        #expect(TrackView(settings).preference == .best)
        settings.height = 360
        #expect(TrackView(settings).preference == .height(360))
        settings.isDisabled = true
        #expect(TrackView(settings).isPaused)
    }

    @Test("A priority is the higher, the lower its number is; none leaves the publisher's")
    func priorities() {
        let priorities = [0, 1, 2, 3, Int.max].map { number in
            var settings = ClientSignal.TrackSettings()
            settings.priority = number
            return TrackView(settings).display.priority
        }
        #expect(priorities == [nil, .high, .standard, .low, .low])
    }

    @Test("A data track is refused with the number and the name by which its client knows it")
    func dataTrack() throws {
        let asked = Self.frame { request, arena in
            request.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_PUBLISH_DATA_TRACK_REQUEST
            request.publish_data_track_request = arena.make(livekit__publish_data_track_request__init) { publish in
                publish.pub_handle = 7
                publish.name = arena.text("pose")
            }
        }
        let track = DataTrackInfo(handle: 7, name: "pose")
        #expect(ClientSignal(frame: asked) == .publishDataTrack(track))
        let frame = ServerSignal.dataTrackRefused(track, .duplicateName, "taken").frame
        let response = try #require(livekit__signal_response__unpack(nil, frame.count, frame))
        defer { livekit__signal_response__free_unpacked(response, nil) }
        #expect(response.pointee.message_case == LIVEKIT__SIGNAL_RESPONSE__MESSAGE_REQUEST_RESPONSE)
        let refused = try #require(response.pointee.request_response).pointee
        #expect(refused.reason == LIVEKIT__REQUEST_RESPONSE__REASON__DUPLICATE_NAME)
        #expect(refused.request_case == LIVEKIT__REQUEST_RESPONSE__REQUEST_PUBLISH_DATA_TRACK)
        #expect(refused.publish_data_track.pointee.pub_handle == 7)
        #expect(String(cString: refused.publish_data_track.pointee.name) == "pose")
    }

    @Test(
        "Words about a data track arrive as they were sent, and as messages: bytes that are none make the request unreadable"
    )
    func dataTrackWords() throws {
        let asked = Self.frame { request, arena in
            request.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_PUBLISH_DATA_TRACK_REQUEST
            request.publish_data_track_request = arena.make(livekit__publish_data_track_request__init) { publish in
                publish.pub_handle = 7
                publish.name = arena.text("pose")
                publish.frame_encoding = arena.make(livekit__data_track_encoding__init) { encoding in
                    encoding.value_case = LIVEKIT__DATA_TRACK_ENCODING__VALUE_WELL_KNOWN
                    encoding.well_known = 3
                }
                publish.schema = arena.make(livekit__data_track_schema_id__init) { $0.name = arena.text("pose.v1") }
            }
        }
        var track = DataTrackInfo(handle: 7, name: "pose")
        track.frameEncoding = .known(3)
        track.schema = .init(name: "pose.v1", encoding: nil)
        #expect(ClientSignal(frame: asked) == .publishDataTrack(track))
        let frame = ServerSignal.dataTrackPublished(track).frame
        let response = try #require(livekit__signal_response__unpack(nil, frame.count, frame))
        defer { livekit__signal_response__free_unpacked(response, nil) }
        let info = try #require(response.pointee.publish_data_track_response.pointee.info).pointee
        #expect(info.frame_encoding.pointee.well_known == 3)
        #expect(String(cString: info.schema.pointee.name) == "pose.v1")
        // Field 19 of the request, in it field 5 with two bytes that are no message.
        let garbage: [UInt8] = [0x9a, 0x01, 0x06, 0x08, 7, 0x2a, 0x02, 0xff, 0xff]
        #expect(ClientSignal(frame: garbage) == nil)
    }

    @Test("Members that are not in the schema are skipped, what is cut is refused")
    func unknownAndCut() {
        // Field 15, a length-delimited member of `SignalRequest` beyond those that are known: 99 of type bytes.
        let unknown: [UInt8] = [0x9a, 0x06, 0x02, 1, 2]
        #expect(ClientSignal(frame: unknown) == .unknown)
        #expect(ClientSignal(frame: [0x0a, 0x20, 1]) == nil)
    }

    @Test("A frame of many small messages takes no more memory than is allowed for")
    func amplification() {
        // `subscription_permission` with empty `track_permissions`: two bytes each on the wire.
        let entries = Array(repeatElement([0x12, 0x00] as [UInt8], count: 100_000).joined())
        let length = entries.count
        let header: [UInt8] = [
            0x5a, UInt8(length & 0x7f | 0x80), UInt8(length >> 7 & 0x7f | 0x80), UInt8(length >> 14),
        ]
        #expect(ClientSignal(frame: header + entries) == nil)
    }
}
