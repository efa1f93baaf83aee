import AccessTokens
import MediaControl
import TestSupport
import Testing

@testable import Rooms

@Suite("Subscribe rules")
struct SubscribeRuleTests {
    private static func track(_ identity: String, _ kind: MediaKind, _ source: TrackSource) -> TrackInfo {
        TrackInfo(
            sid: "TR_\(identity)_\(source)", participant: "PA_\(identity)", identity: identity, name: "", kind: kind,
            source: source, mid: "0")
    }

    @Test(
        "I3: the last rule that matches decides, and a track that none matches is not received",
        arguments: [
            ([], []), ([.init(includes: true, .all)], ["ada mic", "ada cam", "bob screen"]),
            ([.init(includes: true, .kind(.audio))], ["ada mic"]),
            ([.init(includes: true, .all), .init(includes: false, .kind(.video))], ["ada mic"]),
            (
                [.init(includes: false, .kind(.video)), .init(includes: true, .all)],
                ["ada mic", "ada cam", "bob screen"]
            ),
            ([.init(includes: true, .participant("bob"))], ["bob screen"]),
            ([.init(includes: true, .participant("PA_ada"))], ["ada mic", "ada cam"]),
            (
                [.init(includes: true, .participant("ada")), .init(includes: false, .track("TR_ada_microphone"))],
                ["ada cam"]
            ),
            (
                [.init(includes: true, .source(.screen)), .init(includes: true, .source(.microphone))],
                ["ada mic", "bob screen"]
            ),
            (
                [
                    .init(includes: true, .all), .init(includes: false, .source(.camera)),
                    .init(includes: true, .participant("ada")),
                ], ["ada mic", "ada cam", "bob screen"]
            ),
        ] as [([SubscribeRule], [String])])
    func table(rules: [SubscribeRule], received: [String]) {
        let tracks = [
            ("ada mic", Self.track("ada", .audio, .microphone)), ("ada cam", Self.track("ada", .video, .camera)),
            ("bob screen", Self.track("bob", .video, .screen)),
        ]
        #expect(tracks.filter { rules.permit($0.1) }.map(\.0) == received)
    }

    private static func meeting() throws -> (RoomBench, ada: SessionID, bob: SessionID) {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        let bob = try bench.join("bob")
        try bench.offer(ada, [.audio("0"), .video("1")])
        try bench.answerOffers(bob)
        return (bench, ada, bob)
    }

    private static func kinds(_ bench: RoomBench, _ session: SessionID) -> Set<MediaKind> {
        Set(bench.room.subscriptions(of: session).map(\.kind))
    }

    @Test(
        "I3: rules take effect in the same step: what they exclude ends, and comes back with other rules, by hand it is refused"
    )
    func live() throws {
        var (bench, ada, bob) = try Self.meeting()
        let video = bench.trackSID(ada, .video)
        try bench.setRules([.init(includes: true, .kind(.audio))], "bob")
        #expect(Self.kinds(bench, bob) == [.audio])
        #expect(throws: RoomError(.permissionDenied, "not permitted to subscribe to this track")) {
            try bench.perform(.subscribe(track: video), bob)
        }
        try bench.offer(ada, "more", [.video("2")])
        #expect(Self.kinds(bench, bob) == [.audio], "what is published later too")
        try bench.setRules([.init(includes: true, .participant("ada"))], "bob")
        #expect(bench.room.subscriptions(of: bob).count == 3)
        try bench.setRules([], "bob")
        #expect(bench.room.subscriptions(of: bob).isEmpty)
        try bench.setRules(nil, "bob")
        #expect(bench.room.subscriptions(of: bob).count == 3)
        let many = [SubscribeRule](repeating: .init(includes: true, .all), count: SubscribeRule.maximumCount + 1)
        #expect(throws: RoomError.self) { try bench.setRules(many, "bob") }
        #expect(throws: RoomError.self) { try bench.setRules([], "nobody") }
    }

    @Test(
        "I3: rules judge a track anew that is announced as another source than it was, and followers turn to a screen")
    func otherSource() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        let bob = try bench.join("bob") {
            $0.claims.video.subscribeRules = [
                .init(includes: true, .kind(.video)), .init(includes: false, .source(.screen)),
            ]
        }
        let carol = try bench.join("carol") {
            $0.claims.video.subscribeRules = [.init(includes: true, .source(.screen))]
        }
        let tv = try bench.join("tv", isSignalled: false, follow: .identity("ada")) { $0.profile = .viewer }
        try bench.offer(tv, "main", [.video("0", "recvonly")])
        try bench.offer(ada, [.video("0", track: "v"), .video("1", track: "w")])
        let tracks = try #require(bench.info(ada)).tracks.map(\.sid)
        func received(_ session: SessionID) -> [String?] { bench.room.subscriptions(of: session).map(\.track) }
        #expect(received(bob) == tracks && received(carol).isEmpty && received(tv) == [tracks[0]])
        try bench.perform(.announce(.init("w", source: .screen)), ada)
        #expect(received(bob) == [tracks[0]] && received(carol) == [tracks[1]] && received(tv) == [tracks[1]])
        try bench.answerOffers(carol)
        #expect(bench.room.subscriptions(of: carol).map(\.state) == [.active])
        try bench.perform(.announce(.init("w", source: .camera)), ada)
        #expect(received(bob) == tracks && received(carol).isEmpty && received(tv) == [tracks[0]])
    }

    @Test(
        "I3: a token's rules stand in the room's place, an operator's in the token's, and another token changes them live"
    )
    func token() throws {
        var (bench, ada, bob) = try Self.meeting()
        var policy = RoomPolicy()
        policy.subscribeRules = [.init(includes: true, .kind(.audio))]
        try bench.setPolicy(policy)
        let carol = try bench.join("carol") { $0.claims.video.subscribeRules = [.init(includes: true, .kind(.video))] }
        #expect(Self.kinds(bench, bob) == [.audio] && Self.kinds(bench, carol) == [.video])
        #expect(throws: RoomError(.permissionDenied, "not permitted to subscribe to this track")) {
            try bench.perform(.subscribe(track: bench.trackSID(ada, .audio)), carol)
        }
        try bench.setRules([.init(includes: true, .all)], "carol")
        #expect(Self.kinds(bench, carol) == [.audio, .video])
        try bench.setRules(nil, "carol")
        #expect(Self.kinds(bench, carol) == [.video])
        var claims = RoomBench.request("carol").claims
        #expect(throws: RoomError.self, "a resume brings no other rules") { try bench.room.checkResume(carol, claims) }
        claims.video.subscribeRules = []
        try bench.refresh(claims, carol)
        #expect(Self.kinds(bench, carol).isEmpty)
        claims.video.subscribeRules = nil
        try bench.refresh(claims, carol)
        #expect(Self.kinds(bench, carol) == [.audio])
    }

    @Test("Each kind and source that a token may name is the room's of the same word")
    func granted() {
        for source in GrantedSubscribeRule.Source.allCases {
            #expect(
                SubscribeRule(.init(includes: true, .source(source))).match
                    == TrackSource(rawValue: source.rawValue).map { .source($0) })
        }
        #expect(GrantedSubscribeRule.Source.allCases.count == TrackSource.allCases.count)
        for kind in GrantedSubscribeRule.Kind.allCases {
            #expect(
                SubscribeRule(.init(includes: false, .kind(kind))).match
                    == MediaKind(rawValue: kind.rawValue).map { .kind($0) })
        }
    }

    @Test(
        "A publisher's audience: only these identities receive its tracks, those who come later too, until it takes that back"
    )
    func audience() throws {
        var (bench, ada, bob) = try Self.meeting()
        func permissions(_ session: SessionID) -> [Bool] {
            bench.consumeEvents(session).compactMap {
                if case .trackPermission(bench.info(ada)?.sid, _, let isAllowed) = $0 { isAllowed } else { nil }
            }
        }
        _ = bench.consumeEvents(bob)
        try bench.perform(.setAudience(["carol"]), ada)
        #expect(permissions(bob) == [false, false], "both tracks")
        try bench.perform(.setAudience(["carol", "erin"]), ada)
        #expect(permissions(bob).isEmpty, "nothing has changed for bob")
        #expect(Self.kinds(bench, bob).isEmpty)
        let carol = try bench.join("carol")
        let dora = try bench.join("dora")
        #expect(Self.kinds(bench, carol) == [.audio, .video] && Self.kinds(bench, dora).isEmpty)
        #expect(permissions(carol).isEmpty)
        #expect(permissions(dora) == [false, false], "who comes later, too")
        try bench.offer(ada, "more", [.video("2")])
        #expect(permissions(dora) == [false] && permissions(carol).isEmpty, "what is published later, too")
        try bench.offer(bob, [.audio("0")])
        #expect(bench.room.subscriptions(of: dora).count == 1, "others' tracks are others' to say")
        _ = bench.consumeEvents(bob)
        try bench.perform(.setAudience(nil), ada)
        #expect(permissions(bob) == [true, true, true])
        #expect(Self.kinds(bench, bob) == [.audio, .video] && bench.room.subscriptions(of: dora).count == 4)
    }

    @Test("A track that was asked for comes whenever its publisher permits it, until it is not wanted any more")
    func askedBefore() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        let bob = try bench.join("bob") { ($0.autoSubscribe, $0.awaitsPermission) = (false, true) }
        try bench.offer(ada, [.audio("0"), .video("1")])
        let video = bench.trackSID(ada, .video)
        try bench.perform(.setAudience([]), ada)
        _ = bench.consumeEvents(bob)
        var refusal = bench.refusal(of: .subscribe(track: video), by: bob)
        let announced = bench.consumeEvents(bob)
        #expect(refusal == .permissionDenied && announced.count == 1)
        #expect(announced.contains { if case .trackPermission(_, video, false) = $0 { true } else { false } })
        for _ in 0..<2 {
            try bench.perform(.setAudience(["bob"]), ada)
            #expect(Self.kinds(bench, bob) == [.video])
            try bench.perform(.setAudience([]), ada)
            #expect(Self.kinds(bench, bob).isEmpty)
        }
        refusal = bench.refusal(of: .unsubscribe(track: video), by: bob)
        #expect(refusal == .subscriptionNotFound)
        try bench.perform(.setAudience(["bob"]), ada)
        #expect(Self.kinds(bench, bob).isEmpty)
    }

    @Test("An audience names as many tracks for each identity as one may publish; the same again announces nothing")
    func audienceLimits() throws {
        var limits = RoomLimits()
        (limits.participants, limits.tracksPerParticipant) = (3, 2)
        var bench = RoomBench(limits: limits)
        let ada = try bench.join("ada"), bob = try bench.join("bob")
        try bench.offer(ada, [.audio("0"), .video("1")])
        var audience = Audience()
        // Together six: more than there can be participants.
        for name in ["bob", "carol", "dora"] { audience.grant(["TR_1", bench.trackSID(ada, .audio)], to: name) }
        _ = bench.consumeEvents(bob)
        try bench.perform(.setAudience(audience), ada)
        #expect(Self.kinds(bench, bob) == [.audio])
        #expect(!bench.consumeEvents(bob).isEmpty)
        try bench.perform(.setAudience(audience), ada)
        #expect(bench.consumeEvents(bob).isEmpty)
        audience.grant(["1", "2", "3"], to: "dora")
        let tooMany = RoomError(.tooLarge, "the audience names more tracks than a participant can publish")
        #expect(throws: tooMany) { try bench.perform(.setAudience(audience), ada) }
        let all: Audience = ["1", "2", "3", "4"]
        let tooLarge = RoomError(.tooLarge, "the audience has more identities than a room can have participants")
        #expect(throws: tooLarge) { try bench.perform(.setAudience(all), ada) }
        #expect(Self.kinds(bench, bob) == [.audio], "what is refused changes nothing")
    }

    @Test("A follower is shown nothing that its rules or the publisher keep from it, and keeps its sections")
    func followers() throws {
        var (bench, ada, _) = try Self.meeting()
        let tv = try bench.join("tv", isSignalled: false, follow: .identity("ada")) { $0.profile = .viewer }
        try bench.offer(tv, "main", [.audio("0", "recvonly"), .video("1", "recvonly")])
        #expect(bench.room.subscriptions(of: tv).compactMap(\.track).count == 2)
        try bench.perform(.setAudience(["bob"]), ada)
        #expect(bench.room.subscriptions(of: tv).map(\.track) == [nil, nil])
        try bench.perform(.setAudience(nil), ada)
        #expect(bench.room.subscriptions(of: tv).compactMap(\.track).count == 2)
        try bench.setRules([.init(includes: true, .kind(.audio))], "tv")
        #expect(bench.room.subscriptions(of: tv).compactMap(\.track) == [bench.trackSID(ada, .audio)])
    }
}

extension RoomBench {
    fileprivate mutating func setRules(_ rules: [SubscribeRule]?, _ participant: String) throws(RoomError) {
        try step { (room, turn) throws(RoomError) in
            try room.setSubscribeRules(rules, of: participant, turn: &turn)
        }
    }
}
