import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Backup codecs")
struct BackupCodecTests {
    private typealias Codecs = [(payloadType: Int, map: String, fmtp: String?)]
    private static let vp8: Codecs = [(96, "VP8/90000", nil), (97, "rtx/90000", "apt=96")]
    private static let vp9: Codecs = [(98, "VP9/90000", "profile-id=0"), (99, "rtx/90000", "apt=98")]

    /// What a client announces that sends VP9, and VP8 on request.
    private static var announcement: TrackAnnouncement {
        var announcement = TrackAnnouncement("v", source: .camera)
        announcement.kind = .video
        announcement.codecs = [.vp9, .vp8]
        return announcement
    }

    /// Ada's video in a section that offers both codecs, VP8 first.
    private static let main = ClientDescriptions.Section.video("0", track: "v", codecs: vp8 + vp9)
    private static let backup = ClientDescriptions.Section.video("1", track: "w", codecs: vp8 + vp9)

    /// Ada publishes in VP9; bob plays both codecs, carl VP8 alone.
    private func meeting(
        _ policy: BackupCodecPolicy = .simulcast
    ) throws -> (bench: RoomBench, ada: SessionID, bob: SessionID, carl: SessionID, sid: String) {
        var bench = RoomBench()
        let bob = try bench.join("bob"), carl = try bench.join("carl"), ada = try bench.join("ada")
        var announcement = Self.announcement
        announcement.backupCodecPolicy = policy
        try bench.perform(.announce(announcement), ada)
        try bench.offer(ada, [Self.main])
        try bench.answerOffers(bob)
        try bench.answerOffers(carl, without: ["VP9"])
        return (bench, ada, bob, carl, bench.trackSID(ada, .video))
    }

    private func announceBackup(_ sid: String, _ bench: inout RoomBench, _ session: SessionID) throws {
        var announcement = TrackAnnouncement("w", source: .camera)
        announcement.kind = .video
        announcement.codecs = [.vp8]
        announcement.backupOf = sid
        try bench.perform(.announce(announcement), session)
    }

    private func demands(_ events: [RoomEvent]) -> [[Bool]] {
        events.compactMap { if case .backupWanted(_, .vp8, let layers) = $0 { layers.map(\.isWanted) } else { nil } }
    }

    @Test("A section is answered with the codec that its track was announced in, whatever the offer prefers")
    func preference() throws {
        let (bench, ada, _, _, _) = try meeting()
        let tracks = bench.commands.compactMap { if case .addTrack(let track) = $0 { track } else { nil } }
        #expect(tracks.map { $0.formats.map(\.codec) } == [[.vp9]])
        #expect(bench.info(ada)?.tracks.first?.backupCodec == .vp8)
    }

    @Test(
        "Whoever lacks the first codec waits for the second, which is requested from the publisher, and gets it when it comes; the others stay with the first"
    )
    func request() throws {
        var (bench, ada, bob, carl, sid) = try meeting()
        #expect(demands(bench.consumeEvents(ada)) == [[true]])
        let subscribed = bench.consumeCommands().compactMap { if case .subscribe(let one) = $0 { one } else { nil } }
        let main = try #require(subscribed.first?.track)
        #expect(subscribed.map(\.track) == [main, nil])
        #expect(subscribed.map { $0.formats.map(\.codec) } == [[.vp9, .vp8], [.vp8]])

        try announceBackup(sid, &bench, ada)
        _ = bench.consumeEvents(bob)
        try bench.offer(ada, [Self.main, Self.backup])
        let commands = bench.consumeCommands()
        let added = commands.compactMap { if case .addTrack(let track) = $0 { track } else { nil } }
        #expect(added.map { $0.formats.map(\.codec) } == [[.vp8]])
        let switches = commands.compactMap { command -> [SubscriptionID: TrackID]? in
            if case .switchSubscription(let id, to: let track?) = command { [id: track] } else { nil }
        }
        #expect(switches == [[subscribed[1].id: try #require(added.first?.id)]])
        #expect(bench.consumeEvents(bob).isEmpty, "one track, as before")
        #expect(bench.info(ada)?.tracks.map(\.sid) == [sid])

        // From now on the worker says which of its layers are wanted.
        _ = bench.consumeEvents(ada)
        bench.media(.layersWanted(try #require(added.first?.id), [true]))
        #expect(demands(bench.consumeEvents(ada)) == [[true]])
        bench.leave(carl)
        bench.media(.layersWanted(try #require(added.first?.id), [true]))
        #expect(demands(bench.consumeEvents(ada)) == [[false]])
        let dora = try bench.join("dora")
        try bench.answerOffers(dora, without: ["VP9"])
        #expect(demands(bench.consumeEvents(ada)) == [[true]])
    }

    @Test(
        "A backup codec whose track the announcement names is that track's without another announcement, with it or later, and an unknown one after its end"
    )
    func namedBackup() throws {
        for isLater in [false, true] {
            var bench = RoomBench()
            let ada = try bench.join("ada")
            var announcement = Self.announcement
            announcement.backupTrackID = "w"
            try bench.perform(.announce(announcement), ada)
            if isLater { try bench.offer(ada, [Self.main]) }
            try bench.offer(ada, [Self.main, Self.backup])
            let added = bench.consumeCommands().compactMap { if case .addTrack(let track) = $0 { track } else { nil } }
            #expect(added.map { $0.formats.map(\.codec) } == [[.vp9], [.vp8]])
            #expect(bench.info(ada)?.tracks.count == 1)
            let track = try #require(bench.room.state.routing.tracks(of: ada).first)
            #expect(bench.room.state.routing[track]?.backup == added.last?.id)
        }
        var bench = RoomBench()
        let ada = try bench.join("ada")
        var announcement = Self.announcement
        announcement.backupTrackID = "w"
        try bench.perform(.announce(announcement), ada)
        try bench.offer(ada, [Self.main])
        try bench.offer(ada, [.video("0", "inactive", codecs: Self.vp8)])
        #expect(bench.room.publications(of: ada).isEmpty, "nothing of it is awaited any more")
    }

    @Test("Nobody waits any more: the publisher is notified; with the subscriber its demand ends")
    func noMore() throws {
        var (bench, ada, _, carl, _) = try meeting()
        _ = bench.consumeEvents(ada)
        bench.leave(carl)
        #expect(demands(bench.consumeEvents(ada)) == [[false]])
    }

    @Test(
        "Of several who need the second codec, waiting for it or receiving it, the last one ends its demand",
        arguments: [false, true])
    func lastOne(isPublished: Bool) throws {
        var (bench, ada, bob, carl, sid) = try meeting()
        let dora = try bench.join("dora")
        try bench.answerOffers(dora, without: ["VP9"])
        if isPublished {
            try announceBackup(sid, &bench, ada)
            try bench.offer(ada, [Self.main, Self.backup])
        }
        _ = bench.consumeEvents(ada)
        bench.leave(carl)
        bench.leave(bob)
        #expect(demands(bench.consumeEvents(ada)).isEmpty)
        bench.leave(dora)
        #expect(demands(bench.consumeEvents(ada)) == [[false]])
        bench.leave(ada)
        #expect(bench.leftovers.isEmpty)
    }

    @Test("Mute and the end of a track concern both encodings; the end of the second alone makes its subscribers wait")
    func life() throws {
        var (bench, ada, _, _, sid) = try meeting()
        try announceBackup(sid, &bench, ada)
        try bench.offer(ada, [Self.main, Self.backup])
        let tracks = bench.consumeCommands().compactMap { if case .addTrack(let track) = $0 { track.id } else { nil } }
        try #require(tracks.count == 2)
        try bench.perform(.setMuted(track: sid, true), ada)
        #expect(
            bench.consumeCommands().filter {
                $0 == .setTrackMuted(tracks[0], true) || $0 == .setTrackMuted(tracks[1], true)
            }.count == 2)
        _ = bench.consumeEvents(ada)
        try bench.offer(ada, [Self.main, .video("1", "inactive", codecs: Self.vp8)])
        let commands = bench.consumeCommands()
        #expect(commands.contains(.removeTrack(tracks[1])))
        #expect(commands.contains { if case .switchSubscription(_, to: nil) = $0 { true } else { false } })
        try announceBackup(sid, &bench, ada)
        try bench.offer(ada, [Self.main, Self.backup])
        _ = bench.consumeCommands()
        try bench.perform(.unpublish(track: sid), ada)
        #expect(bench.consumeCommands().count { if case .removeTrack = $0 { true } else { false } } == 2)
        #expect(bench.info(ada)?.tracks.isEmpty == true)
    }

    @Test("Only the publisher of a track that was announced with a backup codec announces that, once")
    func refusals() throws {
        var (bench, ada, bob, _, sid) = try meeting()
        #expect(throws: RoomError.self) { try announceBackup(sid, &bench, bob) }
        #expect(throws: RoomError.self) { try announceBackup("TR_none", &bench, ada) }
        try announceBackup(sid, &bench, ada)
        try bench.offer(ada, [Self.main, Self.backup])
        #expect(throws: RoomError.self) { try announceBackup(sid, &bench, ada) }
    }

    @Test("A second encoding that becomes another source is not recorded beside its track", arguments: [0, 5])
    func recording(placesLeft: Int) throws {
        var (bench, ada, _, _, sid) = try meeting()
        try bench.step { (room, turn) throws(RoomError) in
            _ = try room.startRecording(RecordingScope(), turn: &turn)
        }
        try announceBackup(sid, &bench, ada)
        try bench.offer(ada, [Self.main, Self.backup])
        _ = bench.consumeCommands()
        bench.recordings = []
        bench.recordedTracksLeft = placesLeft
        // Another track of the client in the section of the second encoding.
        var announcement = TrackAnnouncement("x", source: .screen)
        announcement.kind = .video
        try bench.perform(.announce(announcement), ada)
        try bench.offer(ada, [Self.main, .video("1", track: "x", codecs: Self.vp8 + Self.vp9)])
        let updates = bench.consumeCommands().compactMap { if case .updateTrack(let track) = $0 { track } else { nil } }
        #expect(updates.contains { $0.source == .screen })
        #expect(bench.recordings.isEmpty)
        bench.advance(by: .zero)
        #expect(bench.room.nextDeadline > bench.now + .seconds(5))
    }

    /// What the publisher was sent about its first codec.
    private func firstDemands(_ events: [RoomEvent]) -> [[Bool]] {
        events.compactMap { if case .layersWanted(_, let layers) = $0 { layers.map(\.isWanted) } else { nil } }
    }

    private func switches(_ commands: [MediaCommand]) -> [TrackID?] {
        commands.compactMap { if case .switchSubscription(_, let track) = $0 { .some(track) } else { nil } }
    }

    @Test(
        "A publisher that would rather not send two codecs: everybody gets the second one, and the first is not wanted until nobody subscribes any more"
    )
    func regression() throws {
        var (bench, ada, bob, carl, sid) = try meeting(.regression)
        let main = try #require(
            bench.consumeCommands().compactMap { if case .addTrack(let track) = $0 { track.id } else { nil } }.first)
        bench.media(.layersWanted(main, [true]))
        #expect(firstDemands(bench.consumeEvents(ada)) == [[true]])
        try announceBackup(sid, &bench, ada)
        try bench.offer(ada, [Self.main, Self.backup])
        let commands = bench.consumeCommands()
        let backup = try #require(
            commands.compactMap { if case .addTrack(let track) = $0 { track.id } else { nil } }.first)
        #expect(switches(commands) == [backup], "carl's; nothing comes in it yet")
        #expect(firstDemands(bench.consumeEvents(ada)).isEmpty)
        bench.media(.trackStarted(backup, .vp8))
        #expect(switches(bench.consumeCommands()) == [backup], "bob's")
        #expect(firstDemands(bench.consumeEvents(ada)) == [[false]])
        // The worker keeps the smallest layer of what nobody receives.
        bench.media(.layersWanted(main, [true]))
        #expect(firstDemands(bench.consumeEvents(ada)).isEmpty)
        let dora = try bench.join("dora")
        try bench.answerOffers(dora)
        let tracks = bench.consumeCommands().compactMap { if case .subscribe(let one) = $0 { one.track } else { nil } }
        #expect(tracks == [backup])

        bench.leave(carl)
        bench.leave(dora)
        #expect(switches(bench.consumeCommands()).isEmpty, "it does not go back and forth")
        bench.leave(bob)
        #expect(firstDemands(bench.consumeEvents(ada)) == [[true]])
        let emil = try bench.join("emil")
        try bench.answerOffers(emil)
        let anew = bench.consumeCommands().compactMap { if case .subscribe(let one) = $0 { one.track } else { nil } }
        #expect(anew == [main])
    }

    @Test("A recording that began in the first codec goes on in it, and so does who plays that alone")
    func regressionBesideFirst() throws {
        var (bench, ada, bob, carl, sid) = try meeting(.regression)
        try bench.step { (room, turn) throws(RoomError) in
            _ = try room.startRecording(RecordingScope(), turn: &turn)
        }
        try announceBackup(sid, &bench, ada)
        try bench.offer(ada, [Self.main, Self.backup])
        let backup = try #require(
            bench.consumeCommands().compactMap { if case .addTrack(let track) = $0 { track.id } else { nil } }.last)
        bench.media(.trackStarted(backup, .vp8))
        #expect(firstDemands(bench.consumeEvents(ada)).isEmpty)
        let recording = try #require(bench.room.recordingsInProgress.first?.sid)
        try bench.step { (room, turn) throws(RoomError) in try room.stopRecording(recording, turn: &turn) }
        #expect(firstDemands(bench.consumeEvents(ada)) == [[false]])
        let dora = try bench.join("dora")
        try bench.answerOffers(dora, without: ["VP8"])
        #expect(firstDemands(bench.consumeEvents(ada)) == [[true]])
        bench.leave(dora)
        #expect(firstDemands(bench.consumeEvents(ada)) == [[false]])
        // The end of the second encoding gives the first one back to who plays it.
        _ = bench.consumeCommands()
        try bench.offer(ada, [Self.main, .video("1", "inactive", codecs: Self.vp8)])
        #expect(switches(bench.consumeCommands()).count { $0 != nil } == 1)
        #expect(firstDemands(bench.consumeEvents(ada)) == [[true]])
        _ = (bob, carl)
    }

    /// The meeting with everybody on the second codec.
    private func regressed() throws -> (
        bench: RoomBench, ada: SessionID, bob: SessionID, carl: SessionID, backup: TrackID
    ) {
        var (bench, ada, bob, carl, sid) = try meeting(.regression)
        try announceBackup(sid, &bench, ada)
        try bench.offer(ada, [Self.main, Self.backup])
        let backup = try #require(
            bench.consumeCommands().compactMap { if case .addTrack(let track) = $0 { track.id } else { nil } }.last)
        bench.media(.trackStarted(backup, .vp8))
        #expect(firstDemands(bench.consumeEvents(ada)) == [[false]])
        _ = bench.consumeCommands()
        return (bench, ada, bob, carl, backup)
    }

    @Test(
        "A second codec that stops gives the first one back to who plays it, and takes its place again when it comes again"
    )
    func regressionStops() throws {
        var (bench, ada, _, _, backup) = try regressed()
        bench.media(.trackSilent(backup))
        #expect(switches(bench.consumeCommands()).count == 1)
        #expect(firstDemands(bench.consumeEvents(ada)) == [[true]])
        bench.media(.trackResumed(backup))
        #expect(switches(bench.consumeCommands()) == [backup])
        #expect(firstDemands(bench.consumeEvents(ada)) == [[false]])
    }

    @Test("A client that begins anew is notified again of the demand for its videos, in both codecs")
    func notifiedAgain() throws {
        var (bench, ada, bob, carl, backup) = try regressed()
        bench.media(.layersWanted(backup, [true]))
        _ = bench.consumeEvents(ada)
        try bench.step { (room, turn) throws(RoomError) in room.sendCurrentState(to: ada, turn: &turn) }
        var events = bench.consumeEvents(ada)
        #expect(firstDemands(events) == [[false]] && demands(events) == [[true]])
        bench.leave(bob)
        bench.leave(carl)
        _ = bench.consumeEvents(ada)
        try bench.step { (room, turn) throws(RoomError) in room.sendCurrentState(to: ada, turn: &turn) }
        events = bench.consumeEvents(ada)
        #expect(firstDemands(events) == [[true]] && demands(events) == [[false]])
    }

    @Test("In another room a track begins with its first codec again, and the second is asked for where it is needed")
    func regressionMoves() throws {
        var (bench, ada, _, _, _) = try regressed()
        var other = RoomBench(id: RoomID(10), name: "Q")
        let dora = try other.join("dora") { $0.room = "Q" }, emil = try other.join("emil") { $0.room = "Q" }
        try bench.move("ada", to: &other)
        let left = bench.consumeEvents(ada)
        #expect(firstDemands(left) == [[true]] && demands(left).last == [false])
        try other.answerOffers(dora)
        #expect(demands(other.consumeEvents(ada)).isEmpty)
        try other.answerOffers(emil, without: ["VP9"])
        let reported = other.consumeEvents(ada)
        #expect(demands(reported) == [[true]])
    }

    @Test("A member takes both encodings of its track along to another room")
    func move() throws {
        var (bench, ada, _, _, sid) = try meeting()
        try announceBackup(sid, &bench, ada)
        try bench.offer(ada, [Self.main, Self.backup])
        var other = RoomBench(id: RoomID(10), name: "Q")
        let dora = try other.join("dora") { $0.room = "Q" }
        try bench.move("ada", to: &other)
        try other.answerOffers(dora, without: ["VP9"])
        let backup = other.commands.compactMap { if case .subscribe(let one) = $0 { one } else { nil } }
        #expect(backup.count == 1 && backup.first?.track != nil && backup.first?.formats.map(\.codec) == [.vp8])
        #expect(other.room.participant(ada)?.tracks.map(\.sid) == [sid])
    }
}
