import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Limits of a participant")
struct LimitTests {
    private static func added(_ commands: [MediaCommand]) -> Int {
        commands.count { if case .addTrack = $0 { true } else { false } }
    }

    private static func waiting(_ events: [RoomEvent]) -> [Int] {
        events.compactMap { if case .subscriptionsWaiting(_, let waiting) = $0 { waiting } else { nil } }
    }

    @Test("Of 34 tracks in one offer 32 are published, and the publisher is notified of the two that are not")
    func tracksOfOneConnection() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        let answer = try bench.offer(ada, (0..<34).map { .video("\($0)") })
        #expect(Self.added(bench.commands) == 32 && answer.tracks.count == 32)
        let refused = bench.consumeEvents(ada).filter { if case .publicationRefused = $0 { true } else { false } }
        #expect(
            refused
                == ["32", "33"].map {
                    .publicationRefused(connection: "pub", mid: $0, track: "video-\($0)", code: .limitExceeded)
                })
        try bench.perform(.unpublish(track: bench.trackSID(ada, .video)), ada)
        try bench.offer(ada, (0..<34).map { .video("\($0)", $0 == 0 ? "inactive" : "sendonly") })
        #expect(Self.added(bench.commands) == 33, "the place that became free is used")
    }

    @Test("Tracks are counted over all connections of a participant, whose sections may have the same names")
    func tracksOfSeveralConnections() throws {
        var limits = RoomLimits()
        limits.tracksPerParticipant = 3
        var bench = RoomBench(limits: limits)
        let ada = try bench.join("ada")
        try bench.offer(ada, "camera", [.audio("0"), .video("1")])
        try bench.offer(ada, "screen", [.audio("0"), .video("1")])
        #expect(Self.added(bench.commands) == 3)
        let refused = bench.consumeEvents(ada).filter { if case .publicationRefused = $0 { true } else { false } }
        #expect(refused.count == 1)
    }

    @Test(
        "A subscription refused at the limit is made as soon as another ends, for clients that expect that and still want it"
    )
    func refusedSubscription() throws {
        var limits = RoomLimits()
        limits.subscriptionsPerParticipant = 1
        var bench = RoomBench(limits: limits)
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0"), .video("1")])
        let (audio, video) = (bench.trackSID(ada, .audio), bench.trackSID(ada, .video))
        for (waits, isWanted) in [(true, true), (true, false), (false, true)] {
            let bob = try bench.join("bob") { ($0.autoSubscribe, $0.awaitsPermission) = (false, waits) }
            try bench.perform(.subscribe(track: audio), bob)
            let refusal = bench.refusal(of: .subscribe(track: video), by: bob)
            #expect(refusal == .limitExceeded)
            if !isWanted { try bench.perform(.unsubscribe(track: video), bob) }
            #expect(bench.room.subscriptions(of: bob).map(\.track) == [audio])
            try bench.perform(.unsubscribe(track: audio), bob)
            #expect(bench.room.subscriptions(of: bob).map(\.track) == (waits && isWanted ? [video] : []))
        }
    }

    @Test("What a participant says about itself is sent to everybody at a bounded rate, the less often the more it is")
    func changes() throws {
        var limits = RoomLimits()
        limits.notificationsPerSecond = 4
        var bench = RoomBench(limits: limits)
        let ada = try bench.join("ada")
        try bench.join("bob")
        func code(_ request: SessionRequest) -> RoomError.Code? {
            bench.refusal(of: request, by: ada)
        }
        // Twenty notifications at once, two of each.
        for number in 0..<10 { #expect(code(.setMetadata(name: nil, metadata: "\(number)")) == nil) }
        #expect(code(.setMetadata(name: "Ada", metadata: nil)) == .rateLimited)
        #expect(code(.setAttributes(["hand": "up"])) == .rateLimited)
        #expect(bench.info(ada)?.name == "" && bench.info(ada)?.metadata == "9")
        bench.now = bench.now + .seconds(10)
        // Eight of each, whatever changes of it.
        #expect(code(.setMetadata(name: nil, metadata: String(repeating: "m", count: 4_000))) == nil)
        #expect(code(.setAttributes(["hand": "up"])) == nil)
        #expect(code(.setAttributes(["hand": "down"])) == .rateLimited)
    }

    @Test("A name and metadata that are set to what they are cost nothing and are sent to nobody")
    func unchanged() throws {
        var limits = RoomLimits()
        limits.notificationsPerSecond = 4
        var bench = RoomBench(limits: limits)
        let ada = try bench.join("ada")
        let bob = try bench.join("bob")
        try bench.perform(.setMetadata(name: "Ada", metadata: "m"), ada)
        _ = bench.consumeEvents(bob)
        for _ in 0..<100 { try bench.perform(.setMetadata(name: "Ada", metadata: "m"), ada) }
        #expect(bench.consumeEvents(bob).isEmpty)
        try bench.perform(.setAttributes(["hand": "up"]), ada)
        #expect(bench.consumeEvents(bob).count == 1)
    }

    @Test("Publications and unmutes are bounded by the size of the room, mutes and ends are not; all tracks come twice")
    func trackChanges() throws {
        var limits = RoomLimits()
        (limits.notificationsPerSecond, limits.tracksPerParticipant) = (4, 2)
        var bench = RoomBench(limits: limits)
        let ada = try bench.join("ada")
        try bench.join("bob")
        func code(_ request: SessionRequest) -> RoomError.Code? {
            bench.refusal(of: request, by: ada)
        }
        func refusals() -> [RoomError.Code] {
            bench.consumeEvents(ada).compactMap {
                if case .publicationRefused(_, _, _, let code, _) = $0 { code } else { nil }
            }
        }
        let sections: [ClientDescriptions.Section] = [.audio("0"), .video("1")]
        try bench.offer(ada, sections)
        for sid in try #require(bench.info(ada)).tracks.map(\.sid) { #expect(code(.unpublish(track: sid)) == nil) }
        try bench.offer(ada, sections)
        #expect(bench.info(ada)?.tracks.count == 2 && refusals().isEmpty)
        let (audio, video) = (bench.trackSID(ada, .audio), bench.trackSID(ada, .video))
        #expect(code(.setMuted(track: audio, true)) == nil)
        #expect(code(.setMuted(track: audio, false)) == .rateLimited)
        var announcement = TrackAnnouncement("audio-0", source: .microphone)
        announcement.muted = false
        #expect(code(.announce(announcement)) == .rateLimited)
        #expect(code(.unpublish(track: video)) == nil)
        try bench.offer(ada, sections)
        #expect(refusals() == [.rateLimited] && bench.info(ada)?.tracks.map(\.sid) == [audio])
        // Of half a second each: two notifications for the unmute, four for the publication.
        bench.now = bench.now + .seconds(1)
        #expect(code(.setMuted(track: audio, false)) == nil)
        bench.now = bench.now + .seconds(2)
        try bench.offer(ada, sections)
        #expect(bench.info(ada)?.tracks.count == 2)
    }

    @Test("Data tracks and audiences are bounded like publications; an audience of nobody is never refused")
    func otherChanges() throws {
        var limits = RoomLimits()
        (limits.notificationsPerSecond, limits.tracksPerParticipant) = (4, 2)
        var bench = RoomBench(limits: limits)
        let ada = try bench.join("ada"), bob = try bench.join("bob")
        func code(_ request: SessionRequest, _ session: SessionID) -> RoomError.Code? {
            bench.refusal(of: request, by: session)
        }
        for _ in 0..<4 {
            #expect(code(.dataTrack(.publish(DataTrackInfo(handle: 1, name: "d"))), ada) == nil)
            #expect(code(.dataTrack(.unpublish(handle: 1)), ada) == nil)
        }
        #expect(code(.dataTrack(.publish(DataTrackInfo(handle: 1, name: "d"))), ada) == .rateLimited)
        try bench.offer(bob, [.audio("0")])
        for audience in [["ada"], nil, ["ada"]] as [Audience?] { #expect(code(.setAudience(audience), bob) == nil) }
        #expect(code(.setAudience(["ada"]), bob) == nil, "as it is")
        #expect(code(.setAudience(nil), bob) == .rateLimited)
        #expect(code(.setAudience([]), bob) == nil)
        #expect(bench.room.subscriptions(of: ada).isEmpty)
    }

    @Test("Other tracks and codecs on sections that go on are bounded likewise; an offer that changes nothing never is")
    func replacements() throws {
        var limits = RoomLimits()
        (limits.notificationsPerSecond, limits.tracksPerParticipant) = (4, 2)
        var bench = RoomBench(limits: limits)
        let ada = try bench.join("ada")
        try bench.join("bob")
        let video = ClientDescriptions.Section.video("1")
        let other = ClientDescriptions.Section.video("1", codecs: [(98, "VP9/90000", "profile-id=0")])
        try bench.offer(ada, [.audio("0"), video])
        // Each track is one notification of each, the codec four: with the publications all that there may be at once.
        for number in 0..<4 { try bench.offer(ada, [.audio("0", track: "\(number)"), video]) }
        for _ in 0..<3 { try bench.offer(ada, [.audio("0", track: "3"), other]) }
        for sections in [[.audio("0", track: "4"), other], [.audio("0", track: "3"), video]]
            as [[ClientDescriptions.Section]]
        {
            let refusal = #expect(throws: RoomError.self) { try bench.offer(ada, sections) }
            #expect(refusal?.code == .rateLimited)
        }
        try bench.offer(ada, [.audio("0", track: "3"), other])
        #expect(bench.info(ada)?.tracks.map(\.clientTrackID) == ["3", "video-1"])
        bench.now = bench.now + .milliseconds(500)
        try bench.offer(ada, [.audio("0", track: "4"), other])
        #expect(bench.info(ada)?.tracks.map(\.clientTrackID) == ["4", "video-1"])
    }

    @Test("Another audience of several tracks that is refused costs nothing: asking again does not put it off")
    func refusedAudience() throws {
        var limits = RoomLimits()
        (limits.notificationsPerSecond, limits.tracksPerParticipant) = (4, 2)
        var bench = RoomBench(limits: limits)
        try bench.join("ada")
        let bob = try bench.join("bob")
        try bench.offer(bob, [.audio("0"), .video("1")])
        try bench.perform(.setAudience(["ada"]), bob)
        // Four notifications for each of two tracks, of half a second each.
        var refusals = 0
        for _ in 1...4 {
            bench.now = bench.now + .seconds(1)
            do { try bench.perform(.setAudience(nil), bob) } catch { refusals += 1 }
        }
        #expect(refusals == 3)
    }

    @Test(
        "A client that makes all offers is asked for no more sections than a description may have, and is notified of how many tracks wait"
    )
    func sectionsOfOneDescription() throws {
        var bench = RoomBench()
        for number in 0..<8 {
            let publisher = try bench.join("publisher \(number)") { $0.autoSubscribe = false }
            try bench.offer(publisher, (0..<32).map { .audio("\($0)") })
        }
        let bob = try bench.join("bob") { ($0.offering, $0.receivingConnection) = (.client, "main") }
        /// The sections that it is asked for, and the tracks that wait.
        func news() -> [[Int]] {
            let events = bench.consumeEvents(bob)
            let asked: [Int] = events.compactMap {
                if case .sectionsNeeded("main", let audio, let video) = $0 { audio + video } else { nil }
            }
            return [asked, Self.waiting(events)]
        }
        #expect(news() == [[], [6]], "256 tracks, 250 subscriptions")
        let own = (0..<10).map { ClientDescriptions.Section.audio("\($0)") }
        try bench.offer(bob, "main", own)
        #expect(news() == [[246], [10]], "four subscriptions find no section")
        let received = (10..<256).map { ClientDescriptions.Section.audio("\($0)", "recvonly") }
        try bench.offer(bob, "main", own + received)
        #expect(bench.room.subscriptions(of: bob).count { $0.connection == "main" } == 246)
        #expect(news() == [[], []], "those that are left wait")
        let first = try #require(bench.room.subscriptions(of: bob).first?.track)
        try bench.perform(.unsubscribe(track: first), bob)
        #expect(news() == [[0], []], "another offer has a section for one of them")
        try bench.offer(bob, "main", own + received)
        #expect(news()[1] == [9])
    }

    @Test("Whoever has no section left for some tracks is notified of how many wait, also as those end")
    func endsWithoutSection() throws {
        var bench = RoomBench()
        for number in 0..<8 {
            let publisher = try bench.join("publisher \(number)") { $0.autoSubscribe = false }
            try bench.offer(publisher, (0..<31).map { .audio("\($0)") })
        }
        let bob = try bench.join("bob") { ($0.offering, $0.receivingConnection) = (.client, "main") }
        let own = (0..<10).map { ClientDescriptions.Section.audio("\($0)") }
        let received = (10..<256).map { ClientDescriptions.Section.audio("\($0)", "recvonly") }
        for sections in [own, own + received] { try bench.offer(bob, "main", sections) }
        #expect(Self.waiting(bench.consumeEvents(bob)) == [2], "248 tracks, 246 sections")
        for left in [1, 0] {
            let track = try #require(bench.room.subscriptions(of: bob).first { $0.connection == nil }?.track)
            let publisher = try #require(bench.room.state.routing.track(sid: track)?.publisher)
            try bench.perform(.unpublish(track: track), publisher)
            #expect(Self.waiting(bench.consumeEvents(bob)) == [left])
        }
    }

    @Test(
        "Automatic subscriptions beyond the limit wait, the member is notified of how many, and they follow as others end"
    )
    func subscriptionsWait() throws {
        var limits = RoomLimits()
        limits.subscriptionsPerParticipant = 3
        var bench = RoomBench(limits: limits)
        let bob = try bench.join("bob")
        let ada = try bench.join("ada")
        try bench.offer(ada, (0..<5).map { .video("\($0)") })
        try bench.answerOffers(bob)
        let tracks = try #require(bench.info(ada)).tracks.map(\.sid)
        #expect(bench.room.subscriptions(of: bob).map(\.track) == Array(tracks[..<3]))
        #expect(Self.waiting(bench.consumeEvents(bob)) == [2])
        #expect(throws: RoomError.self) { try bench.perform(.subscribe(track: tracks[3]), bob) }

        try bench.perform(.unpublish(track: tracks[0]), ada)
        try bench.answerOffers(bob)
        #expect(bench.room.subscriptions(of: bob).map(\.track) == Array(tracks[1..<4]), "the oldest that waits")
        #expect(bench.room.subscriptions(of: bob).allSatisfy { $0.state == .active })
        #expect(Self.waiting(bench.consumeEvents(bob)) == [1])

        try bench.perform(.unsubscribe(track: tracks[4]), bob)
        #expect(Self.waiting(bench.consumeEvents(bob)) == [0])
        bench.leave(ada)
        #expect(bench.room.subscriptions(of: bob).isEmpty && bench.room.distribution.waitingTracks.isSettled)
    }

    @Test(
        "Who joins a room with more tracks than it may subscribe to is notified, and waits for nothing that has ended")
    func lateJoiner() throws {
        var limits = RoomLimits()
        limits.subscriptionsPerParticipant = 2
        var bench = RoomBench(limits: limits)
        let ada = try bench.join("ada")
        let eve = try bench.join("eve")
        try bench.offer(ada, [.audio("0"), .video("1")])
        try bench.offer(eve, [.audio("0"), .video("1")])
        let bob = try bench.join("bob")
        #expect(try bench.room.snapshot(bob).subscriptions.count == 2)
        #expect(Self.waiting(bench.consumeEvents(bob)) == [2])
        bench.leave(eve)
        #expect(Self.waiting(bench.consumeEvents(bob)) == [0])
        bench.leave(ada)
        #expect(bench.room.subscriptions(of: bob).isEmpty)
    }

    @Test("Who wants no video any more waits for none, and who stops subscribing automatically for nothing")
    func preferencesChange() throws {
        var limits = RoomLimits()
        limits.subscriptionsPerParticipant = 1
        var bench = RoomBench(limits: limits)
        let bob = try bench.join("bob")
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0"), .video("1"), .audio("2")])
        #expect(Self.waiting(bench.consumeEvents(bob)) == [2])
        try bench.perform(.setAudioOnly(true), bob)
        #expect(Self.waiting(bench.consumeEvents(bob)) == [1])
        try bench.perform(.setAutoSubscribe(false), bob)
        #expect(Self.waiting(bench.consumeEvents(bob)) == [0])
    }

    @Test("A WHIP session whose connection does not come up ends, and its room after it; ICE restarts prolong it")
    func neverConnected() throws {
        var bench = RoomBench()
        let caster = try bench.join("caster", isSignalled: false) { $0.profile = .publishOnly }
        try bench.offer(caster, "main", [.video("0")])
        try expectEnd(of: caster, in: &bench)
    }

    @Test("A WHEP session whose connection does not come up ends, and its room after it; ICE restarts prolong it")
    func viewerNeverConnected() throws {
        var bench = RoomBench()
        let viewer = try bench.join("viewer", isSignalled: false, follow: .dominantSpeaker) { $0.profile = .viewer }
        try bench.offer(viewer, "main", [.audio("0", "recvonly"), .video("1", "recvonly")])
        try expectEnd(of: viewer, in: &bench)
    }

    /// Forty seconds, an ICE restart, and 45 s more without a connection.
    private func expectEnd(of session: SessionID, in bench: inout RoomBench) throws {
        bench.advance(by: .seconds(40))
        try bench.step { (room, turn) throws(RoomError) in
            _ = try room.fragment(
                session, connection: "main", text: "a=ice-ufrag:newu\r\na=ice-pwd:0123456789012345678901\r\n",
                turn: &turn)
        }
        bench.advance(by: .seconds(44))
        #expect(bench.room.has(session))
        #expect(bench.room.nextDeadline == bench.now + .seconds(1))
        bench.advance(by: .seconds(1))
        #expect(bench.ended == [session: .connectionLost])
        let peers = bench.commands.filter { if case .removePeer = $0 { true } else { false } }
        #expect(peers.count == 1)
        bench.advance(by: bench.room.policy.departureTimeout)
        #expect(bench.isOver)
    }

    @Test("A room that nobody joins ends after the policy's empty timeout, and not before")
    func nobodyJoins() throws {
        var policy = RoomPolicy()
        policy.emptyTimeout = .seconds(7)
        var bench = RoomBench(policy: policy)
        #expect(bench.room.nextDeadline == bench.now + .seconds(7))
        bench.advance(by: .milliseconds(6_999))
        #expect(!bench.isOver)
        bench.advance(by: .milliseconds(1))
        #expect(bench.isOver)
    }

    @Test("A room that everybody has left ends after the policy's departure timeout, however long its empty timeout is")
    func everybodyLeaves() throws {
        var policy = RoomPolicy()
        (policy.emptyTimeout, policy.departureTimeout) = (.seconds(600), .seconds(3))
        var bench = RoomBench(policy: policy)
        bench.leave(try bench.join("ada"))
        bench.advance(by: .milliseconds(2_999))
        #expect(!bench.isOver)
        bench.advance(by: .milliseconds(1))
        #expect(bench.isOver)
    }

    @Test("A WHEP session that the worker refuses ends at once; a signalled member is notified and stays")
    func refusedByWorker() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        try bench.offer(ada, [.video("0")])
        let viewer = try bench.join("viewer", isSignalled: false, follow: .dominantSpeaker) { $0.profile = .viewer }
        try bench.offer(viewer, "main", [.video("0", "recvonly")])
        for session in [ada, viewer] {
            let peer = try #require(bench.room.connections(of: session).first?.peer)
            bench.media(.peerEnded(peer, .overloaded))
        }
        #expect(bench.ended == [viewer: .connectionLost])
        let events = bench.consumeEvents(ada)
        #expect(events.contains(.connectionChanged(connection: "pub", state: .closed, reason: "overloaded")))
    }
}
