import EdgeSupport
import Foundation
import MediaControl
import Primitives
import Recorder
import RoomService
import Testing

@testable import LiveKit
@testable import Rooms

@Suite("Webhooks in LiveKit's form")
struct WebhookTranslatorTests {
    private static func person(_ identity: String) -> ParticipantInfo {
        ParticipantInfo(
            sid: "PA_\(identity)", identity: identity, name: identity.capitalized, metadata: "", profile: .full,
            permissions: Permissions(), joinedAt: 1_700_000_000_500)
    }

    private static func camera(of identity: String) -> TrackInfo {
        TrackInfo(
            sid: "TR_\(identity)", participant: "PA_\(identity)", identity: identity, name: "cam", kind: .video,
            source: .camera, mid: "0")
    }

    /// What is posted of `events`, in order, as JSON.
    private func posted(
        _ events: [RoomLogEvent], room: String = "r", roomSID: String = "RM_1", by translator: WebhookTranslator? = nil
    ) throws -> [[String: Any]] {
        let translator = translator ?? WebhookTranslator { _ in nil }
        return try events.enumerated().flatMap { index, event in
            translator.messages(
                for: RoomLogEntry(
                    room: room, roomSID: roomSID, sequence: UInt64(index + 1), at: 1_700_000_001_999, event: event))
        }.map { message in
            let body = try #require(try JSONSerialization.jsonObject(with: Data(message.body)) as? [String: Any])
            #expect(body["event"] as? String == message.type.rawValue && body["id"] as? String == message.id)
            return body
        }
    }

    /// As it stands beside a recording's files.
    private static let sidecar = """
        {"version": 1, "sid": "RC_abc", "state": "recording", "room": "r", "roomSid": "RM_1",
         "startedAt": 1700000000000, "tracks": []}
        """

    private func types(_ bodies: [[String: Any]]) -> [String] { bodies.compactMap { $0["event"] as? String } }

    @Test("What concerns the server rather than one room has no word in LiveKit's webhooks")
    func server() throws {
        #expect(try posted([.revocationChanged(.token("t"), until: 1, by: nil)], room: "", roomSID: "").isEmpty)
    }

    @Test(
        "A participant is reported as joined when its first connection is up, its tracks after it, and its end with the reason"
    )
    func life() throws {
        let (ada, camera) = (Self.person("ada"), Self.camera(of: "ada"))
        let bodies = try posted([
            .roomStarted, .participantJoined(ada), .trackPublished(camera),
            .connectionChanged(participant: ada.sid, connection: "main", state: .connecting, reason: nil),
            .connectionChanged(participant: ada.sid, connection: "main", state: .connected, reason: nil),
            .connectionChanged(participant: ada.sid, connection: "second", state: .connected, reason: nil),
            .trackMuted(camera), .trackUnpublished(camera),
            .participantLeft(ada, reason: .duplicateIdentity, hasConnected: true), .roomEnded,
        ])
        #expect(
            types(bodies) == [
                "room_started", "participant_joined", "track_published", "track_unpublished", "participant_left",
                "room_finished",
            ])
        #expect(bodies[1]["id"] as? String != bodies[2]["id"] as? String, "two messages of one event")
        let room = try #require(bodies[2]["room"] as? [String: Any])
        #expect(room["sid"] as? String == "RM_1" && room["name"] as? String == "r")
        #expect(room["numParticipants"] as? Int == 1 && room["creationTime"] as? String == "1700000001")
        #expect(bodies[0]["createdAt"] as? String == "1700000001")
        let joined = try #require(bodies[1]["participant"] as? [String: Any])
        #expect(joined["identity"] as? String == "ada" && joined["name"] as? String == "Ada")
        #expect(joined["state"] as? String == "ACTIVE" && joined["joinedAt"] as? String == "1700000000")
        let track = try #require(bodies[2]["track"] as? [String: Any])
        #expect(track["sid"] as? String == "TR_ada" && track["source"] as? String == "CAMERA")
        #expect(track["type"] as? String == "VIDEO" && track["muted"] == nil, "defaults are left out")
        #expect((bodies[2]["participant"] as? [String: Any])?["identity"] as? String == "ada")
        let left = try #require(bodies[4]["participant"] as? [String: Any])
        #expect(
            left["state"] as? String == "DISCONNECTED" && left["disconnectReason"] as? String == "DUPLICATE_IDENTITY")
        #expect((bodies[5]["room"] as? [String: Any])?["numParticipants"] == nil, "nobody is left")
    }

    @Test("A text that reads 0 is no default, unlike a number of 64 bits")
    func zeroAsText() throws {
        var person = Self.person("0")
        person.attributes = ["hand": "0"]
        person.joinedAt = 0
        let bodies = try posted([
            .roomStarted, .participantJoined(person),
            .connectionChanged(participant: person.sid, connection: "main", state: .connected, reason: nil),
            .trackPublished(Self.camera(of: "0")),
        ])
        #expect(types(bodies) == ["room_started", "participant_joined", "track_published"])
        let joined = try #require(bodies[1]["participant"] as? [String: Any])
        #expect(joined["identity"] as? String == "0" && joined["name"] as? String == "0")
        #expect(joined["attributes"] as? [String: String] == ["hand": "0"])
        #expect(joined["joinedAt"] == nil)
        let track = try #require(bodies[2]["track"] as? [String: Any])
        #expect(track["mid"] as? String == "0")
    }

    @Test("Who never connected is reported as aborted, and nothing else is reported of it")
    func aborted() throws {
        let (bob, camera) = (Self.person("bob"), Self.camera(of: "bob"))
        let bodies = try posted([
            .roomStarted, .participantJoined(bob), .trackPublished(camera), .trackUnpublished(camera),
            .participantLeft(bob, reason: .timeout, hasConnected: false),
        ])
        #expect(types(bodies) == ["room_started", "participant_connection_aborted"])
        #expect((bodies[1]["participant"] as? [String: Any])?["disconnectReason"] as? String == "CONNECTION_TIMEOUT")
    }

    @Test("A file that is played into the room has joined when it begins, with its tracks after it")
    func playback() throws {
        let (tv, camera) = (Self.person("tv"), Self.camera(of: "tv"))
        let info = PlaybackInfo(
            sid: "PB_1", participant: tv.sid, identity: "tv", peer: PeerID(1), tracks: [], startedAt: 0)
        let bodies = try posted([
            .roomStarted, .participantJoined(tv), .playback(PlaybackEvent(.started, info)), .trackPublished(camera),
            .participantLeft(tv, reason: .left, hasConnected: true),
        ])
        #expect(types(bodies) == ["room_started", "participant_joined", "track_published", "participant_left"])
    }

    @Test("A room's next life begins with nobody, although the end of the one before was missed")
    func nextLife() throws {
        let translator = WebhookTranslator { _ in nil }
        let ada = Self.person("ada")
        _ = try posted(
            [
                .roomStarted, .participantJoined(ada),
                .connectionChanged(participant: ada.sid, connection: "main", state: .connected, reason: nil),
            ], by: translator)
        let bodies = try posted([.roomStarted], roomSID: "RM_2", by: translator)
        let room = try #require(bodies.first?["room"] as? [String: Any])
        #expect(room["sid"] as? String == "RM_2" && room["numParticipants"] == nil)
    }

    @Test("Who is moved has joined the other room at once, with its tracks after it")
    func moved() throws {
        let translator = WebhookTranslator { _ in nil }
        let (ada, camera) = (Self.person("ada"), Self.camera(of: "ada"))
        _ = try posted(
            [
                .roomStarted, .participantJoined(ada),
                .connectionChanged(participant: ada.sid, connection: "main", state: .connected, reason: nil),
                .participantLeft(ada, reason: .moved, hasConnected: true, keepsConnections: true),
            ], by: translator)
        let bodies = try posted(
            [.participantJoined(ada), .trackPublished(camera)], room: "other", roomSID: "RM_2", by: translator)
        #expect(types(bodies) == ["participant_joined", "track_published"])
        #expect((bodies[1]["room"] as? [String: Any])?["name"] as? String == "other")
    }

    @Test("Who is moved and has to connect anew has joined the other room when it is connected there")
    func movedAcrossWorkers() throws {
        let translator = WebhookTranslator { _ in nil }
        let ada = Self.person("ada")
        let connected = RoomLogEvent.connectionChanged(
            participant: ada.sid, connection: "main", state: .connected, reason: nil)
        let before = try posted(
            [
                .roomStarted, .participantJoined(ada), connected,
                .participantLeft(ada, reason: .moved, hasConnected: true),
            ], by: translator)
        #expect(types(before) == ["room_started", "participant_joined", "participant_left"])
        let other = ("other", "RM_2")
        #expect(try posted([.participantJoined(ada)], room: other.0, roomSID: other.1, by: translator).isEmpty)
        #expect(
            types(try posted([connected], room: other.0, roomSID: other.1, by: translator)) == ["participant_joined"])
    }

    @Test("A recording that is finished after its room's end leaves the next room of that name as it is")
    func lateRecording() throws {
        let summary = try JSONDecoder().decode(RecordingSummary.self, from: Data(Self.sidecar.utf8))
        let translator = WebhookTranslator { _ in summary }
        let ada = Self.person("ada")
        _ = try posted([.roomStarted, .participantJoined(ada)], roomSID: "RM_2", by: translator)
        let late = try posted([.recording(RecordingEvent(.ready, recording: "RC_abc"))], by: translator)
        #expect(types(late) == ["egress_ended"])
        let bodies = try posted(
            [.connectionChanged(participant: ada.sid, connection: "main", state: .connected, reason: nil)],
            roomSID: "RM_2", by: translator)
        #expect(types(bodies) == ["participant_joined"])
    }

    @Test("What nobody wants is not written, and is taken in nevertheless")
    func unwanted() throws {
        let translator = WebhookTranslator { _ in nil }
        let ada = Self.person("ada")
        for event in [RoomLogEvent.roomStarted, .participantJoined(ada)] {
            let entry = RoomLogEntry(room: "r", roomSID: "RM_1", sequence: 1, at: 0, event: event)
            #expect(translator.messages(for: entry, areWanted: false).isEmpty)
        }
        let bodies = try posted(
            [.connectionChanged(participant: ada.sid, connection: "main", state: .connected, reason: nil)],
            by: translator)
        #expect(types(bodies) == ["participant_joined"])
    }

    @Test(
        "A recording is reported as an egress: active, ending, complete; one that is not known any more is not reported"
    )
    func recording() throws {
        var summary = try JSONDecoder().decode(RecordingSummary.self, from: Data(Self.sidecar.utf8))
        func event(_ kind: RecordingEvent.Kind, _ summary: RecordingSummary?) throws -> [[String: Any]] {
            try posted([.recording(RecordingEvent(kind, recording: "RC_abc"))], by: WebhookTranslator { _ in summary })
        }
        let started = try event(.started, summary)
        #expect(types(started) == ["egress_started"])
        let info = try #require(started.first?["egressInfo"] as? [String: Any])
        #expect(info["egressId"] as? String == "EG_abc" && info["roomName"] as? String == "r")
        #expect(info["status"] as? String == "EGRESS_ACTIVE")
        summary.endedAt = 1_700_000_009_000
        let stopped = try event(.stopped, summary)
        #expect(types(stopped) == ["egress_updated"])
        #expect((stopped.first?["egressInfo"] as? [String: Any])?["status"] as? String == "EGRESS_ENDING")
        summary.state = .ready
        let ready = try event(.ready, summary)
        #expect(types(ready) == ["egress_ended"])
        #expect((ready.first?["egressInfo"] as? [String: Any])?["status"] as? String == "EGRESS_COMPLETE")
        #expect(try event(.ready, nil).isEmpty)
    }
}
