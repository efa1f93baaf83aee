import AccessTokens
import EdgeTestSupport
import Foundation
import HTTPServing
import MediaControl
import Primitives
import Rooms
import TestSupport
import Testing

@testable import ControlAPI
@testable import RoomService

@Suite("Answers and their schemas")
struct AnswersTests {
    @Test("I9: what a room with a publisher and viewers answers is what the document says, member by member")
    func answers() async throws {
        let api = TestAPI()
        _ = try await api.ask(.post, "/v1/rooms", "{\"name\":\"hall\",\"policy\":{\"maxParticipants\":9}}")
        let ada = try await api.publisher("ada", in: "hall")
        try await api.viewer("vera", of: "ada", in: "hall")
        try await mediaStatistics(of: api)
        await api.rooms.rooms.measureQuality()
        let track = ada.tracks[1].sid
        let subscriptions = try await api.ask(.get, "/v1/rooms/hall/subscriptions").list("subscriptions")
        let subscription = try #require(subscriptions.last?["sid"] as? String)
        let one = "/v1/rooms/hall/subscriptions/\(subscription)"
        for target in [
            one, "\(one)/stats", "\(one)/history", "\(one)/decisions", "/v1/rooms/hall/tracks/\(track)/history",
            "/v1/rooms/hall/history", "/v1/rooms/hall/participants/ada/captures", "/v1/rooms/hall/playbacks",
            "/v1/rooms/hall/recordings", "/v1/node", "/v1/rooms", "/v1/rooms/hall", "/v1/rooms/hall/stats",
            "/v1/rooms/hall/participants", "/v1/rooms/hall/participants/ada", "/v1/rooms/hall/participants/vera/stats",
            "/v1/rooms/hall/participants/vera/decisions", "/v1/rooms/hall/tracks", "/v1/rooms/hall/tracks/\(track)",
            "/v1/rooms/hall/tracks/\(track)/stats", "/v1/rooms/hall/subscriptions",
        ] {
            // What an answer consists of is held to the document by `ask`.
            let answer = try await api.ask(.get, target)
            #expect(answer.status == 200, "\(target): \(answer.response.text)")
        }
        let statistics = try await api.ask(.get, "/v1/rooms/hall/participants/vera/stats")
        #expect(statistics.list("subscriptions").count == 2)
        let remembered = try await api.ask(.get, "/v1/rooms/hall/participants/vera/decisions")
        #expect(remembered.list("estimates").first?["min"] as? Int == 400_000, "I5")
        #expect(statistics.list("connections").first?["rtpPacketsSent"] as? Int == 41)
        let shown = try await api.ask(.get, "/v1/rooms/hall/subscriptions/\(subscription)")
        #expect(shown.members["sid"] as? String == subscription)
        try await decisions(subscriptions.compactMap { $0["sid"] as? String }, of: api)
        for part in ["", "/stats", "/decisions", "/history"] {
            let unknown = try await api.ask(.get, "/v1/rooms/hall/subscriptions/SU_unknown\(part)")
            #expect(unknown.status == 404 && unknown.code == "subscription_not_found")
        }
        let videos = try await api.ask(.get, "/v1/rooms/hall/tracks?kind=video").list("tracks")
        #expect(videos.map { $0["sid"] as? String } == [track])
        let screens = try await api.ask(.get, "/v1/rooms/hall/tracks?kind=video&source=screen")
        #expect(screens.status == 200 && screens.list("tracks").isEmpty)
        #expect(try await api.ask(.get, "/v1/rooms/hall/tracks?kind=picture").status == 400)
        for path in ["tracks/\(track)/history", "subscriptions/\(subscription)/history", "history"] {
            #expect(try await api.ask(.get, "/v1/rooms/hall/\(path)").list("samples").count == 1, "\(path)")
        }
        for (query, count) in [
            ("participant=vera", 2), ("participant=ada", 0), ("track=\(track)", 1), ("kind=audio", 1),
            ("kind=audio&track=\(track)", 0),
        ] {
            let filtered = try await api.ask(.get, "/v1/rooms/hall/subscriptions?\(query)")
            #expect(filtered.list("subscriptions").count == count, "\(query)")
        }
        #expect(try await api.ask(.get, "/v1/rooms/hall/subscriptions?kind=picture").status == 400)
        let layers = try await api.ask(.get, "/v1/rooms/hall/tracks/\(track)/stats").list("layers")
        #expect(layers.first?["bitrate"] as? Int == 1_500_000)
    }

    @Test("I9: calls that change something, and those that clients make, answer what the document says")
    func changes() async throws {
        var configuration = RoomServiceConfiguration()
        configuration.allowsCaptures = true
        let api = TestAPI(configuration: configuration)
        let ada = try await api.publisher("ada", in: "hall")
        #expect(try await api.ask(.put, "/v1/rooms/lobby", #"{"policy":{"waitingRoom":true}}"#).status == 201)
        for guest in ["bob", "eve"] {
            await #expect(throws: RoomError.self) { try await api.publisher(guest, in: "lobby") }
        }
        let track = "/v1/rooms/hall/tracks/\(ada.tracks[0].sid)", captures = "/v1/rooms/hall/participants/ada/captures"
        let capture = try #require(try await api.ask(.post, captures).members["id"] as? String)
        let calls: [(HTTPMethod, String, String, Int)] = [
            (.post, "\(track)/mute", "", 200), (.post, "\(track)/unmute-request", "", 503),
            (.get, "\(captures)/\(capture)", "", 200),
            (.get, "\(captures)/\(capture)/packets", "", 200), (.delete, "\(captures)/\(capture)", "", 204),
            (.patch, "/v1/rooms/hall", #"{"metadata":"m"}"#, 200),
            (.patch, "/v1/rooms/hall/participants/ada", #"{"name":"Ada","metadata":"m"}"#, 200),
            (.put, "/v1/rooms/hall/participants/ada/subscriptions", #"[{"action":"include","all":true}]"#, 200),
            (.delete, "/v1/rooms/hall/participants/ada/subscriptions", "", 200),
            (.post, "/v1/rooms/lobby/guests/bob", "", 204), (.delete, "/v1/rooms/lobby/guests/eve", "", 204),
            (.put, "/v1/rooms/hall/lock", #"{"password":"x"}"#, 200), (.delete, "/v1/rooms/hall/lock", "", 200),
            (.post, "/v1/rooms/hall/messages", #"{"text":"x"}"#, 204),
            (.get, "/v1/node/log-levels", "", 200), (.get, "/v1/revocations", "", 200),
            (.post, "/v1/node/drain", "", 409), (.delete, "/v1/rooms/lobby", "", 200),
        ]
        for (method, target, body, status) in calls {
            let answer = try await api.ask(method, target, body)
            #expect(answer.status == status, "\(method.rawValue) \(target): \(answer.response.text)")
        }
        #expect(try await api.ask(.get, "/v1/ice-servers", grant: .join("hall")).status == 200)
        #expect(try await api.ask(.post, "/v1/checks", grant: .join("hall")).status == 201)
    }

    /// Each subscription is shown the decisions about it and no others.
    private func decisions(_ subscriptions: [String], of api: TestAPI) async throws {
        let ids = api.rooms.plane.commands.compactMap {
            if case .subscribe(let subscription) = $0 { subscription.id } else { nil }
        }
        try #require(ids.count == 2 && subscriptions.count == 2)
        for id in ids {
            api.rooms.plane.setDecision(about: id)
            var shown: [[String: Any]] = []
            for sid in subscriptions {
                let own = try await api.ask(.get, "/v1/rooms/hall/subscriptions/\(sid)/decisions")
                #expect(own.list("estimates").count == 1)
                #expect(own.list("decisions").allSatisfy { $0["subscription"] as? String == sid })
                shown += own.list("decisions")
            }
            let last = shown.filter { $0["reason"] as? String == "bandwidth" }
            #expect(last.count == 1, "I5: one subscription's, and not the other's")
            #expect((last.first?["text"] as? String)?.contains("320") == true, "what was available")
            #expect(
                shown.count == 2 && shown.contains { $0["reason"] as? String == "hidden" }, "an older one of the video")
        }
    }

    /// Puts statistics behind every peer, track and subscription that the rooms announced to the media plane.
    private func mediaStatistics(of api: TestAPI) async throws {
        var statistics = MediaReport()
        var room: RoomID?
        for command in api.rooms.plane.commands {
            switch command {
            case .addRoom(let id): room = id
            case .addPeer(let peer):
                var one = PeerStatistics(peer: peer.id)
                one.roundTripTime = .milliseconds(12)
                one.rtpPacketsSent = 41
                statistics.peers.append(one)
            case .addTrack(let track):
                var one = TrackStatistics(track: track.id, kind: track.kind)
                var layer = LayerStatistics()
                layer.rid = "h"
                layer.bitrate = .kilobitsPerSecond(1_500)
                layer.jitterMilliseconds = .nan
                one.codec = track.kind == .audio ? .opus : .vp8
                one.layers = [layer]
                statistics.tracks.append(one)
            case .subscribe(let subscription):
                var one = SubscriptionStatistics(subscription: subscription.id)
                one.layer = 1
                // An older one than the last that the worker remembers.
                var seen = DecisionRecord(
                    time: .zero, subscription: subscription.id, track: nil, layer: nil, estimate: nil,
                    reason: .blocked(.hidden))
                seen.age = .seconds(90)
                if subscription.kind == .video { one.decision = seen }
                statistics.subscriptions.append(one)
            default: break
            }
        }
        api.rooms.plane.set(statistics, for: try #require(room))
    }
}
