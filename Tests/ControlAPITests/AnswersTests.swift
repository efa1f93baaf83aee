import AccessTokens
import EdgeTestSupport
import Foundation
import HTTPServing
import MediaControl
import Primitives
import RoomService
import Rooms
import TestSupport
import Testing

@testable import ControlAPI

@Suite("Answers and their schemas")
struct AnswersTests {
    @Test("I9: what a room with a publisher and viewers answers is what the document says, member by member")
    func answers() async throws {
        let house = House()
        _ = try await house.ask(.post, "/v1/rooms", "{\"name\":\"hall\",\"policy\":{\"maxParticipants\":9}}")
        let ada = try await house.publisher("ada", in: "hall")
        try await viewer("vera", in: "hall", of: house)
        try await mediaStatistics(of: house)
        let document = try #require(
            try await house.ask(.get, "/openapi.json").members as [String: Any]?)
        let checker = SchemaChecker(document: document)
        let track = ada.tracks[1].sid
        let subscriptions = try await house.ask(.get, "/v1/rooms/hall/subscriptions").list("subscriptions")
        let subscription = try #require(subscriptions.last?["sid"] as? String)
        let one = "/v1/rooms/{room}/subscriptions/{subscription}"
        let targets = [
            (one, "/v1/rooms/hall/subscriptions/\(subscription)"),
            ("\(one)/stats", "/v1/rooms/hall/subscriptions/\(subscription)/stats"),
            ("\(one)/history", "/v1/rooms/hall/subscriptions/\(subscription)/history"),
            ("/v1/rooms/{room}/tracks/{track}/history", "/v1/rooms/hall/tracks/\(track)/history"),
            ("/v1/rooms/{room}/history", "/v1/rooms/hall/history"),
            ("\(one)/decisions", "/v1/rooms/hall/subscriptions/\(subscription)/decisions"),
            ("/v1/rooms/{room}/participants/{participant}/captures", "/v1/rooms/hall/participants/ada/captures"),
            ("/v1/rooms/{room}/playbacks", "/v1/rooms/hall/playbacks"),
            ("/v1/rooms/{room}/recordings", "/v1/rooms/hall/recordings"),
            ("/v1/node", "/v1/node"), ("/v1/rooms", "/v1/rooms"), ("/v1/rooms/{room}", "/v1/rooms/hall"),
            ("/v1/rooms/{room}/stats", "/v1/rooms/hall/stats"),
            ("/v1/rooms/{room}/participants", "/v1/rooms/hall/participants"),
            ("/v1/rooms/{room}/participants/{participant}", "/v1/rooms/hall/participants/ada"),
            ("/v1/rooms/{room}/participants/{participant}/stats", "/v1/rooms/hall/participants/vera/stats"),
            ("/v1/rooms/{room}/participants/{participant}/decisions", "/v1/rooms/hall/participants/vera/decisions"),
            ("/v1/rooms/{room}/tracks", "/v1/rooms/hall/tracks"),
            ("/v1/rooms/{room}/tracks/{track}", "/v1/rooms/hall/tracks/\(track)"),
            ("/v1/rooms/{room}/tracks/{track}/stats", "/v1/rooms/hall/tracks/\(track)/stats"),
            ("/v1/rooms/{room}/subscriptions", "/v1/rooms/hall/subscriptions"),
        ]
        for (path, target) in targets {
            let answer = try await house.ask(.get, target)
            #expect(answer.status == 200, "\(target): \(answer.response.text)")
            let schema = try #require(SchemaChecker.answer(of: path, "get", in: document), "\(path)")
            #expect(
                checker.faults(answer.members, schema).isEmpty, "\(target): \(checker.faults(answer.members, schema))")
        }
        for (path, target) in [
            ("/v1/rooms/{room}/participants/{participant}", "/v1/rooms/hall/participants/eve"),
            ("/v1/rooms/{room}", "/v1/rooms/gone"),
        ] {
            _ = try await house.publisher("eve", in: path.contains("participant") ? "hall" : "gone")
            let answer = try await house.ask(.delete, target)
            let schema = try #require(SchemaChecker.answer(of: path, "delete", in: document), "\(path)")
            #expect(checker.faults(answer.members, schema).isEmpty, "\(answer.response.text)")
        }
        let statistics = try await house.ask(.get, "/v1/rooms/hall/participants/vera/stats")
        #expect(statistics.list("subscriptions").count == 2)
        let remembered = try await house.ask(.get, "/v1/rooms/hall/participants/vera/decisions")
        #expect(remembered.list("estimates").first?["min"] as? Int == 400_000, "I5")
        #expect(statistics.list("connections").first?["rtpPacketsSent"] as? Int == 41)
        let shown = try await house.ask(.get, "/v1/rooms/hall/subscriptions/\(subscription)")
        #expect(shown.members["sid"] as? String == subscription)
        let own = try await house.ask(.get, "/v1/rooms/hall/subscriptions/\(subscription)/decisions")
        #expect(own.list("decisions").isEmpty && own.list("estimates").count == 1, "the decision is about another one")
        for part in ["", "/stats", "/decisions", "/history"] {
            let unknown = try await house.ask(.get, "/v1/rooms/hall/subscriptions/SU_unknown\(part)")
            #expect(unknown.status == 404 && unknown.code == "subscription_not_found")
        }
        let videos = try await house.ask(.get, "/v1/rooms/hall/tracks?kind=video").list("tracks")
        #expect(videos.map { $0["sid"] as? String } == [track])
        let screens = try await house.ask(.get, "/v1/rooms/hall/tracks?kind=video&source=screen")
        #expect(screens.status == 200 && screens.list("tracks").isEmpty)
        #expect(try await house.ask(.get, "/v1/rooms/hall/tracks?kind=picture").status == 400)
        let layers = try await house.ask(.get, "/v1/rooms/hall/tracks/\(track)/stats").list("layers")
        #expect(layers.first?["bitrate"] as? Int == 1_500_000)
    }

    private func viewer(_ identity: String, in room: String, of house: House) async throws {
        let claims = AccessClaims(
            apiKey: TestTokens.key.name, identity: identity, expiresAt: .max, video: .join(room))
        let offer = ClientDescriptions(ufrag: "view").offer([.audio("0", "recvonly"), .video("1", "recvonly")])
        _ = try await house.rooms.rooms.joinViewer(JoinRequest(claims: claims), offer: offer, follow: .identity("ada"))
    }

    /// Puts statistics behind every peer, track and subscription that the rooms told the media plane of.
    private func mediaStatistics(of house: House) async throws {
        var statistics = MediaReport()
        var room: RoomID?
        for command in house.rooms.plane.commands {
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
                statistics.subscriptions.append(one)
            default: break
            }
        }
        house.rooms.plane.set(statistics, for: try #require(room))
    }
}
