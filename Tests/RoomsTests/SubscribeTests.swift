import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Subscribing")
struct SubscribeTests {
    static func subscribed(_ commands: [MediaCommand]) -> [SubscriptionDescription] {
        commands.compactMap { if case .subscribe(let description) = $0 { description } else { nil } }
    }

    /// ada publishes voice and picture, bob receives both on "sub".
    static func pair(policy: RoomPolicy = RoomPolicy()) throws -> (RoomBench, ada: SessionID, bob: SessionID) {
        var bench = RoomBench(policy: policy)
        let bob = try bench.join("bob")
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0"), .video("1")])
        try bench.answerOffers(bob)
        return (bench, ada, bob)
    }

    @Test("A camera that becomes a screen moves to the stream of screens at once, where streams are named after that")
    func streamOfScreens() throws {
        var (bench, ada, bob) = try Self.pair()
        let carol = try bench.join("carol") { $0.streamNames = .publisherAndTrack }
        try bench.answerOffers(carol)
        let sid = try #require(bench.info(ada)).sid
        for (source, video) in [(TrackSource.screen, "\(sid)-screen"), (.camera, sid)] {
            _ = (bench.consumeEvents(bob), bench.consumeEvents(carol))
            try bench.perform(.announce(TrackAnnouncement("1", source: source)), ada)
            let offer = try #require(bench.lastOffer(bob)).sdp
            let streams = offer.split(whereSeparator: \.isNewline).filter { $0.hasPrefix("a=msid:") }
                .compactMap { $0.dropFirst("a=msid:".count).split(separator: " ").first.map(String.init) }
            #expect(streams == [sid, video])
            #expect(bench.lastOffer(carol) == nil)
            let answered = try bench.answerOffers(bob)
            #expect(answered == 1)
        }
    }

    @Test("A new track is offered to everybody once, and flows when the offer is answered")
    func automatic() throws {
        var (bench, ada, bob) = try Self.pair()
        let descriptions = Self.subscribed(bench.commands)
        #expect(descriptions.map(\.kind) == [.audio, .video])
        #expect(descriptions[1].rtxSSRC != nil && descriptions[0].rtxSSRC == nil)
        #expect(Set(descriptions.map(\.cname)) == [try #require(bench.info(ada)).sid], "one clock for both")
        #expect(bench.room.subscriptions(of: bob).allSatisfy { $0.state == .active && $0.connection == "sub" })
        let sid = bench.trackSID(ada, .video)
        #expect(try #require(bench.lastOffer(bob)).tracks.values.contains(sid))
        #expect(try bench.answerOffers(bob) == 0)
    }

    @Test(
        "A publisher learns once that its track is subscribed: when packets have come and a receiver has agreed, muted or not"
    )
    func publisherLearnsOfSubscriber() throws {
        for isMuted in [false, true] {
            var bench = RoomBench()
            let bob = try bench.join("bob"), carl = try bench.join("carl"), ada = try bench.join("ada")
            try bench.offer(ada, [.audio("0"), .video("1")])
            let tracks = bench.room.state.routing.tracks(of: ada)
            let sids = [bench.trackSID(ada, .audio), bench.trackSID(ada, .video)]
            func learned() -> [RoomEvent] {
                bench.consumeEvents(ada).filter { if case .trackSubscribed = $0 { true } else { false } }
            }
            bench.media(.trackStarted(tracks[0], .opus))
            if isMuted { try bench.perform(.setMuted(track: sids[0], true), ada) }
            #expect(learned().isEmpty, "both were offered it, and have not answered")
            try bench.answerOffers(bob)
            #expect(learned() == [.trackSubscribed(track: sids[0])], "of the video nothing has come")
            bench.media(.trackStarted(tracks[1], .vp8))
            #expect(learned() == [.trackSubscribed(track: sids[1])])
            try bench.answerOffers(carl)
            bench.media(.subscriptionStarted(try #require(bench.room.state.routing.subscriptions(of: carl).first)))
            #expect(learned().isEmpty)
        }
    }

    @Test("A late joiner is offered what is there, after its snapshot")
    func lateJoiner() throws {
        var (bench, ada, _) = try Self.pair()
        let eve = try bench.join("eve")
        let events = bench.consumeEvents(eve)
        guard case .offer("sub", _, let tracks) = events.first else {
            Issue.record("\(events)")
            return
        }
        #expect(Set(tracks.values) == [bench.trackSID(ada, .audio), bench.trackSID(ada, .video)])
        #expect(try bench.room.snapshot(eve).subscriptions.count == 2)
    }

    @Test("A3: stereo, bitrate and packet time of the publisher stand in every subscriber's description")
    func voiceParameters() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob")
        let ada = try bench.join("ada")
        let fmtp = "stereo=1;sprop-stereo=1;maxaveragebitrate=128000;useinbandfec=1"
        var section = ClientDescriptions.Section.audio("0", fmtp: fmtp)
        section.extra = ["a=ptime:10"]
        try bench.offer(ada, [section])
        let sdp = try #require(bench.lastOffer(bob)).sdp
        #expect(sdp.contains("stereo=1") && sdp.contains("sprop-stereo=1") && sdp.contains("maxaveragebitrate=128000"))
        #expect(sdp.contains("a=ptime:10"))
    }

    @Test("A3: a track announced as stereo is so for its publisher and subscribers, also after another offer")
    func announcedStereo() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob")
        let ada = try bench.join("ada")
        var announcement = TrackAnnouncement("a", source: .microphone)
        announcement.kind = .audio
        announcement.details = TrackDetails()
        announcement.details?.isStereo = true
        try bench.perform(.announce(announcement), ada)
        let section = ClientDescriptions.Section.audio("0", track: "a")
        #expect(try bench.offer(ada, [section]).sdp.contains(";stereo=1"))
        #expect(try #require(bench.lastOffer(bob)).sdp.contains("sprop-stereo=1"))
        try bench.answerOffers(bob)
        _ = bench.consumeEvents(bob)
        #expect(try bench.offer(ada, [section, .video("1")]).sdp.contains(";stereo=1"))
        #expect(try #require(bench.lastOffer(bob)).sdp.contains("sprop-stereo=1"))
    }

    @Test("G7: a publisher that announces DTX is asked for it in every answer, and one that announces nothing is not")
    func announcedDTX() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada"), bob = try bench.join("bob")
        var announcement = TrackAnnouncement("a", source: .microphone)
        announcement.kind = .audio
        announcement.details = TrackDetails()
        announcement.details?.usesDTX = true
        try bench.perform(.announce(announcement), ada)
        let section = ClientDescriptions.Section.audio("0", track: "a")
        #expect(try bench.offer(ada, [section]).sdp.contains(";usedtx=1"))
        #expect(try bench.offer(ada, [section, .video("1")]).sdp.contains(";usedtx=1"))
        for _ in 0..<2 { #expect(try !bench.offer(bob, [section]).sdp.contains("usedtx")) }
    }

    @Test("G7: in-band FEC and DTX of the publisher's Opus stand in every subscriber's description")
    func repairParameters() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob")
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0", fmtp: "minptime=10;useinbandfec=1;usedtx=1")])
        let sdp = try #require(bench.lastOffer(bob)).sdp
        let line = try #require(sdp.split(separator: "\r\n").first { $0.hasPrefix("a=fmtp:") })
        #expect(line.contains("useinbandfec=1") && line.contains("usedtx=1") && line.contains("minptime=10"))
    }

    @Test("Offers are serial: what changes while one is open goes into the next")
    func coalesced() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob")
        let ada = try bench.join("ada")
        for count in 1...5 { try bench.offer(ada, (0..<count).map { .video("\($0)") }) }
        let offers = (bench.events[bob] ?? []).count { if case .offer = $0.event { true } else { false } }
        #expect(offers == 1)
        #expect(try bench.answerOffers(bob) == 2)
        #expect(Self.subscribed(bench.commands).count == 5)
        #expect(bench.room.subscriptions(of: bob).allSatisfy { $0.state == .active })
    }

    @Test("D3: while the server's offer is open the client's is refused with glare, and comes through after the answer")
    func glare() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob") { $0.receivingConnection = "main" }
        try bench.offer(bob, "main", [.audio("0")])
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0")])
        #expect(bench.lastOffer(bob)?.connection == "main")
        do throws(RoomError) {
            try bench.offer(bob, "main", [.audio("0"), .video("9")])
            Issue.record("accepted")
        } catch {
            #expect(error.code == .glare)
        }
        try bench.answerOffers(bob)
        #expect(Self.subscribed(bench.commands).count == 1)
        #expect(bench.info(bob)?.tracks.count == 1, "the voice that bob published goes on")
        let voice = bench.trackSID(ada, .audio)
        let mid = try #require(bench.lastOffer(bob)?.tracks.first { $0.value == voice }?.key)
        // The client's next offer has what the server's added.
        try bench.offer(bob, "main", [.audio("0"), .audio(mid, "recvonly"), .video("9")], ufrag: "ansr")
        #expect(bench.info(bob)?.tracks.count == 2 && bench.room.subscriptions(of: bob).count == 1)
    }

    @Test("One connection for both: receiving sections of the client's own offer are filled")
    func singleConnection() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0"), .video("1")])
        let bob = try bench.join("bob") { $0.receivingConnection = "main" }
        #expect(bench.lastOffer(bob) == nil, "the client makes its connection itself")
        let answer = try bench.offer(
            bob, "main",
            [.audio("0", "sendonly"), .audio("1", "recvonly"), .video("2", "recvonly"), .video("3", "recvonly")])
        #expect(answer.tracks["1"] == bench.trackSID(ada, .audio) && answer.tracks["2"] == bench.trackSID(ada, .video))
        #expect(answer.tracks["3"] == nil)
        #expect(Self.subscribed(bench.commands).map(\.mid) == ["1", "2"])
        #expect(bench.lastOffer(bob) == nil)
    }

    @Test("D3: thirty renegotiations; untouched sections keep mid and SSRC, ended ones are used again")
    func renegotiations() throws {
        var (bench, ada, bob) = try Self.pair()
        let voice = try #require(Self.subscribed(bench.commands).first)
        _ = bench.consumeCommands()
        for round in 0..<30 {
            let direction = round.isMultiple(of: 2) ? "inactive" : "sendonly"
            try bench.offer(ada, [.audio("0"), .video("1", direction)])
            try bench.answerOffers(bob)
        }
        let touched = bench.commands.filter {
            switch $0 {
            case .unsubscribe(voice.id), .updateSubscription, .removePeer, .restartICE, .addPeer: true
            case .subscribe(let description): description.ssrc == voice.ssrc
            default: false
            }
        }
        #expect(touched.isEmpty)
        #expect(bench.room.subscriptions(of: bob).count == 2)
        let sections = try #require(bench.lastOffer(bob)).sdp.split(separator: "\r\nm=").count - 1
        // A section is never used again for a track that it showed; each of the 15 pictures is a new track.
        #expect(sections == 2, "\(sections) sections")
    }

    @Test("A8: a subscriber without the publisher's codec is notified, and nothing black is forwarded")
    func noCommonCodec() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob")
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0"), .h264("1", profile: "640c1f")])
        _ = bench.consumeEvents(ada)
        try bench.answerOffers(bob, without: ["H264"])
        let states = bench.room.subscriptions(of: bob).map(\.state)
        #expect(states == [.active, .noCommonCodec])
        #expect(
            bench.consumeEvents(bob).contains {
                if case .subscriptionUpdated(let info) = $0 { info.state == .noCommonCodec } else { false }
            })
        #expect(Self.subscribed(bench.commands).count == 1)
        #expect(bench.log.contains { if case .noCommonCodec = $0 { true } else { false } })
        #expect(try bench.answerOffers(bob) == 0, "it is not offered over and over")
    }

    @Test("C7: an audio-only member is never offered video, and may upgrade")
    func audioOnly() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob") { $0.audioOnly = true }
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0"), .video("1")])
        let offered = try #require(bench.lastOffer(bob)).sdp
        #expect(!offered.contains("m=video"))
        try bench.answerOffers(bob)
        try bench.perform(.setAudioOnly(false), bob)
        try bench.answerOffers(bob)
        #expect(bench.room.subscriptions(of: bob).map(\.kind) == [.audio, .video])
        try bench.perform(.setAudioOnly(true), bob)
        #expect(bench.room.subscriptions(of: bob).map(\.kind) == [.audio])
    }

    @Test("C10: one message pauses all video, one resumes it; tracks paused by hand stay paused")
    func pauseAllVideo() throws {
        var (bench, ada, bob) = try Self.pair()
        try bench.offer(ada, [.audio("0"), .video("1"), .video("2")])
        try bench.answerOffers(bob)
        let first = try #require(bench.info(ada)?.tracks[1].sid)
        try bench.perform(.setPaused(track: first, true), bob)
        _ = bench.consumeCommands()
        try bench.perform(.pauseAllVideo(true), bob)
        try bench.perform(.pauseAllVideo(true), bob)
        #expect(bench.consumeCommands().count == 1)
        #expect(bench.room.subscriptions(of: bob).filter { $0.kind == .video }.allSatisfy { $0.paused })
        try bench.perform(.pauseAllVideo(false), bob)
        #expect(bench.consumeCommands().count == 1)
        try bench.perform(.setPaused(track: first, false), bob)
        #expect(bench.room.subscriptions(of: bob).allSatisfy { !$0.paused })
    }

    @Test("By hand: subscribe, layer preference, keyframe, unsubscribe, and again on a section that never showed it")
    func byHand() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob") { $0.autoSubscribe = false }
        let ada = try bench.join("ada")
        try bench.offer(ada, [.video("1", rids: ["q", "h"])])
        let sid = bench.trackSID(ada, .video)
        #expect(bench.lastOffer(bob) == nil)
        #expect(throws: RoomError.self) { try bench.perform(.setPreference(track: sid, .height(180)), bob) }
        try bench.perform(.subscribe(track: sid), bob)
        try bench.perform(.setPreference(track: sid, .height(180)), bob)
        try bench.answerOffers(bob)
        #expect(Self.subscribed(bench.commands).first?.preference == .height(180))
        try bench.perform(.setPreference(track: sid, .rid("h")), bob)
        #expect(bench.commands.contains { if case .setLayerPreference(_, .rid("h")) = $0 { true } else { false } })
        try bench.perform(.requestKeyframe(track: sid), bob)
        #expect(bench.commands.contains { if case .requestKeyframe = $0 { true } else { false } })
        let mid = bench.room.subscriptions(of: bob).first?.mid
        try bench.perform(.unsubscribe(track: sid), bob)
        try bench.answerOffers(bob)
        try bench.perform(.subscribe(track: sid), bob)
        try bench.answerOffers(bob)
        #expect(bench.room.subscriptions(of: bob).first?.mid != mid)
        #expect(throws: RoomError.self) { try bench.perform(.subscribe(track: sid), ada) }
        #expect(throws: RoomError.self) { try bench.perform(.subscribe(track: "TR_none"), bob) }
    }

    @Test(
        "What a member says about tracks in advance counts from its subscription on, of no more tracks than it may receive"
    )
    func viewInAdvance() throws {
        var limits = RoomLimits()
        limits.subscriptionsPerParticipant = 2
        var bench = RoomBench(limits: limits)
        let bob = try bench.join("bob") { $0.autoSubscribe = false }
        let ada = try bench.join("ada")
        try bench.offer(ada, [.video("0"), .video("1"), .video("2")])
        let sids = try #require(bench.info(ada)).tracks.map(\.sid)
        var view = TrackView()
        view.preference = .height(180)
        view.display.priority = .high
        view.isPaused = true
        for sid in sids { try bench.perform(.setViewInAdvance(track: sid, view), bob) }
        #expect(throws: RoomError.self) { try bench.perform(.setViewInAdvance(track: "TR_none", view), bob) }
        #expect(bench.room.state.roster[bob]?.views.count == 2)
        try bench.perform(.subscribe(track: sids[0]), bob)
        try bench.answerOffers(bob)
        let first = try #require(Self.subscribed(bench.commands).first)
        #expect(first.preference == .height(180) && first.paused)
        #expect(bench.consumeCommands().contains(.setDisplayPreference(first.id, view.display)))
        // It is received now, so this is no advance.
        try bench.perform(.setViewInAdvance(track: sids[0], TrackView()), bob)
        #expect(bench.consumeCommands().contains(.setSubscriptionPaused(first.id, false)))
        #expect(bench.room.state.roster[bob]?.views.count == 1)
    }

    @Test("A track that is unsubscribed and subscribed 300 times arrives each time, and another's track after it")
    func toggled() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob") { $0.autoSubscribe = false }
        let ada = try bench.join("ada")
        let eve = try bench.join("eve")
        try bench.offer(ada, [.video("1")])
        let sid = bench.trackSID(ada, .video)
        try bench.perform(.subscribe(track: sid), bob)
        try bench.answerOffers(bob)
        var longest = 0
        for round in 0..<300 {
            try bench.perform(.unsubscribe(track: sid), bob)
            try bench.perform(.subscribe(track: sid), bob)
            try bench.answerOffers(bob)
            #expect(bench.room.subscriptions(of: bob).map(\.state) == [.active], "round \(round)")
            let sections = try #require(bench.lastOffer(bob)).sdp.split(separator: "\r\nm=").count - 1
            longest = max(longest, sections)
            _ = bench.consumeEvents(bob)
        }
        #expect(longest < 70)
        try bench.offer(eve, [.audio("0")])
        try bench.perform(.subscribe(track: bench.trackSID(eve, .audio)), bob)
        let last = try #require(bench.lastOffer(bob)).sdp
        #expect(last.contains("a=group:BUNDLE 0 "), "the section that the bundle's transport stands in is still there")
        try bench.answerOffers(bob)
        #expect(bench.room.subscriptions(of: bob).map(\.state) == [.active, .active])
    }

    @Test("Changed voice parameters of a publisher are offered anew to its subscribers")
    func changedFormats() throws {
        var (bench, ada, bob) = try Self.pair()
        try bench.offer(ada, [.audio("0", fmtp: "stereo=1"), .video("1")])
        #expect(try bench.answerOffers(bob) == 1)
        #expect(try #require(bench.lastOffer(bob)).sdp.contains("stereo=1"))
        #expect(bench.room.subscriptions(of: bob).count == 2)
    }
}
