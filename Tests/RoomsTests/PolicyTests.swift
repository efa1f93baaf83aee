import AccessTokens
import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Policy: rules that change while members are in the room")
struct PolicyTests {
    static func policy(_ change: (inout RoomPolicy) -> Void) -> RoomPolicy {
        var policy = RoomPolicy()
        change(&policy)
        return policy
    }

    /// ada publishes a microphone and a camera, bob a microphone; both receive each other's.
    static func meeting(_ policy: RoomPolicy = RoomPolicy()) throws -> (
        RoomBench, ada: SessionID, bob: SessionID
    ) {
        var bench = RoomBench(policy: policy)
        let ada = try bench.join("ada")
        let bob = try bench.join("bob")
        try bench.offer(ada, [.audio("0"), .video("1")])
        try bench.offer(bob, [.audio("0")])
        try bench.answerOffers(ada)
        try bench.answerOffers(bob)
        _ = bench.consumeCommands()
        _ = bench.consumeEvents(ada)
        _ = bench.consumeEvents(bob)
        return (bench, ada, bob)
    }

    // MARK: - Layers

    @Test(
        "I1: each field of the topmost layer that says something wins, and one that says nothing lets the layer below through"
    )
    func layers() {
        var preset = PolicyDocument()
        preset.maxParticipants = 5
        preset.audioOnly = true
        preset.bandwidth.maxVideoSubscriptions = 3
        var own = PolicyDocument()
        own.audioOnly = false
        own.publishSources = [.microphone]
        let policy = own.applied(to: preset.applied(to: RoomPolicy()))
        #expect(policy.maxParticipants == 5 && !policy.audioOnly && policy.publishSources == [.microphone])
        #expect(policy.bandwidth.maxVideoSubscriptions == 3 && policy.emptyTimeout == RoomPolicy().emptyTimeout)
        #expect(PolicyDocument().applied(to: policy) == policy)
        #expect(PolicyDocument(policy).applied(to: RoomPolicy()) == policy)
    }

    // MARK: - Edits

    @Test("I2: an edit counts the revision, is logged once and announced; one that changes nothing does neither")
    func revisions() throws {
        var (bench, ada, _) = try Self.meeting()
        bench.log = []
        try bench.setPolicy(Self.policy { $0.maxParticipants = 2 })
        #expect(bench.room.policyRevision == 2 && bench.log == [.policyChanged(revision: 2, by: nil)])
        bench.advance(by: .milliseconds(100))
        let updates = bench.consumeEvents(ada).compactMap { if case .roomUpdated(let info) = $0 { info } else { nil } }
        #expect(updates.map(\.maxParticipants) == [2])
        try bench.setPolicy(Self.policy { $0.maxParticipants = 2 })
        #expect(bench.room.policyRevision == 2)
    }

    @Test("Members beyond a new limit stay, and nobody else gets in; with removesExcess the last to join leave")
    func excess() throws {
        var (bench, ada, bob) = try Self.meeting()
        let one = Self.policy { $0.maxParticipants = 1 }
        try bench.setPolicy(one)
        #expect(bench.room.sessions == [ada, bob])
        #expect(throws: RoomError(.roomFull, "the room is full")) { try bench.join("carol") }
        try bench.setPolicy(RoomPolicy())
        try bench.setPolicy(one, removesExcess: true)
        #expect(bench.room.sessions == [ada] && bench.ended == [bob: .policyChanged])
    }

    @Test(
        "Audio-only: video tracks and subscriptions end at once, audio goes on, and video can be published again afterwards"
    )
    func audioOnly() throws {
        var (bench, ada, bob) = try Self.meeting()
        let video = bench.trackSID(ada, .video)
        try bench.setPolicy(Self.policy { $0.audioOnly = true })
        #expect(bench.info(ada)?.tracks.map(\.kind) == [.audio])
        #expect(bench.room.subscriptions(of: bob).map(\.kind) == [.audio])
        let events = bench.consumeEvents(ada)
        #expect(events.contains(.trackUnpublished(participant: bench.info(ada)?.sid ?? "", track: video)))
        #expect(
            events.contains(
                .publicationRefused(connection: "pub", mid: "1", track: "video-1", code: .permissionDenied)),
            "the publisher learns why nobody receives it")
        let commands = bench.consumeCommands()
        #expect(commands.contains { if case .removeTrack = $0 { true } else { false } })
        #expect(commands.contains { if case .unsubscribe = $0 { true } else { false } })
        try bench.offer(ada, [.audio("0"), .video("1")])
        #expect(bench.info(ada)?.tracks.map(\.kind) == [.audio], "refused while the rule holds")
        try bench.setPolicy(RoomPolicy())
        try bench.offer(ada, [.audio("0"), .video("1")])
        try bench.answerOffers(bob)
        #expect(bench.info(ada)?.tracks.map(\.kind) == [.audio, .video])
        #expect(bench.room.subscriptions(of: bob).map(\.kind).contains(.video))
    }

    @Test("Sources: a track whose source is not permitted any more ends, and is not announced or offered again")
    func sources() throws {
        var (bench, ada, _) = try Self.meeting()
        try bench.setPolicy(Self.policy { $0.publishSources = [.microphone, .screen] })
        #expect(bench.info(ada)?.tracks.map(\.source) == [.microphone])
        #expect(throws: RoomError(.permissionDenied, "not permitted to publish camera")) {
            try bench.perform(.announce(TrackAnnouncement("c", source: .camera)), ada)
        }
        try bench.perform(.announce(TrackAnnouncement("video-2", source: .screen)), ada)
        try bench.offer(ada, [.audio("0"), .video("1"), .video("2")])
        #expect(bench.info(ada)?.tracks.map(\.source).contains(.screen) == true)
        #expect(bench.info(ada)?.tracks.map(\.source).contains(.camera) == false)
    }

    @Test("A camera that was forbidden does not come back as a screen, and as a camera once it is permitted again")
    func sourcesStay() throws {
        var (bench, ada, _) = try Self.meeting()
        try bench.setPolicy(Self.policy { $0.publishSources = [.microphone, .screen] })
        try bench.offer(ada, [.audio("0"), .video("1")])
        #expect(bench.info(ada)?.tracks.map(\.source) == [.microphone])
        try bench.setPolicy(RoomPolicy())
        try bench.offer(ada, [.audio("0"), .video("1")])
        #expect(bench.info(ada)?.tracks.map(\.source) == [.microphone, .camera])
        // Another track in the same section is another matter.
        try bench.setPolicy(Self.policy { $0.publishSources = [.microphone, .screen] })
        try bench.offer(ada, [.audio("0"), .video("1", track: "another")])
        #expect(bench.info(ada)?.tracks.map(\.source) == [.microphone, .screen])
    }

    @Test("An answer to the server's offer brings no video into a room of audio, and no publisher beyond the limit")
    func answersPublishNothingMore() throws {
        func track(_ bench: RoomBench, _ session: SessionID) -> [MediaKind] {
            bench.info(session)?.tracks.map(\.kind) ?? []
        }
        var bench = RoomBench()
        let ada = try bench.join("ada") { $0.receivingConnection = "main" }
        try bench.offer(ada, "main", [.audio("0"), .video("1")])
        try bench.setPolicy(Self.policy { $0.audioOnly = true })
        #expect(track(bench, ada) == [.audio])
        let bob = try bench.join("bob")
        try bench.offer(bob, [.audio("0")])
        #expect(try bench.answerOffers(ada) > 0)
        #expect(track(bench, ada) == [.audio])

        // Nobody publishes but bob, and one may.
        try bench.perform(.unpublish(track: bench.trackSID(ada, .audio)), ada)
        try bench.setPolicy(Self.policy { $0.maxPublishers = 1 })
        _ = bench.consumeEvents(ada)
        try bench.offer(bob, [.audio("0"), .video("1")])
        #expect(try bench.answerOffers(ada) > 0)
        #expect(track(bench, ada) == [] && track(bench, bob) == [.audio, .video])
        let refusals = bench.consumeEvents(ada).compactMap {
            if case .publicationRefused(_, _, _, let code, _) = $0 { code } else { nil }
        }
        #expect(!refusals.isEmpty && Set(refusals) == [.limitExceeded])
    }

    @Test("Who may not publish receives by an offer that would send, too, whatever places of publishers are left")
    func receiversAreNoPublishers() throws {
        var bench = RoomBench(policy: Self.policy { $0.maxPublishers = 1 })
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0"), .video("1")])
        let tv = try bench.join("tv", isSignalled: false, follow: .identity("ada")) { $0.profile = .viewer }
        try bench.offer(tv, "main", [.audio("0", "sendrecv"), .video("1", "sendrecv")])
        #expect(bench.room.subscriptions(of: tv).compactMap(\.track).count == 2)
        let eve = try bench.join("eve")
        #expect(throws: RoomError(.limitExceeded, "publisher limit of the room reached")) {
            try bench.offer(eve, [.audio("0")])
        }
    }

    @Test("Bandwidth: caps of every publisher and limits of every subscriber follow at once")
    func bandwidth() throws {
        var (bench, ada, bob) = try Self.meeting()
        try bench.setPolicy(
            Self.policy {
                $0.maxVideoBitrate = .kilobitsPerSecond(300)
                $0.bandwidth.maxDownlinkBitrate = .kilobitsPerSecond(500)
                $0.bandwidth.shortage = .oversend(.kilobitsPerSecond(7))
            })
        let commands = bench.consumeCommands()
        let caps = commands.compactMap {
            if case .setTrackMaximumBitrate(_, let cap) = $0 { cap?.bitsPerSecond } else { nil }
        }
        #expect(caps == [300_000])
        let limits = commands.compactMap {
            if case .setDownlinkPolicy(_, let policy) = $0 { policy } else { nil }
        }
        #expect(!limits.isEmpty && limits.allSatisfy { $0.maximumBitrate == .kilobitsPerSecond(500) })
        #expect(limits.allSatisfy { $0.shortage == .oversend(.kilobitsPerSecond(7)) })
        try bench.setPolicy(Self.policy { $0.bandwidth.maxVideoSubscriptions = 0 })
        #expect(bench.room.subscriptions(of: bob).map(\.kind) == [.audio])
        try bench.setPolicy(RoomPolicy())
        #expect(bench.room.subscriptions(of: bob).map(\.kind).sorted { $0.rawValue < $1.rawValue } == [.audio, .video])
        #expect(bench.room.subscriptions(of: ada).map(\.kind) == [.audio])
    }

    @Test("Codecs and simulcast hold from the next negotiation of a connection on; what was agreed goes on")
    func negotiation() throws {
        var (bench, ada, _) = try Self.meeting()
        try bench.setPolicy(
            Self.policy {
                $0.audioCodecs = [.red]
                $0.allowsSimulcast = false
            })
        #expect(bench.info(ada)?.tracks.count == 2, "nothing ends")
        let carol = try bench.join("carol")
        let sections: [ClientDescriptions.Section] = [.audio("0"), .video("1", rids: ["q", "h", "f"])]
        let bound = try bench.offer(carol, sections).sdp
        #expect(bound.contains("m=audio 0 ") && !bound.contains("m=video 0 ") && !bound.contains("a=simulcast"))
        // carol's connection was made under the former rules, and follows the later ones with its next offer.
        try bench.setPolicy(RoomPolicy())
        let free = try bench.offer(carol, sections).sdp
        #expect(!free.contains("m=audio 0 ") && free.contains("opus/48000") && free.contains("a=simulcast"))
    }

    @Test("The topology cannot change under members, and can while nobody is there")
    func topology() throws {
        var (bench, _, _) = try Self.meeting()
        let mesh = Self.policy { $0.topology = .peerToPeer }
        #expect(throws: RoomError.self) { try bench.setPolicy(mesh) }
        #expect(bench.room.policy == RoomPolicy() && bench.room.policyRevision == 1)
        var empty = RoomBench()
        try empty.setPolicy(mesh)
        #expect(empty.room.policy.topology == .peerToPeer)
    }

    // MARK: - Durations and identities

    @Test("A stay and a room end when the policy's longest duration is over, with the reason")
    func durations() throws {
        var (bench, ada, bob) = try Self.meeting(
            Self.policy {
                $0.maxStay = .seconds(20)
                $0.maxDuration = .seconds(60)
            })
        bench.now = bench.now + .seconds(10)
        let late = try bench.join("late")
        bench.touch([ada, bob, late])
        bench.advance(by: .milliseconds(9_999))
        #expect(bench.ended.isEmpty)
        bench.touch([ada, bob, late])
        #expect(bench.room.nextDeadline == MonotonicTime(milliseconds: 20_000))
        bench.advance(by: .milliseconds(1))
        #expect(bench.ended == [ada: .stayDurationReached, bob: .stayDurationReached])
        try bench.setPolicy(Self.policy { $0.maxDuration = .seconds(60) })
        for _ in 0..<4 {
            bench.touch([late])
            bench.advance(by: .seconds(10))
        }
        #expect(bench.ended[late] == .roomDurationReached && bench.isOver)
    }

    @Test("A stay ends with its token where the policy says so, and goes on where it does not")
    func tokenExpiry() throws {
        let second = RoomBench.wallClock / 1_000
        for ends in [false, true] {
            var bench = RoomBench(policy: Self.policy { $0.endsStayWithToken = ends })
            let ada = try bench.join("ada") { $0.claims.expiresAt = second + 15 }
            bench.advance(by: .seconds(14))
            bench.touch([ada])
            #expect(bench.ended.isEmpty)
            bench.advance(by: .seconds(1))
            #expect(bench.ended == (ends ? [ada: .tokenExpired] : [:]))
        }
    }

    @Test(
        "A new token prolongs the stay and changes grants; another participant's is refused, and an operator's change stays"
    )
    func tokenRefresh() throws {
        let second = RoomBench.wallClock / 1_000
        var bench = RoomBench(policy: Self.policy { $0.endsStayWithToken = true })
        let ada = try bench.join("ada") { $0.claims.expiresAt = second + 15 }
        var claims = RoomBench.request("ada").claims
        claims.expiresAt = second + 25
        claims.video.canSubscribe = false
        claims.video.maxDownlinkBitrate = 100_000
        try bench.refresh(claims, ada)
        #expect(bench.info(ada)?.permissions.canSubscribe == false)
        #expect(bench.room.bandwidth(of: ada)?.maxDownlinkBitrate?.value == .kilobitsPerSecond(100))
        try bench.room.checkResume(ada, claims)
        bench.advance(by: .seconds(16))
        bench.touch([ada])
        #expect(bench.ended.isEmpty)
        try bench.setPermissions(
            {
                var p = Permissions(); p.canPublish = false; return p
            }(), "ada")
        claims.video.canSubscribe = true
        try bench.refresh(claims, ada)
        #expect(bench.info(ada)?.permissions.canPublish == false, "the operator's word")
        for change: (inout AccessClaims) -> Void in [
            { $0.identity = "bob" }, { $0.apiKey = "other" }, { $0.video.room = "S" }, { $0.video.roomJoin = false },
            { $0.video.hidden = true },
        ] {
            var wrong = claims
            change(&wrong)
            #expect(throws: RoomError.self) { try bench.refresh(wrong, ada) }
        }
        // The bench's wall clock stands: the second token was good for 25 seconds from when it came.
        bench.advance(by: .milliseconds(24_999))
        bench.touch([ada])
        #expect(bench.ended.isEmpty)
        bench.advance(by: .milliseconds(1))
        #expect(bench.ended == [ada: .tokenExpired])
    }

    @Test("A second session of an identity replaces the first, or is refused where the policy says so")
    func duplicates() throws {
        var (bench, ada, _) = try Self.meeting(Self.policy { $0.duplicateIdentity = .refuse })
        #expect(throws: RoomError(.identityTaken, "a participant with this identity is in the room")) {
            try bench.join("ada")
        }
        #expect(bench.room.has(ada))
        try bench.setPolicy(RoomPolicy())
        try bench.join("ada")
        #expect(bench.ended == [ada: .duplicateIdentity])
    }

    // MARK: - Permissions

    @Test("I8: permissions change mid-call: tracks and subscriptions that are not permitted end, and come back")
    func permissions() throws {
        var (bench, ada, bob) = try Self.meeting()
        var permissions = Permissions()
        permissions.publishSources = [.camera]
        permissions.canSubscribe = false
        try bench.setPermissions(permissions, "ada")
        #expect(bench.info(ada)?.tracks.map(\.source) == [.camera])
        #expect(bench.room.subscriptions(of: ada).isEmpty)
        let reported = bench.consumeEvents(bob).compactMap {
            if case .participantUpdated(let info) = $0 { info } else { nil }
        }
        #expect(reported.last?.permissions == permissions, "everybody knows")
        try bench.setPermissions(Permissions(), "ada")
        #expect(bench.room.subscriptions(of: ada).map(\.kind) == [.audio])
        var hidden = Permissions()
        hidden.hidden = true
        #expect(throws: RoomError.self) { try bench.setPermissions(hidden, "ada") }
    }

    @Test("A session whose permissions an operator changed resumes with the token that joined")
    func resume() throws {
        var (bench, ada, _) = try Self.meeting()
        try bench.setPermissions(
            {
                var p = Permissions(); p.canPublish = false; return p
            }(), "ada")
        try bench.room.checkResume(ada, RoomBench.request("ada").claims)
    }
}

@Suite("Bans")
struct BanTests {
    private static func turn(_ milliseconds: Int64) -> RoomTurn {
        RoomTurn(
            at: MonotonicTime(milliseconds: milliseconds), wallClock: 1_000_000 + milliseconds,
            random: RandomSource(seed: 1))
    }

    @Test("I8: a ban keeps an identity out of one room until it expires or is ended")
    func life() throws {
        var bans = Bans()
        try bans.add("ada", room: "a", for: .seconds(10), reason: "spam", turn: Self.turn(0))
        let during = MonotonicTime(milliseconds: 9_999)
        #expect(throws: RoomError(.banned, "spam")) { try bans.check("ada", room: "a", now: during) }
        try bans.check("bob", room: "a", now: during)
        try bans.check("ada", room: "b", now: during)
        try bans.check(nil, room: "a", now: during)
        #expect(bans.list(room: "a", now: during).map(\.until) == [1_010_000])
        try bans.check("ada", room: "a", now: MonotonicTime(milliseconds: 10_000))
        #expect(bans.list(room: "a", now: MonotonicTime(milliseconds: 10_000)).isEmpty)
        try bans.add("ada", room: "a", for: .seconds(10), reason: "", turn: Self.turn(20_000))
        try bans.remove("ada", room: "a", now: MonotonicTime(milliseconds: 20_001))
        try bans.check("ada", room: "a", now: MonotonicTime(milliseconds: 20_001))
        #expect(throws: RoomError.self) { try bans.remove("ada", room: "a", now: MonotonicTime(milliseconds: 20_002)) }
    }

    @Test("Beyond the most bans another is refused, and expired ones make room")
    func bound() throws {
        var bans = Bans()
        for index in 0..<Bans.maximumCount {
            try bans.add("p\(index)", room: "r", for: .seconds(10), reason: "", turn: Self.turn(0))
        }
        #expect(throws: RoomError.self) {
            try bans.add("x", room: "r", for: .seconds(10), reason: "", turn: Self.turn(1))
        }
        try bans.add("p0", room: "r", for: .seconds(20), reason: "", turn: Self.turn(1))
        try bans.add("x", room: "r", for: .seconds(10), reason: "", turn: Self.turn(10_001))
        #expect(bans.count == 2)
    }
}
