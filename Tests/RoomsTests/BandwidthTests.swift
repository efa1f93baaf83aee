import AccessTokens
import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Bandwidth: what members request of layers and limits")
struct BandwidthTests {
    /// The policies of the peers, as the worker last received them.
    private static func policies(_ commands: [MediaCommand]) -> [DownlinkPolicy] {
        commands.compactMap { if case .setDownlinkPolicy(_, let policy) = $0 { policy } else { nil } }
    }

    private static func caps(_ commands: [MediaCommand]) -> [Int64?] {
        commands.compactMap {
            if case .setTrackMaximumBitrate(_, let cap) = $0 { .some(cap?.bitsPerSecond) } else { nil }
        }
    }

    private static func profile(_ change: (inout BandwidthProfile) -> Void) -> BandwidthProfile {
        var profile = BandwidthProfile()
        change(&profile)
        return profile
    }

    // MARK: - Limits

    @Test(
        "C8, B13: the tightest of room, token and member holds, and who set it is known",
        arguments: [
            (nil, nil, nil, nil), (4, nil, nil, BandwidthTests.limit(4, .room)),
            (4, 2, nil, BandwidthTests.limit(2, .token)), (4, 2, 1, BandwidthTests.limit(1, .participant)),
            (2, 4, 9, BandwidthTests.limit(2, .room)), (nil, nil, 0, BandwidthTests.limit(0, .participant)),
            (3, 3, 3, BandwidthTests.limit(3, .room)),
        ] as [(Int?, Int?, Int?, BandwidthLimit<Int>?)])
    func tightest(room: Int?, token: Int?, own: Int?, expected: BandwidthLimit<Int>?) {
        let settings = BandwidthSettings(
            room: Self.profile { $0.maxVideoSubscriptions = room },
            token: Self.profile { $0.maxVideoSubscriptions = token },
            own: Self.profile { $0.maxVideoSubscriptions = own })
        #expect(settings.maxVideoSubscriptions == expected)
        #expect(settings.downlinkPolicy.maximumVideos == expected?.value)
    }

    private static func limit(_ value: Int, _ source: LimitSource) -> BandwidthLimit<Int>? {
        let room = source == .room ? value : nil, token = source == .token ? value : nil
        return BandwidthLimit(room: room, token: token, own: source == .participant ? value : nil)
    }

    @Test("Mode and shortage: the member's own choice, else the room's, else the default")
    func choices() throws {
        var policy = RoomPolicy()
        policy.bandwidth.mode = .grid
        policy.bandwidth.shortage = .pause
        var bench = RoomBench(policy: policy)
        let bob = try bench.join("bob")
        #expect(bench.room.bandwidth(of: bob)?.mode == .grid)
        try bench.perform(.setBandwidth(Self.profile { $0.mode = .presentation }), bob)
        #expect(bench.room.bandwidth(of: bob)?.mode == .presentation)
        #expect(bench.room.bandwidth(of: bob)?.shortage == .pause)
        try bench.perform(.setBandwidth(BandwidthProfile()), bob)
        #expect(bench.room.bandwidth(of: bob)?.mode == .grid)
        let sent = try #require(bench.room.bandwidth(of: bob)).downlinkPolicy
        #expect(sent.mode == .grid && sent.shortage == .pause, "the worker's")
    }

    @Test(
        "C8: with a limit all videos are described, so that which is sent changes without renegotiation; with none no video is"
    )
    func videoLimit() throws {
        var policy = RoomPolicy()
        policy.bandwidth.maxVideoSubscriptions = 2
        var bench = RoomBench(policy: policy)
        let bob = try bench.join("bob") { $0.bandwidth.maxVideoSubscriptions = 1 }
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0")] + (1...6).map { .video("\($0)") })
        try bench.answerOffers(bob)
        #expect(bench.room.subscriptions(of: bob).count == 7)
        #expect(Self.policies(bench.consumeCommands()).map(\.maximumVideos) == [2, 1], "ada's, then bob's")
        try bench.perform(.setBandwidth(BandwidthProfile()), bob)
        #expect(Self.policies(bench.consumeCommands()).map(\.maximumVideos) == [2])
        #expect(try bench.answerOffers(bob) == 0)

        try bench.perform(.setBandwidth(Self.profile { $0.maxVideoSubscriptions = 0 }), bob)
        try bench.answerOffers(bob)
        #expect(bench.room.subscriptions(of: bob).map(\.kind) == [.audio])
        let video = bench.trackSID(ada, .video)
        #expect(throws: RoomError.self) { try bench.perform(.subscribe(track: video), bob) }
        try bench.perform(.setBandwidth(BandwidthProfile()), bob)
        try bench.answerOffers(bob)
        #expect(bench.room.subscriptions(of: bob).count == 7)
    }

    @Test("A policy reaches the worker with the peer and when it changes, and not twice")
    func policyOfPeers() throws {
        var (bench, _, bob) = try SubscribeTests.pair()
        #expect(Self.policies(bench.consumeCommands()).isEmpty)
        let limit = Self.profile { $0.maxDownlinkBitrate = .kilobitsPerSecond(700) }
        try bench.perform(.setBandwidth(limit), bob)
        try bench.perform(.setBandwidth(limit), bob)
        #expect(Self.policies(bench.consumeCommands()).map(\.maximumBitrate) == [.kilobitsPerSecond(700)])
        // Another connection of the same member begins with it.
        try bench.step { (room, turn) throws(RoomError) in try room.bye(bob, connection: "sub", turn: &turn) }
        let sid = try #require(bench.room.state.others(than: bob).first?.tracks.last?.sid)
        try bench.perform(.subscribe(track: sid), bob)
        try bench.answerOffers(bob)
        #expect(Self.policies(bench.consumeCommands()).map(\.maximumBitrate) == [.kilobitsPerSecond(700)])
    }

    // MARK: - Uplink

    @Test("B13: the cap on all that a member sends is shared among its videos that are on, and lifted again")
    func uplinkCaps() throws {
        var policy = RoomPolicy()
        policy.maxVideoBitrate = .kilobitsPerSecond(1_440)
        var bench = RoomBench(policy: policy)
        let ada = try bench.join("ada")
        try bench.offer(ada, [.video("1"), .video("2")])
        let descriptions = bench.consumeCommands().compactMap {
            if case .addTrack(let track) = $0 { track.maximumBitrate?.bitsPerSecond } else { nil }
        }
        #expect(descriptions == [1_440_000, 1_440_000])
        try bench.perform(.setBandwidth(Self.profile { $0.maxUplinkBitrate = .kilobitsPerSecond(2_000) }), ada)
        #expect(Self.caps(bench.consumeCommands()) == [1_000_000, 1_000_000])
        let second = try #require(bench.info(ada)?.tracks.last?.sid)
        try bench.perform(.setMuted(track: second, true), ada)
        #expect(
            Self.caps(bench.consumeCommands()) == [1_440_000, 1_440_000], "the room's cap is tighter than all of it")
        try bench.perform(.setMuted(track: second, false), ada)
        #expect(Self.caps(bench.consumeCommands()) == [1_000_000, 1_000_000])
        try bench.perform(.unpublish(track: second), ada)
        #expect(Self.caps(bench.consumeCommands()) == [1_440_000])
        try bench.perform(.setBandwidth(BandwidthProfile()), ada)
        #expect(Self.caps(bench.consumeCommands()) == [])
        policy.bandwidth.maxUplinkBitrate = .kilobitsPerSecond(900)
        try bench.setPolicy(policy)
        #expect(Self.caps(bench.consumeCommands()) == [900_000], "the room's own")
    }

    @Test("B13: the limits of a token hold like the room's, and stand in the answer")
    func tokenLimits() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada") {
            $0.claims.video.maxUplinkBitrate = 500_000
            $0.claims.video.maxVideoSubscriptions = 3
        }
        let answer = try bench.offer(ada, [.video("1")])
        #expect(answer.sdp.contains("b=TIAS:500000"))
        #expect(bench.room.bandwidth(of: ada)?.maxVideoSubscriptions?.source == .token)
        #expect(bench.room.bandwidth(of: ada)?.maxUplinkBitrate?.value == .kilobitsPerSecond(500))
    }

    // MARK: - One picture

    @Test("H8: a viewer's preferences for a video reach the worker and are confirmed to the viewer, once")
    func view() throws {
        var (bench, ada, bob) = try SubscribeTests.pair()
        let sid = bench.trackSID(ada, .video)
        _ = bench.consumeCommands()
        _ = bench.consumeEvents(bob)
        var view = TrackView()
        view.preference = .height(720)
        view.display.isPinned = true
        view.display.priority = .high
        view.display.framesPerSecond = 15
        try bench.perform(.setView(track: sid, view), bob)
        try bench.perform(.setView(track: sid, view), bob)
        let commands = bench.consumeCommands()
        #expect(commands.count == 2)
        #expect(commands.contains { if case .setDisplayPreference(_, view.display) = $0 { true } else { false } })
        #expect(commands.contains { if case .setLayerPreference(_, .height(720)) = $0 { true } else { false } })
        let reported = bench.consumeEvents(bob).compactMap { event -> SubscriptionInfo? in
            if case .subscriptionUpdated(let info) = event { info } else { nil }
        }
        #expect(reported.map(\.display) == [view.display])
        // What is not named goes back.
        try bench.perform(.setView(track: sid, TrackView()), bob)
        let info = try #require(bench.room.subscriptions(of: bob).first { $0.track == sid })
        #expect(info.display == DisplayPreference() && info.preference == .best)
        #expect(bench.consumeCommands().count == 2)
        #expect(throws: RoomError.self) { try bench.perform(.setView(track: "TR_none", view), bob) }
    }

    @Test("A preference from before the section was agreed comes with it")
    func earlyPreference() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob")
        let ada = try bench.join("ada")
        try bench.offer(ada, [.video("1")])
        var view = TrackView()
        view.display.isHidden = true
        try bench.perform(.setView(track: bench.trackSID(ada, .video), view), bob)
        #expect(!bench.consumeCommands().contains { if case .setDisplayPreference = $0 { true } else { false } })
        try bench.answerOffers(bob)
        #expect(
            bench.consumeCommands().contains {
                if case .setDisplayPreference(_, view.display) = $0 { true } else { false }
            })
    }

    // MARK: - Publishers

    @Test("H10: the publisher, and nobody else, is notified of the demand for layers, by their names")
    func wantedLayers() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob")
        let ada = try bench.join("ada")
        try bench.offer(ada, [.video("1", rids: ["q", "h", "f"]), .video("2")])
        let ids = bench.consumeCommands().compactMap { if case .addTrack(let track) = $0 { track.id } else { nil } }
        let sids = try #require(bench.info(ada)?.tracks.map(\.sid))
        _ = bench.consumeEvents(ada)
        _ = bench.consumeEvents(bob)
        bench.media(.layersWanted(ids[0], [true, false, false]))
        bench.media(.layersWanted(ids[1], [false]))
        bench.media(.layersWanted(TrackID(77), [false]))
        #expect(
            bench.consumeEvents(ada) == [
                .layersWanted(
                    track: sids[0],
                    layers: [
                        WantedLayer(rid: "q", isWanted: true), WantedLayer(rid: "h", isWanted: false),
                        WantedLayer(rid: "f", isWanted: false),
                    ]),
                .layersWanted(track: sids[1], layers: [WantedLayer(rid: nil, isWanted: false)]),
            ])
        #expect(bench.consumeEvents(bob).isEmpty)
        // Layers inside the only stream.
        bench.media(.layersWanted(ids[1], [true, false]))
        #expect(
            bench.consumeEvents(ada) == [
                .layersWanted(
                    track: sids[1],
                    layers: [
                        WantedLayer(rid: nil, spatial: 0, isWanted: true),
                        WantedLayer(rid: nil, spatial: 1, isWanted: false),
                    ])
            ])
    }

    @Test("I7: quality is reported when it changes, and stands in the snapshot of who comes later")
    func quality() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        let sid = try #require(bench.info(ada)?.sid)
        let reported = [ParticipantQuality(participant: sid, quality: 3)]
        try bench.step { (room, turn) throws(RoomError) in room.updateQuality(reported, turn: &turn) }
        #expect(bench.consumeEvents(ada).last == .qualityChanged(reported))
        let bob = try bench.join("bob")
        #expect(try bench.room.snapshot(bob).others.map(\.quality) == [3])
    }

    @Test(
        "A10: hint and priority are set before or after the offer, and announced to everybody; a mute is not undone by it"
    )
    func traits() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob")
        let ada = try bench.join("ada")
        try bench.perform(.announce(.init("1", source: .camera, muted: true, hint: .text)), ada)
        try bench.offer(ada, [.video("1")])
        var traits = TrackTraits()
        traits.hint = .text
        #expect(bench.consumeCommands().contains { if case .setTrackTraits(_, traits) = $0 { true } else { false } })
        _ = bench.consumeEvents(bob)
        try bench.perform(.announce(.init("1", source: .camera, priority: .high)), ada)
        traits.priority = .high
        #expect(bench.consumeCommands().contains { if case .setTrackTraits(_, traits) = $0 { true } else { false } })
        guard case .trackUpdated(let info) = bench.consumeEvents(bob).last else {
            Issue.record("nothing was announced")
            return
        }
        #expect(info.hint == .text && info.priority == .high && info.muted)
    }
}
