import AccessTokens
import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Publishing")
struct PublishTests {
    @Test("A client's offer becomes tracks with the layers, extensions and feedback that the media plane needs")
    func offer() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        _ = bench.consumeCommands()
        let answer = try bench.offer(ada, [.audio("0"), .video("1", rids: ["q", "h", "f"])])
        guard case .addPeer(let peer) = bench.commands.first else {
            Issue.record("\(bench.commands)")
            return
        }
        #expect(peer.remote?.ice.ufrag == "clnt" && peer.remote?.localRole == .server && peer.profile == .full)
        #expect(answer.iceTag == peer.localICE.ufrag && answer.sdp.contains("a=ice-ufrag:\(answer.iceTag)"))
        let tracks = bench.commands.compactMap { if case .addTrack(let track) = $0 { track } else { nil } }
        #expect(tracks.map(\.source) == [.microphone, .camera] && tracks.map(\.mid) == ["0", "1"])
        #expect(tracks[1].encodings.map(\.rid) == ["q", "h", "f"])
        #expect(tracks[1].formats.first?.codec == .vp8 && tracks[1].formats.first?.rtxPayloadType == 97)
        #expect(tracks[1].extensions[.rid] == 10 && tracks[1].extensions[.videoOrientation] == 13)
        #expect(tracks[1].feedback.contains([.nack, .pli, .transportCC]))
        #expect(Set(answer.tracks.keys) == ["0", "1"])
        #expect(bench.info(ada)?.tracks[1].simulcast == true)
        #expect(bench.info(ada)?.tracks[1].clientTrackID == "video-1")
        let shown = try #require(bench.info(ada)).tracks
        #expect(shown.allSatisfy { $0.codec == nil }, "nothing has come yet")
        #expect(shown.map(\.agreedCodec) == [.opus, .vp8])
    }

    @Test("Announcements name source, name, size and mute, before the offer or after it, together or one after another")
    func announcements() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        try bench.perform(
            .announce(.init("v", source: .camera, name: "slides", muted: true, width: 1920, height: 1080)), ada)
        try bench.perform(.announce(.init("v", source: .screen, height: 1200)), ada)
        try bench.offer(ada, [.video("0", track: "v"), .video("1", track: "w")])
        let tracks = try #require(bench.info(ada)?.tracks)
        #expect(tracks[0].source == .screen && tracks[0].name == "slides" && tracks[0].muted && tracks[0].width == 1920)
        #expect(tracks[0].height == 1200, "what is announced again")
        #expect(tracks[1].source == .camera)
        #expect(bench.commands.contains { if case .setTrackMuted(_, true) = $0 { true } else { false } })
        try bench.perform(
            .announce(.init("1", source: .screen, muted: false)), ada)
        #expect(bench.info(ada)?.tracks[1].source == .screen)
        #expect(bench.commands.contains { if case .updateTrack(let t) = $0 { t.source == .screen } else { false } })
    }

    @Test("A track published again before the offer that ends its former publication is another one, as announced")
    func publishedAgain() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        var announcement = TrackAnnouncement("v", source: .screen, name: "slides")
        announcement.kind = .video
        let first = try bench.announce(announcement, ada).sid
        try bench.offer(ada, [.video("0", track: "v")])
        let second = try bench.announce(announcement, ada).sid
        #expect(second != first)
        try bench.offer(ada, [.video("0", track: "v")])
        #expect(bench.info(ada)?.tracks.map(\.sid) == [first], "an offer that was on its way")
        try bench.offer(ada, [.video("0", "inactive"), .video("1", track: "v")])
        let tracks = bench.info(ada)?.tracks ?? []
        #expect(tracks.map(\.sid) == [second] && tracks.first?.source == .screen && tracks.first?.name == "slides")
        announcement.backupOf = second
        #expect(try bench.announce(announcement, ada).sid == second, "the sid names the one that goes on")
        try bench.offer(ada, [.video("0", "inactive"), .video("1", track: "v"), .video("2", track: "w")])
        let guessed = bench.info(ada)?.tracks.last?.sid
        var late = TrackAnnouncement("w", source: .screen)
        late.kind = .video
        #expect(try bench.announce(late, ada).sid == guessed, "offered before it was announced")
        #expect(bench.info(ada)?.tracks.map(\.source) == [.screen, .screen])
    }

    @Test("C13: the roster shows audio, video and screen; removing the screen leaves the camera")
    func resources() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        try bench.perform(
            .announce(.init("s", source: .screen, muted: false)), ada)
        try bench.offer(ada, [.audio("0"), .video("1"), .video("2", track: "s")])
        var flags = try #require(bench.info(ada)?.resources)
        #expect(flags.audio && flags.video && flags.screen)
        try bench.offer(ada, [.audio("0"), .video("1"), .video("2", "inactive")])
        flags = try #require(bench.info(ada)?.resources)
        #expect(flags.audio && flags.video && !flags.screen)
        #expect(bench.commands.contains { if case .removeTrack = $0 { true } else { false } })
    }

    @Test("Only what the token permits is published; a screen-only token needs no announcement")
    func permissions() throws {
        var bench = RoomBench()
        let caster = try bench.join("caster", isSignalled: false) {
            $0.profile = .publishOnly
            $0.claims.video.canPublishSources = [.screenShare, .screenShareAudio]
        }
        try bench.offer(caster, "main", [.audio("0"), .video("1")])
        #expect(bench.info(caster)?.tracks.map(\.source) == [.screenAudio, .screen])
        let mute = try bench.join("mute") { $0.claims.video.canPublish = false }
        let answer = try bench.offer(mute, [.audio("0")])
        #expect(answer.tracks.isEmpty && answer.sdp.contains("a=inactive"))
        #expect(throws: RoomError.self) {
            try bench.perform(
                .announce(.init("v", source: .camera, muted: false)), mute)
        }
    }

    @Test("C6: a mute is announced to all and forwarding stops at once; moderators may mute, nobody may unmute others")
    func mute() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob")
        let ada = try bench.join("ada")
        let boss = try bench.join("boss") { $0.claims.video.roomAdmin = true }
        try bench.offer(ada, [.audio("0")])
        let sid = bench.trackSID(ada, .audio)
        _ = bench.consumeEvents(bob)
        _ = bench.consumeCommands()
        try bench.perform(.setMuted(track: sid, true), ada)
        try bench.perform(.setMuted(track: sid, true), ada)
        #expect(bench.commands.count == 1)
        #expect(bench.consumeEvents(bob).contains { if case .trackUpdated(let t) = $0 { t.muted } else { false } })
        try bench.perform(.setMuted(track: sid, false), ada)
        #expect(throws: RoomError.self) { try bench.perform(.setMuted(track: sid, true), bob) }
        _ = bench.consumeEvents(ada)
        try bench.perform(.setMuted(track: sid, true), boss)
        let reported = bench.consumeEvents(ada)
        let other = reported.firstIndex(of: .trackMutedByOther(track: sid, by: bench.info(boss)?.sid))
        let updated = reported.firstIndex { if case .trackUpdated(let track) = $0 { track.muted } else { false } }
        #expect(try #require(other) < #require(updated), "who did it comes first")
        #expect(throws: RoomError.self) { try bench.perform(.setMuted(track: sid, false), boss) }
        #expect(bench.info(ada)?.resources.audio == false)
    }

    @Test("A9: a room that prefers H.264 gets it from a client that lists VP8 first")
    func codecPolicy() throws {
        var policy = RoomPolicy()
        policy.videoCodecs = [.h264, .vp8]
        var bench = RoomBench(policy: policy)
        let ada = try bench.join("ada")
        try bench.offer(
            ada,
            [
                .video(
                    "0",
                    codecs: [
                        (96, "VP8/90000", nil), (97, "rtx/90000", "apt=96"),
                        (102, "H264/90000", "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"),
                        (103, "rtx/90000", "apt=102"),
                    ])
            ])
        let track = bench.commands.compactMap { if case .addTrack(let track) = $0 { track } else { nil } }.first
        #expect(track?.formats.map(\.codec) == [.h264])
    }

    @Test("The media plane gets the H.264 parameter sets that a publisher's offer has")
    func parameterSets() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        let fmtp = "packetization-mode=1;profile-level-id=42e01f;sprop-parameter-sets=Z0LAFtoCgL8=,aM48gA=="
        try bench.offer(ada, [.video("0", codecs: [(102, "H264/90000", fmtp)])])
        let track = bench.commands.compactMap { if case .addTrack(let track) = $0 { track } else { nil } }.first
        #expect(
            track?.formats.first?.parameterSets == [
                [0x67, 0x42, 0xc0, 0x16, 0xda, 0x02, 0x80, 0xbf], [0x68, 0xce, 0x3c, 0x80],
            ])
    }

    @Test("A publisher that announces a track without RED sends none, also in a room that prefers it")
    func withoutRED() throws {
        var policy = RoomPolicy()
        policy.audioCodecs = [.red, .opus]
        for disablesRED in [false, true] {
            var bench = RoomBench(policy: policy)
            let ada = try bench.join("ada")
            var announcement = TrackAnnouncement("a", source: .microphone)
            announcement.kind = .audio
            announcement.details = TrackDetails()
            announcement.details?.disablesRED = disablesRED
            try bench.perform(.announce(announcement), ada)
            var section = ClientDescriptions.Section.audio("0", track: "a")
            section.codecs.append((payloadType: 63, map: "red/48000/2", fmtp: "111/111"))
            let first = try bench.offer(ada, [section]).sdp
            let second = try bench.offer(ada, [section]).sdp
            #expect(first.contains("red/48000") == !disablesRED && second.contains("red/48000") == !disablesRED)
            let codec: Codec = disablesRED ? .opus : .red
            #expect(bench.info(ada)?.tracks.first?.agreedCodec == codec)
        }
    }

    @Test("B12: a publisher without any allowed codec is refused before media starts")
    func noCodec() throws {
        var policy = RoomPolicy()
        policy.videoCodecs = [.vp8]
        var bench = RoomBench(policy: policy)
        let ada = try bench.join("ada")
        do throws(RoomError) {
            try bench.offer(ada, [.h264("0")])
            Issue.record("accepted")
        } catch {
            #expect(error.code == .noCommonCodec)
        }
        #expect(bench.room.connections(of: ada).isEmpty && bench.room.counts.connections == 0)
    }

    @Test("An audio-only room refuses video and takes the voice")
    func audioOnlyRoom() throws {
        var policy = RoomPolicy()
        policy.audioOnly = true
        var bench = RoomBench(policy: policy)
        let ada = try bench.join("ada")
        let answer = try bench.offer(ada, [.audio("0"), .video("1")])
        #expect(Set(answer.tracks.keys) == ["0"] && answer.sdp.contains("m=video 0 "))
    }

    @Test("Limits: publishers of a room, tracks and connections of a participant")
    func limits() throws {
        var policy = RoomPolicy()
        policy.maxPublishers = 1
        var limits = RoomLimits()
        limits.tracksPerParticipant = 2
        limits.connectionsPerParticipant = 2
        var bench = RoomBench(policy: policy, limits: limits)
        let ada = try bench.join("ada")
        let bob = try bench.join("bob")
        let answer = try bench.offer(ada, [.audio("0"), .video("1"), .video("2")])
        #expect(answer.tracks.count == 2)
        let announcement = SessionRequest.announce(TrackAnnouncement("0", source: .microphone))
        #expect(throws: RoomError(.limitExceeded, "publisher limit of the room reached"), "before its offer") {
            try bench.perform(announcement, bob)
        }
        #expect(throws: RoomError.self) { try bench.offer(bob, [.audio("0")]) }
        try bench.offer(ada, "second", [.audio("0", "inactive")])
        #expect(throws: RoomError.self) { try bench.offer(ada, "third", [.audio("0")]) }
    }

    @Test("Of two that announce at once one may publish; a client that must have an answer gets one without its track")
    func publisherLimitBetweenAnnouncementAndOffer() throws {
        var policy = RoomPolicy()
        policy.maxPublishers = 1
        var bench = RoomBench(policy: policy)
        let ada = try bench.join("ada") { $0.recovery = .byJoining }
        let bob = try bench.join("bob") { $0.recovery = .byJoining }
        var announcement = TrackAnnouncement("v", source: .camera)
        announcement.kind = .video
        let first = try bench.announce(announcement, ada).sid
        let second = try bench.announce(announcement, bob).sid
        #expect(try bench.offer(ada, [.video("0", track: "v")]).tracks == ["0": first])
        _ = bench.consumeEvents(bob)
        let answer = try bench.offer(bob, [.video("0", track: "v")])
        #expect(answer.tracks.isEmpty && answer.sdp.contains("a=inactive"))
        var refusal = RoomEvent.publicationRefused(
            connection: "pub", mid: "0", track: "v", code: .limitExceeded, announced: second)
        var events = bench.consumeEvents(bob)
        #expect(events.filter { if case .publicationRefused = $0 { true } else { false } } == [refusal])
        #expect(bench.room.state.roster[bob]?.announcements.has(second) == false)
        // An announcement that came with the join may have been refused, and its offer comes all the same.
        try bench.offer(bob, [.video("0", track: "v")])
        refusal = .publicationRefused(connection: "pub", mid: "0", track: "v", code: .limitExceeded)
        events = bench.consumeEvents(bob)
        #expect(events.filter { if case .publicationRefused = $0 { true } else { false } } == [refusal])
    }

    @Test("B1, B3: a publish-only peer is marked as such for the worker and is sent nothing")
    func publishOnlyProfile() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0"), .video("1")])
        let caster = try bench.join("caster") { $0.profile = .publishOnly }
        _ = bench.consumeCommands()
        let answer = try bench.offer(caster, [.audio("0", "sendrecv"), .video("1", "sendrecv")])
        #expect(!answer.sdp.contains("a=sendrecv") && !answer.sdp.contains("a=sendonly"))
        let profiles = bench.commands.compactMap { if case .addPeer(let peer) = $0 { peer.profile } else { nil } }
        #expect(profiles.first == .publishOnly, "then ada is offered what the caster publishes")
        #expect(bench.room.subscriptions(of: caster).isEmpty)
    }

    @Test("Bad descriptions are refused with a code and change nothing")
    func badDescriptions() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        let before = bench.commands
        for (sdp, code) in [
            ("", RoomError.Code.invalidDescription), ("hello", .invalidDescription),
            (String(repeating: "a", count: 300_000), .tooLarge),
            (
                ClientDescriptions().offer([.audio("0")]).replacing(
                    "a=fingerprint:sha-256", with: "a=fingerprint:sha-1"),
                .unsupportedDescription
            ),
        ] {
            do throws(RoomError) {
                try bench.step { (room, turn) throws(RoomError) in
                    _ = try room.offer(ada, connection: "pub", sdp: sdp, turn: &turn)
                }
                Issue.record("accepted")
            } catch {
                #expect(error.code == code)
            }
        }
        #expect(bench.commands == before && bench.room.connections(of: ada).isEmpty)
    }
}

extension RoomBench {
    fileprivate mutating func announce(
        _ announcement: TrackAnnouncement, _ session: SessionID
    ) throws(RoomError) -> TrackInfo {
        try step { (room, turn) throws(RoomError) in
            try room.announce(announcement, session: session, turn: &turn)
        }
    }
}
