import AccessTokens
import MediaControl
import Primitives
import SDP
import TestSupport
import Testing

@testable import Rooms

@Suite("Policy: what single rules do")
struct PolicyRuleTests {
    @Test("Duplicates allowed: both sessions of an identity are here; removing it removes both, removing a sid one")
    func allowedDuplicates() throws {
        var (bench, ada, bob) = try PolicyTests.meeting(PolicyTests.policy { $0.duplicateIdentity = .allow })
        let second = try bench.join("ada")
        let third = try bench.join("ada")
        #expect(bench.room.sessions == [ada, bob, second, third] && bench.ended.isEmpty)
        let sid = try #require(bench.info(second)?.sid)
        try bench.step { (room, turn) throws(RoomError) in try room.removeParticipant(sid, turn: &turn) }
        #expect(bench.room.sessions == [ada, bob, third])
        try bench.step { (room, turn) throws(RoomError) in try room.removeParticipant("ada", turn: &turn) }
        #expect(bench.room.sessions == [bob])
        #expect(bench.room.find("ada") == nil)
    }

    @Test("Sources of moderators: others' tracks of these sources end, and a moderator publishes them")
    func moderatorSources() throws {
        var (bench, ada, _) = try PolicyTests.meeting()
        try bench.setPolicy(PolicyTests.policy { $0.moderatorSources = [.camera] })
        #expect(bench.info(ada)?.tracks.map(\.source) == [.microphone])
        let host = try bench.join("host") { $0.claims.video.roomAdmin = true }
        try bench.offer(host, [.audio("0"), .video("1")])
        #expect(bench.info(host)?.tracks.map(\.source) == [.microphone, .camera])
    }

    @Test("Codec profiles: a section of a profile that is not permitted is refused, one that is goes through")
    func codecProfiles() throws {
        func accepts(_ section: ClientDescriptions.Section, _ change: (inout RoomPolicy) -> Void) throws -> Bool {
            var bench = RoomBench(policy: PolicyTests.policy(change))
            let ada = try bench.join("ada")
            try bench.offer(ada, [.audio("0"), section])
            return bench.info(ada)?.tracks.contains { $0.kind == .video } == true
        }
        func vp9(_ profile: Int) -> ClientDescriptions.Section {
            .video("1", codecs: [(98, "VP9/90000", "profile-id=\(profile)")])
        }
        let av1 = ClientDescriptions.Section.video("1", codecs: [(45, "AV1/90000", "profile=1")])
        #expect(try accepts(.h264("1", profile: "640c1f")) { _ in })
        #expect(try accepts(.h264("1", profile: "640c1f")) { $0.h264Profiles = [.constrainedHigh] })
        #expect(try !accepts(.h264("1", profile: "640c1f")) { $0.h264Profiles = [.constrainedBaseline] })
        #expect(try accepts(vp9(2)) { _ in })
        #expect(try !accepts(vp9(2)) { $0.vp9Profiles = [0] })
        #expect(try accepts(vp9(0)) { $0.vp9Profiles = [0] })
        #expect(try accepts(av1) { _ in })
        #expect(try !accepts(av1) { $0.av1Profiles = [0] })
    }

    @Test("Microphones: the worker learns how many are forwarded and whose always are, as the policy changes")
    func microphones() throws {
        var (bench, ada, _) = try PolicyTests.meeting()
        let track = try #require(bench.room.state.routing.tracks(of: ada).first)
        try bench.setPolicy(
            PolicyTests.policy {
                ($0.audio.maximumMicrophones, $0.audio.microphoneThreshold) = (3, -45)
                ($0.audio.voiceThreshold, $0.audio.maximumSpeakers) = (-40, 2)
                $0.alwaysHeard = ["ada"]
            })
        var audio = RoomAudio()
        (audio.maximumMicrophones, audio.microphoneThreshold) = (3, -45)
        (audio.voiceThreshold, audio.maximumSpeakers) = (-40, 2)
        var commands = bench.consumeCommands()
        #expect(commands.contains(.setRoomAudio(RoomID(9), audio)))
        #expect(commands.contains(.setTrackAlwaysForwarded(track, true)))
        try bench.setPolicy(RoomPolicy())
        commands = bench.consumeCommands()
        #expect(commands.contains(.setRoomAudio(RoomID(9), RoomAudio())))
        #expect(commands.contains(.setTrackAlwaysForwarded(track, false)))
    }

    @Test("The room's subscribe rules hold for everybody without rules of their own, from the edit on")
    func subscribeRules() throws {
        var (bench, ada, bob) = try PolicyTests.meeting()
        try bench.setPolicy(PolicyTests.policy { $0.subscribeRules = [SubscribeRule(includes: true, .kind(.audio))] })
        #expect(bench.room.subscriptions(of: bob).map(\.kind) == [.audio])
        try bench.step { (room, turn) throws(RoomError) in
            try room.setSubscribeRules([SubscribeRule(includes: true, .all)], of: "bob", turn: &turn)
        }
        #expect(bench.room.subscriptions(of: bob).count == 2)
        try bench.setPolicy(PolicyTests.policy { $0.subscribeRules = [] })
        #expect(bench.room.subscriptions(of: ada).isEmpty && bench.room.subscriptions(of: bob).count == 2)
        try bench.setPolicy(RoomPolicy())
        #expect(bench.room.subscriptions(of: ada).map(\.kind) == [.audio])
    }

    @Test("Encryption demanded: who does not encrypt is refused; members stay unless the edit says otherwise")
    func encryption() throws {
        var (bench, ada, bob) = try PolicyTests.meeting()
        let policy = PolicyTests.policy { $0.requiresEncryption = true }
        try bench.setPolicy(policy)
        #expect(bench.room.sessions == [ada, bob])
        #expect(throws: RoomError.self) { try bench.join("carol") }
        #expect(throws: RoomError.self) { try bench.join("encoder", isSignalled: false) { $0.profile = .publishOnly } }
        let dora = try bench.join("dora") { $0.encrypts = true }
        #expect(bench.info(dora)?.encrypts == true)
        try bench.setPolicy(RoomPolicy())
        try bench.setPolicy(policy, removesExcess: true)
        #expect(bench.room.sessions == [dora] && bench.ended == [ada: .policyChanged, bob: .policyChanged])
    }

    @Test("Playout delay: the worker is sent its bounds for every video, and when they hold no longer")
    func playoutDelay() throws {
        var (bench, ada, bob) = try PolicyTests.meeting()
        func reported(_ bench: inout RoomBench) -> [PlayoutDelayBounds?] {
            bench.consumeCommands().compactMap { command -> PlayoutDelayBounds?? in
                switch command {
                case .updateSubscription(let it), .subscribe(let it): it.kind == .video ? .some(it.playoutDelay) : nil
                default: nil
                }
            }
        }
        try bench.setPolicy(PolicyTests.policy { $0.minPlayoutDelay = .milliseconds(200) })
        let bounds = PlayoutDelayBounds(minimum: .milliseconds(200), maximum: .seconds(10))
        #expect(reported(&bench) == [bounds])
        try bench.offer(ada, [.audio("0"), .video("1"), .video("2")])
        try bench.answerOffers(bob)
        #expect(reported(&bench) == [bounds])
        try bench.setPolicy(RoomPolicy())
        #expect(reported(&bench) == [.unbounded, .unbounded], "a receiver keeps to what it was sent last")
        let crossed = PolicyTests.policy {
            $0.minPlayoutDelay = .milliseconds(500)
            $0.maxPlayoutDelay = .milliseconds(100)
        }
        #expect(crossed.playoutDelay == PlayoutDelayBounds(minimum: .milliseconds(500), maximum: .milliseconds(500)))
        let most = PolicyTests.policy { $0.maxPlayoutDelay = .milliseconds(400) }
        #expect(most.playoutDelay == PlayoutDelayBounds(minimum: .zero, maximum: .milliseconds(400)))
    }

    @Test("I8: a moderator asks for a track to be unmuted; its publisher is notified, and nobody else may ask")
    func requestUnmute() throws {
        var (bench, ada, bob) = try PolicyTests.meeting()
        let host = try bench.join("host") { $0.claims.video.roomAdmin = true }
        let track = bench.trackSID(ada, .audio)
        try bench.perform(.requestUnmute(track: track), host)
        let request = RoomEvent.unmuteRequested(track: track, by: bench.info(host)?.sid)
        #expect(!bench.consumeEvents(ada).contains(request), "not muted")
        try bench.perform(.setMuted(track: track, true), ada)
        _ = bench.consumeEvents(ada)
        try bench.perform(.requestUnmute(track: track), host)
        #expect(bench.consumeEvents(ada) == [.unmuteRequested(track: track, by: bench.info(host)?.sid)])
        #expect(throws: RoomError(.permissionDenied, "only a moderator (roomAdmin) may do this")) {
            try bench.perform(.requestUnmute(track: track), bob)
        }
    }

    @Test("A request to unmute is refused where the publisher's client would not ask the person")
    func unmuteWithoutQuestion() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada") { $0.understandsUnmuteRequests = false }
        let host = try bench.join("host") { $0.claims.video.roomAdmin = true }
        try bench.offer(ada, [.audio("0")])
        let track = bench.trackSID(ada, .audio)
        try bench.perform(.setMuted(track: track, true), ada)
        _ = bench.consumeEvents(ada)
        let refusal = RoomError(
            .notAvailable, "the publisher's client has no way to be asked for an unmute: ask the person")
        #expect(throws: refusal) { try bench.perform(.requestUnmute(track: track), host) }
        #expect(bench.consumeEvents(ada).isEmpty)
    }
}
