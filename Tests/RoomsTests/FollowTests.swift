import AccessTokens
import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Follow mode")
struct FollowTests {
    private func viewer(
        _ bench: inout RoomBench, _ target: FollowTarget, _ sections: [ClientDescriptions.Section]
    ) throws -> SessionID {
        let viewer = try bench.join("viewer", isSignalled: false, follow: target) { $0.profile = .viewer }
        try bench.offer(viewer, "main", sections)
        return viewer
    }

    private let sections: [ClientDescriptions.Section] = [.audio("0", "recvonly"), .video("1", "recvonly")]

    @Test("A viewer follows the dominant speaker by switching behind its sections, without renegotiation")
    func dominantSpeaker() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        let bob = try bench.join("bob")
        try bench.offer(ada, [.audio("0"), .video("1")])
        try bench.offer(bob, [.audio("0"), .video("1")])
        _ = bench.consumeCommands()
        let viewer = try viewer(&bench, .dominantSpeaker, sections)
        let subscribed = SubscribeTests.subscribed(bench.commands)
        #expect(subscribed.map(\.mid) == ["0", "1"])
        let first = bench.room.subscriptions(of: viewer).map(\.track)
        #expect(first == [bench.trackSID(ada, .audio), bench.trackSID(ada, .video)], "somebody is shown at once")
        _ = bench.consumeCommands()
        let voice = try #require(bench.room.state.routing.tracks(of: bob).first)
        bench.media(.dominantSpeakerChanged(bench.room.id, voice))
        let switches = bench.commands.compactMap {
            if case .switchSubscription(let id, let to) = $0 { (id, to) } else { nil }
        }
        #expect(switches.map(\.0) == subscribed.map(\.id) && bench.commands.count == 2)
        #expect(
            bench.room.subscriptions(of: viewer).map(\.track) == [
                bench.trackSID(bob, .audio), bench.trackSID(bob, .video),
            ])
        bench.media(.dominantSpeakerChanged(bench.room.id, nil))
        #expect(bench.room.subscriptions(of: viewer).map(\.publisher) == [bench.info(bob)?.sid, bench.info(bob)?.sid])
    }

    @Test("When the dominant speaker leaves, somebody else is shown; when nobody is left, nothing")
    func leaving() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        let bob = try bench.join("bob")
        try bench.offer(ada, [.audio("0"), .video("1")])
        try bench.offer(bob, [.audio("0"), .video("1")])
        let viewer = try viewer(&bench, .dominantSpeaker, sections)
        bench.media(.dominantSpeakerChanged(bench.room.id, bench.room.state.routing.tracks(of: bob).first))
        bench.leave(bob)
        #expect(bench.room.subscriptions(of: viewer).map(\.publisher) == [bench.info(ada)?.sid, bench.info(ada)?.sid])
        bench.leave(ada)
        #expect(bench.room.subscriptions(of: viewer).map(\.track) == [nil, nil])
        #expect(bench.room.subscriptions(of: viewer).count == 2, "the sections wait")
    }

    @Test("A speaker without a camera keeps the video of whoever was shown")
    func voiceOnly() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        let bob = try bench.join("bob")
        try bench.offer(ada, [.audio("0"), .video("1")])
        try bench.offer(bob, [.audio("0")])
        let viewer = try viewer(&bench, .dominantSpeaker, sections)
        bench.media(.dominantSpeakerChanged(bench.room.id, bench.room.state.routing.tracks(of: bob).first))
        #expect(
            bench.room.subscriptions(of: viewer).map(\.track) == [
                bench.trackSID(bob, .audio), bench.trackSID(ada, .video),
            ])
    }

    @Test("A viewer of one participant waits for it, shows its screen before its camera, and survives its return")
    func identity() throws {
        var bench = RoomBench()
        let viewer = try viewer(&bench, .identity("ada"), sections + [.video("2", "recvonly")])
        #expect(bench.room.subscriptions(of: viewer).map(\.state) == [.active, .active, .active])
        for _ in 0..<2 {
            let ada = try bench.join("ada")
            try bench.offer(ada, [.audio("0"), .video("1")])
            #expect(
                bench.room.subscriptions(of: viewer).map(\.track) == [
                    bench.trackSID(ada, .audio), bench.trackSID(ada, .video), nil,
                ])
            try bench.perform(
                .announce(.init("s", source: .screen, muted: false)), ada)
            try bench.offer(ada, [.audio("0"), .video("1"), .video("2", track: "s")])
            let shown = bench.room.subscriptions(of: viewer).map(\.track)
            let tracks = try #require(bench.info(ada)?.tracks)
            #expect(shown == [tracks[0].sid, tracks[2].sid, tracks[1].sid])
        }
    }

    @Test("A8: a section whose track has no common codec says so, and another track behind it is another matter")
    func noCommonCodec() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        let bob = try bench.join("bob")
        try bench.offer(ada, [.audio("0"), .video("1")])
        try bench.offer(bob, [.audio("0"), .video("1")])
        let viewer = try viewer(&bench, .dominantSpeaker, sections)
        let video = try #require(bench.room.state.routing.subscriptions(of: viewer).last)
        bench.media(.subscriptionHasNoCommonCodec(video))
        #expect(bench.room.subscriptions(of: viewer).map(\.state) == [.active, .noCommonCodec])
        bench.media(.dominantSpeakerChanged(bench.room.id, bench.room.state.routing.tracks(of: bob).first))
        #expect(bench.room.subscriptions(of: viewer).map(\.state) == [.active, .active])
    }

    @Test("A viewer that may not receive any more keeps its sections, and is shown something again when it may")
    func permissions() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0"), .video("1")])
        let viewer = try viewer(&bench, .identity("ada"), sections)
        let shown = bench.room.subscriptions(of: viewer).map(\.track)
        #expect(shown == [bench.trackSID(ada, .audio), bench.trackSID(ada, .video)])
        var permissions = try #require(bench.info(viewer)).permissions
        permissions.canSubscribe = false
        _ = bench.consumeCommands()
        try bench.setPermissions(permissions, "viewer")
        #expect(bench.room.subscriptions(of: viewer).map(\.track) == [nil, nil])
        let stopped = bench.consumeCommands().compactMap {
            if case .switchSubscription(let id, nil) = $0 { id } else { nil }
        }
        #expect(stopped.count == 2)
        permissions.canSubscribe = true
        try bench.setPermissions(permissions, "viewer")
        #expect(bench.room.subscriptions(of: viewer).map(\.track) == shown)
    }

    @Test("A hidden participant is not shown to viewers that follow its identity either")
    func hidden() throws {
        var policy = RoomPolicy()
        policy.duplicateIdentity = .allow
        var bench = RoomBench(policy: policy)
        let ada = try bench.join("ada")
        let ghost = try bench.join("ada") { $0.claims.video.hidden = true }
        let alone = try bench.join("ghost") { $0.claims.video.hidden = true }
        for session in [ada, ghost, alone] { try bench.offer(session, [.audio("0"), .video("1")]) }
        let viewer = try viewer(&bench, .identity("ada"), sections)
        #expect(
            bench.room.subscriptions(of: viewer).map(\.track) == [
                bench.trackSID(ada, .audio), bench.trackSID(ada, .video),
            ])
        let other = try bench.join("other", isSignalled: false, follow: .identity("ghost")) { $0.profile = .viewer }
        try bench.offer(other, "main", sections)
        #expect(bench.room.subscriptions(of: other).map(\.track) == [nil, nil])
    }

    @Test("Viewers publish nothing and are never offered to")
    func viewersAreQuiet() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        let viewer = try viewer(&bench, .dominantSpeaker, [.audio("0", "sendrecv"), .video("1", "recvonly")])
        try bench.offer(ada, [.audio("0"), .video("1")])
        #expect(bench.info(viewer)?.tracks.isEmpty == true)
        #expect(bench.events[viewer] == nil)
    }
}

@Suite("Media events")
struct MediaEventTests {
    @Test("D9, D10, A6: first packets, sizes, silence and codecs of tracks reach those who watch")
    func tracks() throws {
        var (bench, ada, bob) = try SubscribeTests.pair()
        let id = try #require(bench.room.state.routing.tracks(of: ada).last)
        let subscription = try #require(bench.room.state.routing.subscriptions(of: bob).last)
        _ = bench.consumeEvents(bob)
        bench.media(.trackStarted(id, .vp8))
        bench.media(.trackDimensions(id, layer: 0, width: 320, height: 180))
        bench.media(.trackDimensions(id, layer: 2, width: 1280, height: 720))
        bench.media(.trackDimensions(id, layer: 1, width: 640, height: 360))
        bench.media(.trackSilent(id))
        bench.media(.trackSilent(id))
        bench.media(.trackResumed(id))
        bench.media(.subscriptionStarted(subscription))
        let events = bench.consumeEvents(bob)
        let infos = events.compactMap { if case .trackUpdated(let info) = $0 { info } else { nil } }
        #expect(
            infos.count == 5 && infos.last?.codec == .vp8 && infos.last?.width == 1280
                && infos.map(\.silent) == [false, false, false, true, false])
        #expect(
            events.last
                == .subscriptionStarted(
                    subscription: bench.room.subscriptions(of: bob)[1].sid, track: bench.trackSID(ada, .video)))
        bench.media(.subscriptionHasNoCommonCodec(subscription))
        #expect(bench.room.subscriptions(of: bob)[1].state == .noCommonCodec)
    }

    @Test("Speakers go to those who asked, the dominant speaker to everybody with a roster")
    func speakers() throws {
        var (bench, ada, bob) = try SubscribeTests.pair()
        try bench.perform(.wantSpeakers(true), bob)
        _ = bench.consumeEvents(bob)
        _ = bench.consumeEvents(ada)
        let voice = try #require(bench.room.state.routing.tracks(of: ada).first)
        bench.media(.speakersChanged(bench.room.id, [SpeakerLevel(track: voice, loudness: 90)]))
        bench.media(.dominantSpeakerChanged(bench.room.id, voice))
        bench.media(.dominantSpeakerChanged(bench.room.id, voice))
        let sid = bench.info(ada)?.sid ?? ""
        #expect(
            bench.consumeEvents(bob) == [
                .speakersChanged([SpeakerInfo(participant: sid, track: bench.trackSID(ada, .audio), loudness: 90)]),
                .dominantSpeakerChanged(participant: sid),
            ])
        #expect(bench.consumeEvents(ada) == [.dominantSpeakerChanged(participant: sid)])
        #expect(try bench.room.snapshot(bob).dominantSpeaker == sid)
    }

    @Test("Whoever comes, is moved, or begins to want it learns at once who speaks in the room")
    func currentSpeakers() throws {
        func reported(_ events: [RoomEvent]) -> [[SpeakerInfo]] {
            events.compactMap { if case .speakersChanged(let speakers) = $0 { speakers } else { nil } }
        }
        var (bench, ada, bob) = try SubscribeTests.pair()
        let early = try bench.join("early") { $0.wantsSpeakers = true }
        #expect(reported(bench.consumeEvents(early)).isEmpty, "nobody speaks")
        let voice = try #require(bench.room.state.routing.tracks(of: ada).first)
        bench.media(.speakersChanged(bench.room.id, [SpeakerLevel(track: voice, loudness: 90)]))
        let speaker = SpeakerInfo(
            participant: try #require(bench.info(ada)).sid, track: bench.trackSID(ada, .audio), loudness: 90)
        let late = try bench.join("late") { $0.wantsSpeakers = true }
        #expect(reported(bench.consumeEvents(late)) == [[speaker]])
        #expect(reported(bench.consumeEvents(bob)).isEmpty)
        try bench.perform(.wantSpeakers(true), bob)
        #expect(reported(bench.consumeEvents(bob)) == [[speaker]])
        var booth = RoomBench(id: RoomID(10), name: "booth")
        try bench.move("late", to: &booth)
        #expect(reported(booth.consumeEvents(late)) == [[]])
    }

    @Test(
        "A member whose client begins anew learns who speaks, of those who are still there, which of its videos are held, and what it may receive"
    )
    func currentStateSentAgain() throws {
        var (bench, ada, bob) = try SubscribeTests.pair()
        try bench.perform(.wantSpeakers(true), bob)
        #expect(bench.consumeEvents(bob).last == .speakersChanged([]))
        let voice = try #require(bench.room.state.routing.tracks(of: ada).first)
        bench.media(.speakersChanged(bench.room.id, [SpeakerLevel(track: voice, loudness: 90)]))
        let video = try #require(bench.room.state.routing.subscriptions(of: bob).last)
        bench.media(.subscriptionHeld(video, true))
        let reported = bench.consumeEvents(bob)
        let speakers = reported.filter { if case .speakersChanged = $0 { true } else { false } }
        let held = reported.filter { if case .subscriptionHeld(_, _, _, true) = $0 { true } else { false } }
        #expect(speakers.count == 1 && held.count == 1)
        _ = bench.consumeEvents(ada)
        try bench.step { (room, turn) throws(RoomError) in room.sendCurrentState(to: bob, turn: &turn) }
        #expect(bench.consumeEvents(bob) == speakers + held, "nobody has restricted a track")
        // What a publisher permits that has chosen its audience may have changed, too.
        for audience in [["bob"], nil] as [Audience?] { try bench.perform(.setAudience(audience), ada) }
        #expect(bench.consumeEvents(bob).isEmpty)
        try bench.step { (room, turn) throws(RoomError) in room.sendCurrentState(to: bob, turn: &turn) }
        let again = bench.consumeEvents(bob)
        #expect(Array(again.prefix(2)) == speakers + held)
        let permitted = again.dropFirst(2).filter { if case .trackPermission(_, _, true) = $0 { true } else { false } }
        #expect(permitted.count == 2 && again.count == 4)
        #expect(bench.consumeEvents(ada).isEmpty)
        // On another connection the decision begins anew.
        try bench.step { (room, turn) throws(RoomError) in _ = room.endConnections(of: bob, &turn) }
        #expect(bench.room.state.routing[video]?.isHeld == false)
        bench.leave(ada)
        _ = bench.consumeEvents(bob)
        try bench.step { (room, turn) throws(RoomError) in room.sendCurrentState(to: bob, turn: &turn) }
        #expect(bench.consumeEvents(bob) == [.speakersChanged([])])
    }

    @Test("Events about peers, tracks and subscriptions that have ended are ignored")
    func stale() throws {
        var (bench, ada, bob) = try SubscribeTests.pair()
        let track = try #require(bench.room.state.routing.tracks(of: ada).first)
        let peer = try #require(bench.room.connections(of: ada).first?.peer)
        let subscription = try #require(bench.room.state.routing.subscriptions(of: bob).first)
        bench.leave(ada)
        _ = bench.consumeEvents(bob)
        _ = bench.consumeCommands()
        for event in [
            MediaEvent.peerConnected(peer), .peerMoved(peer), .peerEnded(peer, .consentExpired),
            .trackStarted(track, .opus),
            .trackSilent(track), .trackDimensions(track, layer: 0, width: 1, height: 1),
            .subscriptionStarted(subscription),
            .subscriptionHasNoCommonCodec(subscription), .dominantSpeakerChanged(bench.room.id, track),
            .speakersChanged(bench.room.id, [SpeakerLevel(track: track, loudness: 1)]),
        ] { bench.media(event) }
        #expect(bench.consumeEvents(bob).isEmpty && bench.commands.isEmpty)
    }

    @Test("Each step of a stay is reported once, in the order in which it is reached")
    func joinSteps() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada"), bob = try bench.join("bob")
        try bench.offer(ada, [.audio("0"), .video("1")])
        try bench.answerOffers(bob)
        let peer = try #require(bench.room.connections(of: ada).first?.peer)
        let video = try #require(bench.room.state.routing.tracks(of: ada).last)
        let subscription = try #require(bench.room.state.routing.subscribers(of: video).first)
        for _ in 0..<2 {
            for event: MediaEvent in [
                .peerChecked(peer), .peerConnected(peer), .trackStarted(video, .vp8),
                .trackDimensions(video, layer: 0, width: 640, height: 360), .subscriptionStarted(subscription),
            ] {
                bench.media(event)
            }
        }
        #expect(bench.steps[bench.info(ada)?.sid ?? ""] == [.offer, .ice, .dtls, .received, .receivedKeyframe])
        #expect(bench.steps[bench.info(bob)?.sid ?? ""] == [.offer, .sent, .sentVideo])
    }
}
