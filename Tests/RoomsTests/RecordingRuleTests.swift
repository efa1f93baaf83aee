import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Recordings")
struct RecordingRuleTests {
    private func recorded(_ bench: RoomBench) -> [TrackID] {
        bench.commands.compactMap { if case .record(let stream) = $0 { stream.track } else { nil } }
    }

    @Test("Who publishes only, and wants to know of nobody else, is notified when its recording begins and ends")
    func withoutRoster() throws {
        var bench = RoomBench()
        let caster = try bench.join("caster") { $0.profile = .publishOnly }
        try bench.offer(caster, [.audio("0")])
        func reported() -> [[RecordingInfo]] {
            bench.consumeEvents(caster).compactMap { event in
                if case .roomUpdated(let room) = event { room.recordings } else { nil }
            }
        }
        let info = try bench.step { (room, turn) throws(RoomError) in
            try room.startRecording(RecordingScope(), turn: &turn)
        }
        #expect(reported() == [[info]])
        try bench.join("bob")
        bench.advance(by: .milliseconds(1))
        #expect(reported().isEmpty)
        try bench.step { (room, turn) throws(RoomError) in try room.stopRecording(info.sid, turn: &turn) }
        #expect(reported() == [[]])
    }

    @Test(
        "A recording takes the tracks that there are and those that come, members are notified, and its end ends the streams"
    )
    func wholeRoom() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada"), bob = try bench.join("bob")
        try bench.offer(ada, [.audio("0"), .video("1")])
        _ = bench.consumeCommands()
        _ = bench.consumeEvents(bob)
        let info = try bench.step { (room, turn) throws(RoomError) in
            try room.startRecording(RecordingScope(), turn: &turn)
        }
        #expect(recorded(bench).count == 2)
        let reported = bench.consumeEvents(bob).compactMap {
            if case .roomUpdated(let room) = $0 { room.recordings } else { nil }
        }
        #expect(reported == [[info]])
        // The recorder knows of a stream before the worker is commanded.
        #expect(bench.recordings.count == 3)
        #expect(bench.recordings.first == .started(info))
        try bench.offer(bob, [.audio("0")])
        #expect(recorded(bench).count == 3)
        try bench.step { (room, turn) throws(RoomError) in try room.stopRecording(info.sid, turn: &turn) }
        let ended = bench.commands.filter { if case .endRecording = $0 { true } else { false } }
        #expect(ended.count == 3)
        #expect(bench.recordings.last == .stopped(info))
        #expect(bench.room.recordingsInProgress.isEmpty)
        #expect(throws: RoomError.self) {
            try bench.step { (room, turn) throws(RoomError) in try room.stopRecording(info.sid, turn: &turn) }
        }
        let words = bench.log.compactMap { if case .recording(let event) = $0 { event.kind } else { nil } }
        #expect(words == [.started, .stopped])
    }

    @Test("Who is recorded by name goes on being recorded under another sid; a recording of one track ends with it")
    func comingBack() throws {
        var bench = RoomBench()
        var ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0")])
        func start(_ scope: RecordingScope) throws(RoomError) -> RecordingInfo {
            try bench.step { (room, turn) throws(RoomError) in try room.startRecording(scope, turn: &turn) }
        }
        let person = try start(RecordingScope(participant: "ada"))
        #expect(recorded(bench).count == 1)
        bench.leave(ada)
        ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0"), .video("1")])
        #expect(recorded(bench).count == 3)
        #expect(bench.room.recordingsInProgress.map(\.sid) == [person.sid])
        try bench.step { (room, turn) throws(RoomError) in try room.stopRecording(person.sid, turn: &turn) }
        let camera = try #require(bench.info(ada)?.tracks.first { $0.kind == .video })
        let track = try start(RecordingScope(track: camera.sid))
        #expect(bench.room.recordingsInProgress.map(\.sid) == [track.sid])
        bench.leave(ada)
        #expect(bench.room.recordingsInProgress.isEmpty && bench.recordings.last == .stopped(track))
    }

    @Test("A recording of somebody's stay ends with the stay, and others are notified; one by name waits for them")
    func departure() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada"), bob = try bench.join("bob")
        try bench.offer(ada, [.audio("0")])
        func start(_ scope: RecordingScope) throws(RoomError) -> RecordingInfo {
            try bench.step { (room, turn) throws(RoomError) in try room.startRecording(scope, turn: &turn) }
        }
        let stay = try start(RecordingScope(participant: try #require(bench.info(ada)).sid))
        let person = try start(RecordingScope(participant: "ada"))
        let other = try start(RecordingScope(participant: try #require(bench.info(bob)).sid))
        #expect(bench.room.recordingsInProgress.map(\.sid) == [stay.sid, person.sid, other.sid])
        _ = bench.consumeEvents(bob)
        bench.leave(ada)
        #expect(bench.room.recordingsInProgress.map(\.sid) == [person.sid, other.sid])
        #expect(bench.recordings.last == .stopped(stay))
        let reported = bench.consumeEvents(bob).compactMap {
            if case .roomUpdated(let room) = $0 { room.recordings } else { nil }
        }
        #expect(reported.last == [person, other])
    }

    @Test("A recording of a participant or of sources takes no other track, and a track is recorded once")
    func scopes() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada"), bob = try bench.join("bob")
        try bench.offer(ada, [.audio("0"), .video("1")])
        try bench.offer(bob, [.audio("0")])
        _ = bench.consumeCommands()
        func start(_ scope: RecordingScope) throws(RoomError) -> RecordingInfo {
            try bench.step { (room, turn) throws(RoomError) in try room.startRecording(scope, turn: &turn) }
        }
        let first = try start(RecordingScope(participant: "ada", sources: [.camera]))
        #expect(first.scope.participant == bench.info(ada)?.sid)
        #expect(recorded(bench).count == 1)
        _ = try start(RecordingScope())
        #expect(recorded(bench).count == 3)
        let camera = try #require(bench.info(ada)?.tracks.last?.sid)
        do throws(RoomError) {
            _ = try start(RecordingScope(track: camera))
            Issue.record("recorded twice")
        } catch { #expect(error.code == .alreadyRecorded) }
        // The whole room's recording goes on with what the first one leaves.
        try bench.step { (room, turn) throws(RoomError) in try room.stopRecording(first.sid, turn: &turn) }
        #expect(recorded(bench).count == 4)
    }

    @Test(
        "What a member encrypts end to end is not recorded: its own recording is refused, one of the room leaves it out"
    )
    func encryptedMedia() throws {
        // A track of which alone that is said, as LiveKit's clients do.
        var sealed = RoomBench()
        let eve = try sealed.join("eve")
        var announcement = TrackAnnouncement("v", source: .camera)
        announcement.kind = .video
        announcement.details = TrackDetails()
        announcement.details?.encryption = .gcm
        try sealed.perform(.announce(announcement), eve)
        try sealed.offer(eve, [.video("1", track: "v")])
        let sid = sealed.trackSID(eve, .video)
        let refused = #expect(throws: RoomError.self) {
            try sealed.step { (room, turn) throws(RoomError) in
                try room.startRecording(RecordingScope(track: sid), turn: &turn)
            }
        }
        #expect(refused?.code == .notRecordable && refused?.detail.contains("e2ee") == true)

        var bench = RoomBench()
        let ada = try bench.join("ada") { $0.encrypts = true }, bob = try bench.join("bob")
        try bench.offer(ada, [.audio("0"), .video("1")])
        try bench.offer(bob, [.audio("0")])
        _ = bench.consumeCommands()
        let camera = bench.trackSID(ada, .video)
        for scope in [RecordingScope(participant: "ada"), RecordingScope(track: camera)] {
            let error = #expect(throws: RoomError.self) {
                try bench.step { (room, turn) throws(RoomError) in try room.startRecording(scope, turn: &turn) }
            }
            #expect(error?.code == .notRecordable && error?.detail.contains("e2ee") == true)
        }
        #expect(recorded(bench).isEmpty && bench.recordings.isEmpty && bench.log.allSatisfy { !$0.isOfRecording })
        let info = try bench.step { (room, turn) throws(RoomError) in
            try room.startRecording(RecordingScope(), turn: &turn)
        }
        let microphone = try #require(bench.info(bob)?.tracks.first?.sid)
        let taken = bench.recordings.compactMap {
            if case .track(_, _, _, let track) = $0 { track.sid } else { nil }
        }
        #expect(taken == [microphone] && recorded(bench).count == 1)
        let events: [RecordingEvent] = bench.log.compactMap {
            if case .recording(let event) = $0 { event } else { nil }
        }
        let failed = events.filter { $0.kind == .failed }
        #expect(failed.count == 2 && failed.allSatisfy { $0.recording == info.sid && $0.reason == "e2ee" })
    }

    @Test(
        "Tracks beyond the recorder's places are reported once, those that come later too, and recorded when there is a place"
    )
    func places() throws {
        var bench = RoomBench()
        func refused() -> [RecordingRefusal] {
            bench.recordings.compactMap { if case .refused(_, _, let reason) = $0 { reason } else { nil } }
        }
        func failed() -> [String?] {
            bench.log.compactMap {
                if case .recording(let event) = $0, event.kind == .failed { event.reason } else { nil }
            }
        }
        let ada = try bench.join("ada"), bob = try bench.join("bob")
        try bench.offer(ada, [.audio("0"), .video("1")])
        bench.recordedTracksLeft = 1
        try bench.step { (room, turn) throws(RoomError) in
            _ = try room.startRecording(RecordingScope(), turn: &turn)
        }
        #expect(recorded(bench).count == 1 && refused() == [.tooManyTracks])
        bench.recordedTracksLeft = 0
        try bench.offer(bob, [.audio("0")])
        #expect(recorded(bench).count == 1 && refused() == [.tooManyTracks, .tooManyTracks])
        #expect(failed() == ["too_many_tracks", "too_many_tracks"])
        bench.recordingRefusal = .recorderBehind
        bench.advance(by: .seconds(5))
        #expect(recorded(bench).count == 1 && bench.room.nextDeadline == bench.now + .seconds(5))
        (bench.recordingRefusal, bench.recordedTracksLeft) = (nil, 1)
        bench.advance(by: .seconds(5))
        #expect(recorded(bench).count == 2)
        bench.recordedTracksLeft = 1
        bench.advance(by: .seconds(5))
        #expect(Set(recorded(bench)).count == 3)
        #expect(refused().count == 2 && failed().count == 2, "that it still cannot be recorded is no news")
    }

    @Test("What is never recordable is not tried again, and a recording's end forgets what it could not record")
    func retries() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada") { $0.encrypts = true }, bob = try bench.join("bob")
        try bench.offer(ada, [.audio("0")])
        let info = try bench.step { (room, turn) throws(RoomError) in
            try room.startRecording(RecordingScope(), turn: &turn)
        }
        #expect(bench.room.nextDeadline > bench.now + .seconds(5))
        bench.recordingRefusal = .diskFull
        try bench.offer(bob, [.audio("0")])
        bench.advance(by: .zero)
        #expect(bench.room.nextDeadline == bench.now + .seconds(5))
        try bench.step { (room, turn) throws(RoomError) in try room.stopRecording(info.sid, turn: &turn) }
        bench.advance(by: .zero)
        #expect(bench.room.nextDeadline > bench.now + .seconds(5))
    }

    @Test("A track that the recorder gives up is recorded again when there is room, as another stream, and only once")
    func givenUp() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0")])
        try bench.step { (room, turn) throws(RoomError) in
            _ = try room.startRecording(RecordingScope(), turn: &turn)
        }
        func streams() -> [SubscriptionID] {
            bench.commands.compactMap { if case .record(let stream) = $0 { stream.id } else { nil } }
        }
        func ended() -> [SubscriptionID] {
            bench.commands.compactMap { if case .endRecording(let stream) = $0 { stream } else { nil } }
        }
        let first = try #require(streams().last)
        func giveUp() throws {
            try bench.step { (room, turn) throws(RoomError) in room.recorderGaveUp(first, turn: &turn) }
        }
        bench.recordingRefusal = .diskFull
        try giveUp()
        try giveUp()
        #expect(ended() == [first])
        bench.advance(by: .seconds(5))
        #expect(streams() == [first])
        bench.recordingRefusal = nil
        bench.advance(by: .seconds(5))
        #expect(Set(streams()).count == 2)
        try giveUp()
        #expect(ended() == [first], "the stream that follows goes on")
        let failures = bench.log.count {
            if case .recording(let event) = $0 { event.kind == .failed } else { false }
        }
        #expect(failures == 0, "the recorder has said it")
    }

    @Test("Other refusals put off no retry, and a track that waits comes before those that are wanted later")
    func order() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada"), bob = try bench.join("bob")
        let carol = try bench.join("carol"), eve = try bench.join("eve") { $0.encrypts = true }
        func start(_ source: TrackSource) throws(RoomError) {
            try bench.step { (room, turn) throws(RoomError) in
                _ = try room.startRecording(RecordingScope(sources: [source]), turn: &turn)
            }
        }
        try bench.offer(ada, [.video("0")])
        try start(.microphone)
        bench.recordedTracksLeft = 0
        try bench.offer(bob, [.audio("0")])
        let due = bench.now + .seconds(5)
        bench.advance(by: .seconds(4))
        try bench.offer(carol, [.audio("0")])
        try bench.offer(eve, [.audio("0")])
        bench.advance(by: .zero)
        #expect(bench.room.nextDeadline == due)
        bench.recordedTracksLeft = 1
        try start(.camera)
        let taken = bench.recordings.compactMap {
            if case .track(_, _, _, let track) = $0 { track.sid } else { nil }
        }
        #expect(taken == [bench.trackSID(bob, .audio)])
        bench.advance(by: .zero)
        #expect(bench.room.nextDeadline == bench.now + .seconds(5), "all were tried just now")
    }

    @Test("Where all places are taken, a track goes on in another recording in the step that ends the first")
    func handedOver() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0"), .video("1")])
        func refused() -> Int { bench.recordings.count { if case .refused = $0 { true } else { false } } }
        let first = try bench.step { (room, turn) throws(RoomError) -> RecordingInfo in
            let first = try room.startRecording(RecordingScope(participant: "ada"), turn: &turn)
            _ = try room.startRecording(RecordingScope(), turn: &turn)
            return first
        }
        #expect(recorded(bench).count == 2)
        bench.recordedTracksLeft = 0
        try bench.offer(ada, [.audio("0"), .video("1"), .video("2")])
        #expect(recorded(bench).count == 2 && refused() == 1)
        try bench.step { (room, turn) throws(RoomError) in try room.stopRecording(first.sid, turn: &turn) }
        #expect(recorded(bench).count == 4 && refused() == 2, "as many as have ended, and no third one")
    }

    @Test("The end of a room ends its recordings")
    func roomEnds() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0")])
        let info = try bench.step { (room, turn) throws(RoomError) in
            try room.startRecording(RecordingScope(), turn: &turn)
        }
        try bench.step { (room, turn) throws(RoomError) in room.close(reason: .roomDeleted, turn: &turn) }
        #expect(bench.recordings.last == .stopped(info))
        #expect(bench.isOver)
    }
}

extension RoomLogEvent {
    fileprivate var isOfRecording: Bool { if case .recording = self { true } else { false } }
}
