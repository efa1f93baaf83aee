import AccessTokens
import EdgeSupport
import MediaControl
import Primitives
import RoomService
import Rooms
import Testing

@testable import Signalling

@Suite("martlet.v1: messages of the server")
struct ServerMessageTests {
    static let room: RoomInfo = {
        var room = RoomInfo(
            sid: "RM_1", name: "lecture-3", metadata: "", topology: .routed, maxParticipants: nil,
            createdAt: 1_790_000_000_000)
        room.participants = 2
        room.publishers = 1
        return room
    }()
    static let ada = ParticipantInfo(
        sid: "PA_2", identity: "ada", name: "Ada", metadata: "{\"seat\":4}", profile: .full, permissions: Permissions(),
        joinedAt: 1_790_000_001_000)
    static let bob: ParticipantInfo = {
        var bob = ParticipantInfo(
            sid: "PA_1", identity: "bob", name: "Bob", metadata: "", profile: .full, permissions: Permissions(),
            joinedAt: 1_790_000_000_000)
        var camera = TrackInfo(
            sid: "TR_1", participant: "PA_1", identity: "bob", name: "", kind: .video, source: .camera, mid: "1",
            clientTrackID: "b2f1")
        camera.codec = .vp8
        camera.width = 1280
        camera.height = 720
        camera.simulcast = true
        bob.tracks = [camera]
        bob.version = 3
        return bob
    }()
    static let broadcaster: ParticipantInfo = {
        var permissions = Permissions()
        permissions.canSubscribe = false
        permissions.publishSources = [.screen]
        return ParticipantInfo(
            sid: "PA_1", identity: "bob", name: "Bob", metadata: "", profile: .publishOnly, permissions: permissions,
            joinedAt: 1_790_000_000_000)
    }()
    static let microphone = TrackInfo(
        sid: "TR_1", participant: "PA_1", identity: "bob", name: "", kind: .audio, source: .microphone, mid: "0")
    static let subscription = SubscriptionInfo(
        sid: "SU_1", track: "TR_1", publisher: "PA_1", subscriber: "PA_2", kind: .audio, connection: "sub", mid: "0",
        paused: false, preference: .best, state: .active)

    private static let allocation: AllocationReport = {
        var record = DecisionRecord(
            time: .zero, subscription: SubscriptionID(1), track: nil,
            layer: LayerOffer(
                LayerPoint(spatial: 1, temporal: 0), bitrate: .kilobitsPerSecond(300), height: 360, framesPerSecond: 30),
            estimate: .kilobitsPerSecond(640),
            reason: .bandwidth(needed: .kilobitsPerSecond(700), available: .kilobitsPerSecond(320)))
        record.next = LayerOffer(
            LayerPoint(spatial: 2, temporal: 0), bitrate: .kilobitsPerSecond(700), height: 720, framesPerSecond: 30)
        var report = AllocationReport()
        report.estimate = .kilobitsPerSecond(640)
        report.allocated = .kilobitsPerSecond(560)
        report.wanted = .kilobitsPerSecond(1_900)
        report.videos = [
            DecisionReport(at: 1_790_000_000_000, subscription: "SU_1", track: "TR_1", record: record)
        ]
        return report
    }()

    /// What bob sent.
    private static func message(_ topic: String, _ content: RoomMessage.Content) -> RoomMessage {
        var message = RoomMessage(topic: topic, content: content)
        message.participant = "PA_1"
        message.identity = "bob"
        return message
    }

    /// The messages of the document, in its order. Made anew each time: LeakSanitizer sees no pointer in a kept enum of many
    /// payloads.
    static var messages: [String] {
        var full = room
        full.maxParticipants = 20
        full.lock = .password
        let session = SessionID("SE_t6vLkq0J4mXw")
        let snapshot = SessionSnapshot(
            room: room, participant: ada, others: [bob], subscriptions: [], dominantSpeaker: "PA_1", sequence: 0)
        let events: [(UInt64, RoomEvent)] = [
            (1, .participantJoined(broadcaster)),
            (2, .participantLeft(participant: "PA_1", identity: "bob", reason: .left)),
            (3, .trackPublished(microphone)),
            (4, .trackUnpublished(participant: "PA_1", track: "TR_1")),
            (5, .subscriptionUpdated(subscription)),
            (6, .subscriptionEnded(subscription: "SU_1", track: "TR_1")),
            (7, .subscriptionStarted(subscription: "SU_1", track: "TR_1")),
            (17, .subscriptionsWaiting(limit: 250, waiting: 62)),
            (22, .subscriptionHeld(subscription: "SU_1", participant: "PA_1", track: "TR_1", isHeld: true)),
            (23, .trackPermission(participant: "PA_1", track: "TR_1", isAllowed: false)),
            (18, .publicationRefused(connection: "pub", mid: "32", track: "b2f1", code: .limitExceeded)),
            (20, .trackSubscribed(track: "TR_5")),
            (21, .sectionsNeeded(connection: "main", audio: 1, video: 2)),
            (8, .connectionChanged(connection: "pub", state: .closed, reason: "consentExpired")),
            (9, .speakersChanged([SpeakerInfo(participant: "PA_1", track: "TR_1", loudness: 92)])),
            (10, .dominantSpeakerChanged(participant: "PA_1")),
            (
                16,
                .layersWanted(
                    track: "TR_6",
                    layers: [
                        WantedLayer(rid: "q", isWanted: true), WantedLayer(rid: "h", isWanted: true),
                        WantedLayer(rid: "f", isWanted: false),
                    ])
            ),
            (11, .qualityChanged([ParticipantQuality(participant: "PA_1", quality: 4)])),
            (31, .messageReceived(message("chat", .text("Hello")))),
            (32, .messageReceived(message("cursor", .binary([1, 2, 3])))),
            (
                33,
                .messageRefused(
                    topic: "chat", code: .permissionDenied,
                    detail: "the token does not permit sending messages (canPublishData)")
            ),
            (34, .channelClosed(connection: "pub", label: "reliable", reason: "receiverTooSlow")),
            (12, .relayed(from: "PA_1", identity: "bob", payload: "{\"answer\":\"…\"}")),
            (13, .roomUpdated(full)),
            (14, .trackMutedByOther(track: "TR_5", by: "PA_1")),
            (18, .unmuteRequested(track: "TR_5", by: "PA_1")),
            (17, .waitingRoomChanged([WaitingGuest(identity: "dora", name: "Dora", since: 1_790_000_002_000)])),
            (19, .drainChanged(DrainNotice(deadline: 1_790_000_600_000))),
            (
                20,
                .captureChanged(
                    CaptureNotice(
                        id: "CA_1", isActive: true, keepsPayload: false, until: 1_790_000_060_000, by: "key/operator"))
            ),
            (
                21,
                .moved(
                    SessionSnapshot(
                        room: room, participant: ada, others: [], subscriptions: [], dominantSpeaker: nil, sequence: 21)
                )
            ),
            (15, .ended(.removed, message: "Please keep to the topic")),
        ]
        let texts = EventTexts()
        func frame(_ sequence: UInt64, _ event: RoomEvent) -> String {
            texts.text(of: SequencedEvent(sequence: sequence, event: event))
        }
        let replies: [ServerMessage] = [
            .ok(id: 7),
            .error(id: 7, SignallingError("track_not_found", "There is no such track.")),
            .error(
                id: 8,
                .invalid(
                    JSONFault(
                        ["tracks", "0", "source"],
                        .unexpected(wanted: "microphone, camera, screen, screenAudio, unknown"), found: "\"moon\""))),
            .hello(
                Hello(
                    server: "martlet/0.1.0",
                    iceServers: [
                        ICEServer(urls: ["stun:stun.example.org:3478"]),
                        ICEServer(urls: ["turn:turn.example.org:3478"], username: "martlet", credential: "secret"),
                    ],
                    pingIntervalSeconds: 10, resumeWindowSeconds: 30, maxMessageBytes: 573_440)),
            .iceServers([
                ICEServer(
                    urls: ["turn:turn.example.org:3478"], username: "1790003600:8d6bb1d6d3f2a7c5",
                    credential: "mR9GRvGZkQzB2y7xX0uM1bqo1Ls=")
            ]),
            .joined(id: 1, session, snapshot),
            .answer(
                id: 2, connection: "pub",
                ConnectionAnswer(sdp: "v=0\r\n…", tracks: ["0": "TR_5", "1": "TR_6"], iceTag: "unused")),
        ]
        let others: [ServerMessage] = [.allocation(id: 38, allocation), .pong(id: 30)]
        return replies.map(\.text) + [frame(4, .offer(connection: "sub", sdp: "v=0\r\n…", tracks: ["0": "TR_1"]))]
            + others.map(\.text) + events.map(frame)
            + [ServerMessage.resumed(id: 1, session, sequence: 42).text]
    }

    @Test("What is sent to many has each reader's number, first, again, and after a hundred other events")
    func sentToMany() {
        let texts = EventTexts()
        for round in 0..<3 as Range<UInt64> {
            for event in 0..<100 as Range<UInt64> {
                for reader in 1...2 as ClosedRange<UInt64> {
                    let number = 1_000 * round + 10 * event + reader
                    let reported = RoomEvent.trackUnpublished(participant: "PA_1", track: "TR_\(event)")
                    let text = texts.text(of: SequencedEvent(sequence: number, event: reported))
                    let fields = "\"participant\":\"PA_1\",\"track\":\"TR_\(event)\",\"type\":\"trackUnpublished\""
                    #expect(text == "{\"seq\":\(number),\(fields)}")
                }
            }
        }
    }

    @Test("D2: every server message of the document is what the codec writes")
    func document() throws {
        let documented = try ProtocolDocument.messages(of: "server")
        let messages = Self.messages
        #expect(documented.count == messages.count)
        for (text, message) in zip(documented, messages) {
            #expect(try ProtocolDocument.canonical(text) == ProtocolDocument.canonical(message))
        }
    }

    @Test("Every code, reason and close code that the server may send is in the document")
    func codes() throws {
        let text = try ProtocolDocument.text()
        let tokens = AccessTokenError.allCases.filter { $0 != .cannotSign }.map(\.rawValue)
        let signalling = [
            SignallingError.unknownType, .notJoined, .alreadyJoined, .tooManyRequests,
            .malformed(JSONFault([], .notJSON)),
        ]
        .map(\.code)
        let words = RoomError.Code.allCases.map(\.rawValue) + LeaveReason.allCases.map(\.rawValue) + tokens + signalling
        for word in words { #expect(text.contains("`\(word)`"), "\(word)") }
        for reason in LeaveReason.allCases { #expect(text.contains("\(reason.closeCode)"), "\(reason)") }
    }

    @Test("B20: the join reply of a publish-only member without roster is small")
    func smallReply() {
        let snapshot = SessionSnapshot(
            room: Self.room, participant: Self.broadcaster, others: [], subscriptions: [], dominantSpeaker: nil,
            sequence: 0)
        #expect(ServerMessage.joined(id: 1, SessionID("SE_x"), snapshot).text.utf8.count < 1_024)
    }

    @Test("Every reason that ends a session has a close code in the private range or a standard one")
    func closeCodes() {
        for reason in LeaveReason.allCases {
            #expect([1000, 1001].contains(reason.closeCode) || (4000...4999).contains(reason.closeCode))
        }
    }
}
