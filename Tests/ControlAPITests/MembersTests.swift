import AccessTokens
import EdgeTestSupport
import HTTPServing
import MediaControl
import Rooms
import Testing

@testable import ControlAPI
@testable import RoomService

@Suite("Control API: participants and tracks")
struct MembersTests {
    private let api = TestAPI()

    @Test("Participants and tracks are listed and shown, by sid and by identity")
    func listing() async throws {
        let ada = try await api.publisher("ada", in: "hall")
        let participants = try await api.ask(.get, "/v1/rooms/hall/participants").list("participants")
        #expect(participants.map { $0["identity"] as? String } == ["ada"])
        #expect((participants[0]["connections"] as? [[String: Any]])?.first?["id"] as? String == "main")
        for name in ["ada", ada.sid] {
            let shown = try await api.ask(.get, "/v1/rooms/hall/participants/\(name)")
            #expect(shown.members["sid"] as? String == ada.sid)
        }
        #expect(try await api.ask(.get, "/v1/rooms/hall/participants/eve").code == "participant_not_found")
        let tracks = try await api.ask(.get, "/v1/rooms/hall/tracks").list("tracks")
        #expect(tracks.count == 2)
        let sid = try #require(tracks[0]["sid"] as? String)
        #expect(try await api.ask(.get, "/v1/rooms/hall/tracks/\(sid)").members["identity"] as? String == "ada")
        #expect(try await api.ask(.get, "/v1/rooms/hall/tracks/TR_none").code == "track_not_found")
        #expect(try await api.ask(.get, "/v1/rooms/hall/subscriptions").members["subscriptions"] != nil)
    }

    @Test("A track is muted; unmuting it from outside is refused")
    func muting() async throws {
        let ada = try await api.publisher("ada", in: "hall")
        let track = "/v1/rooms/hall/tracks/\(ada.tracks[0].sid)"
        #expect(try await api.ask(.post, "\(track)/mute").members["muted"] as? Bool == true)
        #expect(try await api.ask(.get, track).members["muted"] as? Bool == true)
        #expect(try await api.ask(.post, "\(track)/mute", "{\"muted\":false}").status == 403)
        #expect(try await api.ask(.post, "\(track)/mute", "{\"mute\":true}").status == 400)
        #expect(try await api.ask(.post, "/v1/rooms/hall/tracks/TR_x/mute").status == 404)
    }

    @Test("B15: removing one participant leaves the other")
    func removing() async throws {
        try await api.publisher("alice", in: "hall")
        try await api.publisher("alice/screen", in: "hall")
        let removed = try await api.ask(.delete, "/v1/rooms/hall/participants/alice%2Fscreen")
        #expect(removed.status == 200 && removed.members["closedForSeconds"] as? Int == 3_600)
        await #expect(throws: RoomError.self, "4.8: its token is of no use now") {
            try await api.publisher("alice/screen", in: "hall")
        }
        let left = try await api.ask(.get, "/v1/rooms/hall/participants").list("participants")
        #expect(left.map { $0["identity"] as? String } == ["alice"])
        #expect(try await api.ask(.delete, "/v1/rooms/hall/participants/alice%2Fscreen").status == 404)
    }

    @Test(
        "I8: a participant is moved to another room, with its tracks; a token of one room moves to its destinationRoom only"
    )
    func moving() async throws {
        let ada = try await api.publisher("ada", in: "hall")
        let path = "/v1/rooms/hall/participants/ada/move"
        for body in ["{}", "{\"room\":7}", "{\"room\":\"\"}", "{\"room\":\"booth\",\"x\":1}", "[]"] {
            #expect(try await api.ask(.post, path, body).status == 400, "\(body)")
        }
        #expect(try await api.ask(.post, path, "{\"room\":\"hall\"}").members["sid"] as? String == ada.sid)
        #expect(
            try await api.ask(.post, "/v1/rooms/hall/participants/eve/move", "{\"room\":\"booth\"}").status == 404)
        var bound = VideoGrant()
        (bound.roomAdmin, bound.room, bound.destinationRoom) = (true, "hall", "other")
        #expect(try await api.ask(.post, path, "{\"room\":\"booth\"}", grant: bound).code == "room_mismatch")
        let moved = try await api.ask(.post, path, "{\"room\":\"other\"}", grant: bound)
        #expect(moved.status == 200 && moved.members["sid"] as? String == ada.sid)
        #expect(try await api.ask(.get, "/v1/rooms/other/tracks").list("tracks").count == 2)
        #expect(try await api.ask(.get, "/v1/rooms/hall/participants").list("participants").isEmpty)
        #expect(try await api.ask(.post, "/v1/rooms", "{\"name\":\"near\",\"beside\":\"other\"}").status == 201)
        #expect(
            try await api.ask(.post, "/v1/rooms", "{\"name\":\"far\",\"beside\":\"nowhere\"}").code
                == "room_not_found")
    }

    @Test("I8: a move to a room on another media worker is refused with the remedy, which works")
    func movingAcrossWorkers() async throws {
        let ada = try await api.publisher("ada", in: "hall")
        api.rooms.plane.setWorker(1)
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"far"}"#).status == 201)
        let path = "/v1/rooms/hall/participants/ada/move"
        let refused = try await api.ask(.post, path, #"{"room":"far"}"#)
        #expect(refused.status == 409 && refused.code == "different_worker")
        #expect((refused.members["detail"] as? String)?.contains("`beside`") == true)
        #expect(try await api.ask(.get, "/v1/rooms/hall/participants/ada").members["sid"] as? String == ada.sid)
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"near","beside":"hall"}"#).status == 201)
        #expect(try await api.ask(.post, path, #"{"room":"near"}"#).status == 200)
    }

    @Test("A12, D10: twenty changes of size, each in the next answer")
    func sizes() async throws {
        let ada = try await api.publisher("ada", in: "hall")
        let camera = try #require(ada.tracks.first { $0.kind == .video })
        let id = try #require(
            api.rooms.plane.commands.compactMap {
                if case .addTrack(let track) = $0, track.kind == .video { track.id } else { nil }
            }.first)
        for round in 0..<20 {
            let (width, height) = round % 2 == 0 ? (375, 667 + round) : (1_280, 720 - round)
            await api.rooms.rooms.receive([.trackDimensions(id, layer: 0, width: width, height: height)])
            let shown = try await api.ask(.get, "/v1/rooms/hall/tracks/\(camera.sid)").members
            #expect(shown["width"] as? Int == width && shown["height"] as? Int == height)
        }
    }

    @Test("Statistics of room, participant and track have the same members as the track and more")
    func statistics() async throws {
        let ada = try await api.publisher("ada", in: "hall")
        let room = try await api.ask(.get, "/v1/rooms/hall/stats")
        #expect(room.status == 200, "\(room.response.text)")
        #expect(room.list("participants").count == 1)
        #expect(try await api.ask(.get, "/v1/rooms/hall/participants/ada/stats").members["sid"] as? String == ada.sid)
        #expect(try await api.ask(.get, "/v1/rooms/hall/participants/eve/stats").status == 404)
        #expect(try await api.ask(.get, "/v1/rooms/hall/tracks/TR_none/stats").status == 404)
        #expect(try await api.ask(.get, "/v1/rooms/none/stats").status == 404)
    }
}
