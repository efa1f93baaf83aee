import MediaControl
import Primitives
import SDP
import TestSupport
import Testing

@testable import Rooms

@Suite("Playbacks")
struct PlaybackRuleTests {
    private static let film = PlaybackRequest(
        identity: "film", name: "The film",
        formats: [
            PlaybackFormat(codec: .h264, profileLevelID: "42c01f", width: 1_920, height: 1_080),
            PlaybackFormat(codec: .opus),
        ])

    private func start(
        _ request: PlaybackRequest = film, in bench: inout RoomBench
    ) throws(RoomError) -> PlaybackInfo {
        try bench.step { (room, turn) throws(RoomError) in try room.startPlayback(request, turn: &turn).info }
    }

    @Test("E17: a file is a participant with tracks that others receive as they are, and its end is its leaving")
    func whole() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob")
        _ = bench.consumeEvents(bob)
        _ = bench.consumeCommands()
        let info = try start(in: &bench)
        #expect(info.sid.hasPrefix("PB_") && info.tracks.map(\.codec) == [.h264, .opus])
        let players = bench.commands.compactMap { command -> PeerDescription? in
            guard case .addPeer(let peer) = command, peer.profile == .player else { return nil }
            return peer
        }
        #expect(players.map(\.id) == [info.peer])
        let tracks = bench.commands.compactMap { if case .addTrack(let track) = $0 { track } else { nil } }
        #expect(tracks.map(\.peer) == [info.peer, info.peer] && tracks.map(\.source) == [.camera, .microphone])
        #expect(tracks.map { $0.encodings.first?.ssrc } == info.tracks.map(\.ssrc))
        #expect(tracks.allSatisfy { $0.feedback.isEmpty })
        let offer = try #require(bench.lastOffer(bob), "bob is offered the tracks")
        #expect(offer.sdp.contains("profile-level-id=42c01f"), "with the film's profile and level")
        let reported = bench.consumeEvents(bob)
        let joined = reported.compactMap { if case .participantJoined(let info) = $0 { info } else { nil } }
        #expect(joined.map(\.identity) == ["film"] && joined.first?.attributes["playback"] == info.sid)
        #expect(reported.count { if case .trackPublished = $0 { true } else { false } } == 2)
        // It lasts without signs of life.
        bench.advance(by: .seconds(20))
        bench.touch([bob])
        #expect(bench.room.hasPlayback(info.sid))
        try bench.step { (room, turn) throws(RoomError) in try room.endPlayback(info.sid, .finished, turn: &turn) }
        #expect(!bench.room.hasPlayback(info.sid) && bench.playbacks == [.ended(playback: info.sid)])
        let log = bench.log.compactMap { if case .playback(let event) = $0 { event } else { nil } }
        #expect(log.map(\.kind) == [.started, .ended] && log.last?.reason == "finished")
        #expect(throws: RoomError.self) {
            try bench.step { (room, turn) throws(RoomError) in
                try room.endPlayback(info.sid, .stopped, turn: &turn)
            }
        }
    }

    @Test("Whoever removes its participant, or closes the room, ends it")
    func removed() throws {
        var bench = RoomBench()
        let first = try start(in: &bench)
        try bench.step { (room, turn) throws(RoomError) in try room.removeParticipant("film", turn: &turn) }
        #expect(bench.playbacks == [.ended(playback: first.sid)])
        let second = try start(in: &bench)
        try bench.step { (room, turn) throws(RoomError) in room.close(reason: .roomDeleted, turn: &turn) }
        #expect(bench.playbacks.last == .ended(playback: second.sid))
    }

    @Test("What the room does not permit is refused, and nothing of it stays")
    func refusals() throws {
        let cases: [(RoomError.Code, (inout RoomPolicy) -> Void)] = [
            (.codecNotAllowed, { $0.videoCodecs = [.vp8] }), (.codecNotAllowed, { $0.audioCodecs = [.red] }),
            (.codecNotAllowed, { $0.h264Profiles = [.high] }), (.permissionDenied, { $0.publishSources = [.camera] }),
            (.permissionDenied, { $0.moderatorSources = [.camera] }), (.permissionDenied, { $0.audioOnly = true }),
            (.limitExceeded, { $0.maxPublishers = 0 }), (.encryptionRequired, { $0.requiresEncryption = true }),
            (.roomFull, { $0.maxParticipants = 1 }),
        ]
        for (code, change) in cases {
            var policy = RoomPolicy()
            change(&policy)
            var bench = RoomBench(policy: policy)
            if code == .roomFull { _ = try bench.join("bob") }
            do throws(RoomError) {
                _ = try start(in: &bench)
                Issue.record("\(code) was not refused")
            } catch { #expect(error.code == code) }
            #expect(bench.room.sessions.count == (code == .roomFull ? 1 : 0) && bench.playbacks.isEmpty)
        }
    }

    @Test("An identity that is in the room is not taken, whatever the policy says about two people")
    func identity() throws {
        var bench = RoomBench()
        let film = try bench.join("film")
        do throws(RoomError) {
            _ = try start(in: &bench)
            Issue.record("not refused")
        } catch { #expect(error.code == .identityTaken) }
        #expect(bench.info(film) != nil)
    }

    @Test("A profile that no browser receives is refused with its number")
    func profile() throws {
        var bench = RoomBench()
        let request = PlaybackRequest(
            identity: "film", formats: [PlaybackFormat(codec: .h264, profileLevelID: "7a0028")])
        do throws(RoomError) {
            _ = try start(request, in: &bench)
            Issue.record("not refused")
        } catch { #expect(error.code == .codecNotAllowed && error.detail.contains("7a0028")) }
    }
}
