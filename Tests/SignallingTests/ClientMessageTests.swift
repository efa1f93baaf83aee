import EdgeSupport
import MediaControl
import Primitives
import Rooms
import Testing

@testable import Signalling

@Suite("martlet.v1: messages of clients")
struct ClientMessageTests {
    /// What each message of the document means, in the document's order.
    static let meanings: [ClientRequest] = [
        .join(
            JoinFields(
                room: "lecture-3", name: "Ada", metadata: "{\"seat\":4}", profile: .full, autoSubscribe: true,
                audioOnly: false, roster: true, speakers: true)),
        .offer(connection: "pub", sdp: "v=0\r\n…"),
        .answer(connection: "sub", sdp: "v=0\r\n…"),
        .ice(
            connection: "pub", candidate: "candidate:1 1 udp 2122260223 192.0.2.7 50123 typ host", mid: "0"),
        .ice(connection: "pub", candidate: nil, mid: nil),
        .bye(connection: "pub", keepsSubscriptions: false),
        .bye(connection: "sub", keepsSubscriptions: true),
        .perform([
            .announce(.init("b2f1", source: .screen, name: "slides", muted: false, width: 1920, height: 1080))
        ]),
        .perform([.announce(.init("b2f1", source: .camera, hint: .detail, priority: .high))]),
        .perform([.unpublish(track: "TR_6")]),
        .perform([.setMuted(track: "TR_5", true)]),
        .perform([.subscribe(track: "TR_1")]),
        .perform([.unsubscribe(track: "TR_1")]),
        .perform([.setAutoSubscribe(false)]),
        .perform([.setPaused(track: "TR_1", true)]),
        .perform([.subscribe(track: "TR_1"), .setView(track: "TR_1", hiddenThumbnail)]),
        .perform([.setPreference(track: "TR_1", .height(360))]),
        .perform([.setPreference(track: "TR_1", .rid("q"))]),
        .perform([.setPreference(track: "TR_1", .spatial(0))]),
        .perform([.setPreference(track: "TR_1", .best)]),
        .perform([.setView(track: "TR_1", pinnedLarge)]),
        .perform([.setView(track: "TR_1", TrackView())]),
        .perform([.setBandwidth(presentation)]),
        .perform([.setBandwidth(BandwidthProfile())]),
        .allocation,
        .perform([
            .report([PlaybackReport(track: "TR_1", freezes: Freezes(count: 2, duration: .milliseconds(840)))])
        ]),
        .perform([.pauseAllVideo(true)]),
        .perform([.setAudioOnly(false)]),
        .perform([.setMetadata(name: "Ada L.", metadata: "{\"hand\":true}")]),
        .perform([.requestKeyframe(track: "TR_1")]),
        .perform([.wantSpeakers(true)]),
        .perform([.requestRoster]),
        .refresh(token: "eyJhbGciOiJIUzI1NiJ9.e30.ZGlk"),
        .perform([.setAudience(["bob", "carol"])]),
        .perform([.remove(participant: "PA_1")]),
        .perform([.requestUnmute(track: "TR_5")]),
        .perform([.letIn(identity: "dora")]),
        .perform([.turnAway(identity: "dora")]),
        .lock(password: "correct horse"),
        .unlock,
        .perform([.send(seventh)]),
        .perform([
            .send(RoomMessage(topic: "cursor", content: .binary([1, 2, 3]), isReliable: false, to: ["bob", "PA_3"]))
        ]),
        .perform([.relay(to: "PA_1", payload: "{\"offer\":\"…\"}")]),
        .snapshot,
        .ping,
        .leave,
        .resume(session: SessionID("SE_t6vLkq0J4mXw"), after: 42),
    ]

    private static let seventh: RoomMessage = {
        var message = RoomMessage(topic: "chat", content: .text("Hello"))
        message.sequence = 7
        return message
    }()

    private static let hiddenThumbnail: TrackView = {
        var view = TrackView()
        view.preference = .height(180)
        view.display.isHidden = true
        return view
    }()

    private static let pinnedLarge: TrackView = {
        var view = TrackView()
        view.preference = .height(720)
        view.display.framesPerSecond = 30
        view.display.priority = .high
        view.display.isPinned = true
        return view
    }()

    private static let presentation: BandwidthProfile = {
        var profile = BandwidthProfile()
        profile.mode = .presentation
        profile.maxVideoSubscriptions = 4
        profile.maxDownlinkBitrate = .kilobitsPerSecond(2_500)
        profile.maxUplinkBitrate = .kilobitsPerSecond(1_200)
        profile.shortage = .oversend(.kilobitsPerSecond(60))
        return profile
    }()

    @Test("Bandwidth may be set on joining; the older field is the same, and gives way to the object")
    func joinWithBandwidth() {
        var fields = JoinFields()
        fields.bandwidth.maxVideoSubscriptions = 1
        #expect(
            ClientFrame(text: "{\"type\":\"join\",\"maxVideoSubscriptions\":1}").request == .success(.join(fields)))
        fields.bandwidth.mode = .grid
        let text =
            "{\"type\":\"join\",\"maxVideoSubscriptions\":9,\"bandwidth\":{\"mode\":\"grid\",\"maxVideoSubscriptions\":1}}"
        #expect(ClientFrame(text: text).request == .success(.join(fields)))
    }

    @Test("D2: every client message of the document is understood as it says")
    func document() throws {
        let messages = try ProtocolDocument.messages(of: "client")
        #expect(messages.count == Self.meanings.count)
        for (text, meaning) in zip(messages, Self.meanings) {
            let frame = ClientFrame(text: text)
            #expect(frame.request == .success(meaning), "\(text)")
            #expect(frame.id != nil)
        }
    }

    @Test("D2: unknown fields are ignored, absent and null are the same")
    func unknownFields() {
        let frame = ClientFrame(text: "{\"type\":\"bye\",\"connection\":\"pub\",\"later\":{\"deep\":[1]},\"id\":null}")
        #expect(frame.id == nil)
        #expect(frame.request == .success(.bye(connection: "pub", keepsSubscriptions: false)))
        #expect(ClientFrame(text: "{\"type\":\"join\",\"room\":null}").request == .success(.join(JoinFields())))
    }

    private static func report(_ fields: String) -> String {
        #"{"type":"report","id":3,"tracks":[{"track":"TR_1",\#(fields)}]}"#
    }

    @Test(
        "D2: what is wrong is reported with a stable code and the request's id",
        arguments: [
            ("{\"type\":\"dance\",\"id\":3}", 3, "unknown_type"),
            ("{\"id\":3}", 3, "malformed_message"),
            ("{\"type\":7,\"id\":3}", 3, "malformed_message"),
            ("{\"type\":\"bye\",\"id\":3}", 3, "malformed_message"),
            ("{\"type\":\"bye\",\"id\":\"three\",\"connection\":\"pub\"}", nil, "malformed_message"),
            ("{\"type\":\"ping\",\"id\":0}", nil, "malformed_message"),
            ("{\"type\":\"ping\",\"id\":9007199254740992}", nil, "malformed_message"),
            ("{\"type\":\"ping\",\"id\":1.5}", nil, "malformed_message"),
            ("{\"type\":\"offer\",\"id\":3,\"connection\":\"a b\",\"sdp\":\"\"}", 3, "invalid_request"),
            ("{\"type\":\"offer\",\"id\":3,\"connection\":\"\",\"sdp\":\"\"}", 3, "invalid_request"),
            ("{\"type\":\"mute\",\"id\":3,\"track\":\"TR_1\",\"muted\":1}", 3, "malformed_message"),
            ("{\"type\":\"layer\",\"id\":3,\"track\":\"TR_1\",\"rid\":\"q\",\"height\":3}", 3, "invalid_request"),
            ("{\"type\":\"layer\",\"id\":3,\"track\":\"TR_1\",\"height\":-3}", 3, "invalid_request"),
            ("{\"type\":\"view\",\"id\":3}", 3, "malformed_message"),
            ("{\"type\":\"view\",\"id\":3,\"track\":\"TR_1\",\"framesPerSecond\":0}", 3, "invalid_request"),
            ("{\"type\":\"view\",\"id\":3,\"track\":\"TR_1\",\"framesPerSecond\":\"all\"}", 3, "malformed_message"),
            ("{\"type\":\"view\",\"id\":3,\"track\":\"TR_1\",\"priority\":\"urgent\"}", 3, "invalid_request"),
            ("{\"type\":\"view\",\"id\":3,\"track\":\"TR_1\",\"pinned\":\"yes\"}", 3, "malformed_message"),
            ("{\"type\":\"view\",\"id\":3,\"track\":\"TR_1\",\"rid\":\"q\",\"spatial\":0}", 3, "invalid_request"),
            ("{\"type\":\"bandwidth\",\"id\":3,\"mode\":\"fair\"}", 3, "invalid_request"),
            ("{\"type\":\"bandwidth\",\"id\":3,\"maxVideoSubscriptions\":-1}", 3, "invalid_request"),
            ("{\"type\":\"bandwidth\",\"id\":3,\"maxDownlinkBitrate\":0}", 3, "invalid_request"),
            ("{\"type\":\"bandwidth\",\"id\":3,\"maxUplinkBitrate\":1.5}", 3, "malformed_message"),
            ("{\"type\":\"bandwidth\",\"id\":3,\"oversendBitrate\":60000}", 3, "invalid_request"),
            ("{\"type\":\"bandwidth\",\"id\":3,\"shortage\":\"pause\",\"oversendBitrate\":1}", 3, "invalid_request"),
            ("{\"type\":\"bandwidth\",\"id\":3,\"shortage\":\"drop\"}", 3, "invalid_request"),
            ("{\"type\":\"join\",\"id\":3,\"bandwidth\":4}", 3, "malformed_message"),
            ("{\"type\":\"join\",\"id\":3,\"bandwidth\":{\"mode\":\"fair\"}}", 3, "invalid_request"),
            (
                "{\"type\":\"announce\",\"id\":3,\"tracks\":[{\"track\":\"a\",\"source\":\"camera\",\"hint\":\"art\"}]}",
                3,
                "invalid_request"
            ),
            ("{\"type\":\"announce\",\"id\":3,\"tracks\":[]}", 3, "invalid_request"),
            ("{\"type\":\"announce\",\"id\":3,\"tracks\":[1]}", 3, "malformed_message"),
            (
                "{\"type\":\"announce\",\"id\":3,\"tracks\":[{\"track\":\"a\",\"source\":\"moon\"}]}", 3,
                "invalid_request"
            ),
            ("{\"type\":\"join\",\"id\":3,\"profile\":\"king\"}", 3, "invalid_request"),
            ("{\"type\":\"report\",\"id\":3,\"tracks\":[]}", 3, "invalid_request"),
            (report(#""freezeCount":1"#), 3, "malformed_message"),
            (report(#""freezeCount":-1,"totalFreezesDuration":1"#), 3, "invalid_request"),
            (report(#""freezeCount":1,"totalFreezesDuration":-0.1"#), 3, "invalid_request"),
            (report(#""freezeCount":1,"totalFreezesDuration":1e9"#), 3, "invalid_request"),
            ("{\"type\":\"resume\",\"id\":3,\"session\":\"s\",\"seq\":-1}", 3, "invalid_request"),
            ("{\"type\":\"data\",\"id\":3,\"text\":\"\",\"sequence\":0}", 3, "invalid_request"),
            ("{\"type\":\"data\",\"id\":3,\"text\":\"\",\"sequence\":4294967296}", 3, "invalid_request"),
            ("[1,2]", nil, "malformed_message"),
            ("\"text\"", nil, "malformed_message"),
            ("", nil, "malformed_message"),
            ("{\"type\":", nil, "malformed_message"),
        ] as [(String, Int64?, String)])
    func faults(text: String, id: Int64?, code: String) {
        let frame = ClientFrame(text: text)
        #expect(frame.id == id)
        guard case .failure(let error) = frame.request else {
            Issue.record("\(text) was understood")
            return
        }
        #expect(error.code == code)
    }

    @Test(
        "4.7: the field is named with its place, what it must be and what is there",
        arguments: [
            (#"{"type":"mute","track":"T","muted":1}"#, "/muted", "true or false", "1"),
            (#"{"type":"bye"}"#, "/connection", nil, nil),
            (
                #"{"type":"join","bandwidth":{"maxDownlinkBitrate":5}}"#, "/bandwidth/maxDownlinkBitrate",
                "10000 to 1000000000", "5"
            ),
            (#"{"type":"join","profile":"king"}"#, "/profile", "full, publishOnly, viewer", "\"king\""),
            (#"{"type":"join","maxVideoSubscriptions":-1}"#, "/maxVideoSubscriptions", "0 to 1000", "-1"),
            (
                #"{"type":"announce","tracks":[{"track":"a","source":"camera"},{"track":"b","source":"moon"}]}"#,
                "/tracks/1/source", "microphone, camera, screen, screenAudio, unknown", "\"moon\""
            ),
            (#"{"type":"announce","tracks":7}"#, "/tracks", "an array of objects", "7"),
            (#"{"type":"layer","track":"T","height":-3}"#, "/height", "0 to 16384", "-3"),
            (#"{"type":"layer","track":"T","rid":"q","height":3}"#, "/height", nil, nil),
            (#"{"type":"view","track":"T","priority":"urgent"}"#, "/priority", "low, standard, high", "\"urgent\""),
        ] as [(String, String, String?, String?)])
    func places(text: String, pointer: String, expected: String?, found: String?) {
        guard case .failure(let error) = ClientFrame(text: text).request else {
            Issue.record("\(text) was understood")
            return
        }
        #expect(
            error.place?.pointer == pointer && error.place?.wanted == expected && error.place?.found == found,
            "\(error)")
    }

    @Test("Deep nesting is refused, not a crash")
    func deepNesting() {
        let text = "{\"type\":\"ping\",\"x\":" + String(repeating: "[", count: 100_000)
        guard case .failure(let error) = ClientFrame(text: text).request else {
            Issue.record("understood")
            return
        }
        #expect(error.code == "malformed_message")
    }
}
