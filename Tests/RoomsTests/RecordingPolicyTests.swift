import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Recordings that the room's policy wants")
struct RecordingPolicyTests {
    /// What is recorded now, as `identity source`.
    private func recorded(_ bench: RoomBench) -> [String] {
        bench.room.recordings.tracks.compactMap { bench.room.state.routing[$0]?.info }
            .map { "\($0.identity) \($0.source.rawValue)" }
    }

    private func events(_ bench: RoomBench) -> [RecordingEvent.Kind] {
        bench.log.compactMap { if case .recording(let event) = $0 { event.kind } else { nil } }
    }

    @Test(
        "What the policy names is recorded from the first such track on, and nothing else, whoever begins",
        arguments: [
            (nil, nil, ["ada microphone", "ada camera", "bob microphone"]),
            ([.camera], nil, ["ada camera"]), ([.microphone], ["bob"], ["bob microphone"]),
            (nil, ["ada"], ["ada microphone", "ada camera"]), ([.screen], nil, []), (nil, ["carol"], []),
            ([], nil, []),
        ] as [(Set<TrackSource>?, Set<String>?, [String])])
    func scopes(sources: Set<TrackSource>?, participants: Set<String>?, wanted: [String]) throws {
        for start in RoomPolicy.RecordingStart.allCases {
            let policy = PolicyTests.policy {
                ($0.recording, $0.recordingSources, $0.recordingParticipants) = (start, sources, participants)
            }
            var (bench, _, _) = try PolicyTests.meeting(policy)
            if start == .manual {
                #expect(recorded(bench).isEmpty && events(bench).isEmpty)
                try bench.step { (room, turn) throws(RoomError) in
                    _ = try room.startRecording(RecordingScope(), turn: &turn)
                }
            } else {
                #expect(events(bench) == (wanted.isEmpty ? [] : [.started]), "one recording of all tracks")
            }
            #expect(recorded(bench) == wanted, "\(start)")
            #expect(bench.room.info.recordings.allSatisfy { $0.isByPolicy == (start == .fromStart) })
            #expect(bench.room.info.recordings.allSatisfy { $0.scope.sources == sources })
        }
    }

    @Test(
        "Recordings that begin have files, segments and names as the policy says, by whomever they are begun; what a recording says itself counts more; one that goes on stays as it was"
    )
    func options() throws {
        func policy(_ files: RecordingOptions.Files, start: RoomPolicy.RecordingStart) -> RoomPolicy {
            PolicyTests.policy {
                $0.recording = start
                ($0.recordingOptions.files, $0.recordingOptions.fileName) = (files, "{room}-{time}")
                ($0.recordingOptions.segmentLength, $0.recordingOptions.segmentBytes) = (.seconds(60), 1 << 20)
            }
        }
        func begun(_ bench: RoomBench) -> RecordingOptions? {
            bench.recordings.compactMap { if case .started(let info) = $0 { info.options } else { nil } }.last
        }
        for start in RoomPolicy.RecordingStart.allCases {
            var (bench, ada, _) = try PolicyTests.meeting(policy(.room, start: start))
            let sid = try #require(bench.info(ada)?.sid)
            func begin(_ options: RecordingOptions, _ scope: RecordingScope) throws -> RecordingOptions {
                var info: RecordingInfo?
                try bench.step { (room, turn) throws(RoomError) in
                    info = try room.startRecording(scope, options: options, turn: &turn)
                }
                return try #require(info?.options)
            }
            if start == .manual {
                #expect(try begin(RecordingOptions(), RecordingScope()) == policy(.room, start: start).recordingOptions)
            } else {
                #expect(begun(bench) == policy(.room, start: start).recordingOptions)
            }
            let running = bench.room.recordingsInProgress.map(\.options)
            try bench.setPolicy(policy(.participant, start: start))
            #expect(bench.room.recordingsInProgress.map(\.options) == running)
            var own = RecordingOptions()
            (own.fileName, own.segmentBytes) = ("{track}", 5 << 20)
            let options = try begin(own, RecordingScope(participant: sid))
            #expect(options.files == .participant && options.segmentLength == .seconds(60))
            #expect(options.fileName == "{track}" && options.segmentBytes == 5 << 20)
        }
    }

    @Test("A participant is named by its sid, too, and a sid in the call that begins a recording is bounded as well")
    func sids() throws {
        var (bench, ada, bob) = try PolicyTests.meeting()
        let sid = try #require(bench.info(bob)?.sid), camera = try #require(bench.info(ada)?.tracks.last?.sid)
        try bench.setPolicy(PolicyTests.policy { ($0.recording, $0.recordingParticipants) = (.fromStart, [sid]) })
        #expect(recorded(bench) == ["bob microphone"])
        do throws(RoomError) {
            try bench.step { (room, turn) throws(RoomError) in
                _ = try room.startRecording(RecordingScope(track: camera), turn: &turn)
            }
            Issue.record("recorded against the policy")
        } catch { #expect(error.code == .notRecordable) }
    }

    @Test(
        "An edit starts, changes and stops within its own step; members are notified each time, and the recording goes on"
    )
    func edits() throws {
        var (bench, _, bob) = try PolicyTests.meeting()
        func reported() -> [Set<TrackSource>?]? {
            bench.consumeEvents(bob).compactMap { event in
                if case .roomUpdated(let room) = event { room.recordings.map(\.scope.sources) } else { nil }
            }.last
        }
        try bench.setPolicy(PolicyTests.policy { $0.recording = .fromStart })
        #expect(recorded(bench).count == 3 && reported() == [nil])
        let sid = try #require(bench.room.recordings.byPolicy?.sid)
        try bench.setPolicy(
            PolicyTests.policy { ($0.recording, $0.recordingSources) = (.fromStart, [.microphone]) })
        #expect(recorded(bench) == ["ada microphone", "bob microphone"] && reported() == [[.microphone]])
        #expect(bench.commands.count { if case .endRecording = $0 { true } else { false } } == 1)
        try bench.setPolicy(PolicyTests.policy { $0.recording = .fromStart })
        #expect(recorded(bench).count == 3 && bench.room.recordings.byPolicy?.sid == sid)
        try bench.setPolicy(RoomPolicy())
        #expect(recorded(bench).isEmpty && reported() == [])
        #expect(events(bench) == [.started, .stopped])
    }

    @Test("A recording of the policy's that somebody ends stays ended until the rules of recording change")
    func overruled() throws {
        let policy = PolicyTests.policy { $0.recording = .fromStart }
        var (bench, ada, bob) = try PolicyTests.meeting(policy)
        let sid = try #require(bench.room.recordings.byPolicy?.sid)
        try bench.step { (room, turn) throws(RoomError) in try room.stopRecording(sid, turn: &turn) }
        try bench.offer(bob, [.audio("0"), .video("1")])
        #expect(recorded(bench).isEmpty)
        // Another rule that changes leaves it so.
        try bench.setPolicy(PolicyTests.policy { ($0.recording, $0.audio.maximumSpeakers) = (.fromStart, 2) })
        #expect(recorded(bench).isEmpty)
        try bench.setPolicy(RoomPolicy())
        try bench.setPolicy(policy)
        #expect(recorded(bench).count == 4)
        _ = ada
    }

    @Test("A dry run lists whose tracks would be recorded and whose no longer, and changes nothing")
    func dryRun() throws {
        let cameras = PolicyTests.policy { ($0.recording, $0.recordingSources) = (.fromStart, [.camera]) }
        var (bench, ada, _) = try PolicyTests.meeting(cameras)
        let tracks = try #require(bench.info(ada)?.tracks.map(\.sid))
        let impact = try bench.impact(
            of: PolicyTests.policy { ($0.recording, $0.recordingSources) = (.fromStart, [.microphone]) })
        #expect(impact.participants.map(\.identity) == ["ada", "bob"])
        #expect(impact.participants[0].newRecordings == [tracks[0]])
        #expect(impact.participants[0].endedRecordings == [tracks[1]])
        #expect(recorded(bench) == ["ada camera"])
        try bench.setPolicy(RoomPolicy())
        #expect(try bench.impact(of: RoomPolicy()).participants.isEmpty)
    }

    @Test("A track that is announced as another source is recorded as that, or not any more")
    func otherSource() throws {
        let cameras = PolicyTests.policy { ($0.recording, $0.recordingSources) = (.fromStart, [.camera]) }
        var (bench, ada, _) = try PolicyTests.meeting(cameras)
        #expect(recorded(bench) == ["ada camera"])
        func announce(_ source: TrackSource) throws {
            try bench.step { (room, turn) throws(RoomError) in
                _ = try room.announce(
                    TrackAnnouncement("1", source: source), session: ada, turn: &turn)
            }
        }
        try announce(.screen)
        #expect(recorded(bench).isEmpty)
        try announce(.camera)
        #expect(recorded(bench) == ["ada camera"])
    }

    @Test("Rules that nothing can fulfil are refused; want of disk fails the track, which the log says")
    func refusals() throws {
        var bench = RoomBench()
        bench.recordingRefusal = .disabled
        let policy = PolicyTests.policy { $0.recording = .fromStart }
        do throws(RoomError) {
            try bench.setPolicy(policy)
            Issue.record("a recording without a folder")
        } catch { #expect(error.code == .recordingDisabled) }
        bench.recordingRefusal = nil
        do throws(RoomError) {
            try bench.setPolicy(PolicyTests.policy { ($0.recording, $0.topology) = (.fromStart, .peerToPeer) })
            Issue.record("a recording of what the server does not see")
        } catch { #expect(error.code == .notRouted) }
        try bench.setPolicy(policy)
        bench.recordingRefusal = .diskFull
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0")])
        #expect(events(bench) == [.started, .failed] && recorded(bench).isEmpty)
        // With room on the disk again the next track is recorded.
        bench.recordingRefusal = nil
        try bench.offer(ada, [.audio("0"), .video("1")])
        #expect(recorded(bench) == ["ada camera"])
    }
}
