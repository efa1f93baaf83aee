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
        let targets = [
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
