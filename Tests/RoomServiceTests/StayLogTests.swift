import AccessTokens
import MediaControl
import Primitives
import Rooms
import Synchronization
import TestSupport
import Testing

@testable import RoomService

@Suite("Stays")
struct StayLogTests {
    private let ada = ParticipantInfo(
        sid: "PA_1", identity: "ada", name: "Ada", metadata: "", profile: .full, permissions: Permissions(VideoGrant()),
        joinedAt: 1_000)

    private func track(_ sid: String, codec: Codec? = nil) -> TrackInfo {
        var info = TrackInfo(
            sid: sid, participant: "PA_1", identity: "ada", name: "", kind: .video, source: .camera, mid: "0")
        info.codec = codec
        return info
    }

    private func report(_ connections: [(id: String, received: UInt64, sent: UInt64)]) -> ParticipantReport {
        ParticipantReport(
            sid: "PA_1", identity: "ada",
            connections: connections.map { connection in
                ConnectionReport(
                    id: connection.id, statistics: Self.last(connection.id, connection.received, connection.sent).1)
            }, tracks: [], subscriptions: [])
    }

    /// Connections are peers in the order in which they are named here.
    private static let peers = ["pub", "sub", "pub again", "sub again"]

    private static func last(_ connection: String, _ received: UInt64, _ sent: UInt64) -> (PeerID, PeerStatistics) {
        let peer = PeerID(UInt64(peers.firstIndex(of: connection) ?? 99))
        var statistics = PeerStatistics(peer: peer)
        (statistics.bytesReceived, statistics.bytesSent) = (received, sent)
        return (peer, statistics)
    }

    private static func ended(_ statistics: PeerStatistics) -> EndedPeer {
        EndedPeer(bytesReceived: statistics.bytesReceived, bytesSent: statistics.bytesSent)
    }

    @discardableResult
    private func finish(_ log: inout StayLog, _ connection: String, _ received: UInt64, _ sent: UInt64) -> Bool {
        let (peer, statistics) = Self.last(connection, received, sent)
        return log.finish(peer, Self.ended(statistics), at: 0, names: TrackNames())
    }

    private func conditions(loss: Double = 0) -> NetworkConditions {
        var conditions = NetworkConditions()
        conditions.loss = loss
        conditions.roundTrip = .milliseconds(40)
        return conditions
    }

    @discardableResult
    private func note(_ log: inout StayLog, _ event: RoomLogEvent, at: Int64) -> StaySummary? {
        if case .ended(let stay) = log.note(event, at: at, room: "R", roomSID: "RM_1") { stay.summary } else { nil }
    }

    @Test("The first sample after a move is of the time since the last one before it")
    func samplesGoOn() throws {
        var log = StayLog()
        note(&log, .participantJoined(ada), at: 10_000)
        let peer = Self.last("sub", 0, 0).0
        log.goOn(
            "PA_1", with: [peer: CarriedBytes(Self.last("sub", 1_000_000, 0).1)], since: 5_100)
        log.measure(report([("sub", 1_500_000, 0)]), conditions(), at: 10_100)
        #expect(log.samples(of: "PA_1").map(\.uplink) == [.kilobitsPerSecond(800)])
    }

    @Test("The first connection that is up shows how long it took to connect; later ones add nothing")
    func connecting() {
        var log = StayLog()
        var times = ConnectTimes()
        note(&log, .participantJoined(ada), at: 1_000)
        for (connection, at) in [("pub", 1_350), ("sub", 1_900)] as [(String, Int64)] {
            let change = log.note(
                .connectionChanged(participant: "PA_1", connection: connection, state: .connected, reason: nil), at: at,
                room: "R", roomSID: "RM_1")
            #expect(change == (connection == "pub" ? .connected(afterMilliseconds: 350) : nil))
            if case .connected(let milliseconds) = change { times.add(milliseconds) }
        }
        times.add(351)
        times.add(60_000)
        #expect(times.counts == [0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1] && times.totalMilliseconds == 60_701)
    }

    @Test(
        "I6: the summary has times, tracks with their codecs, why it ended, and what all connections carried, made anew or ended"
    )
    func summary() throws {
        var log = StayLog()
        note(&log, .participantJoined(ada), at: 1_000)
        note(
            &log, .connectionChanged(participant: "PA_1", connection: "pub", state: .connected, reason: nil), at: 1_350)
        note(
            &log, .connectionChanged(participant: "PA_1", connection: "sub", state: .connected, reason: nil), at: 1_900)
        note(&log, .trackPublished(track("TR_1")), at: 2_000)
        log.measure(report([("pub", 1_000, 50), ("sub", 10, 9_000)]), conditions(loss: 0.15), at: 6_000)
        note(&log, .trackUnpublished(track("TR_1", codec: .vp8)), at: 7_000)
        // Both ended some time after that look, and others of their names begin at zero.
        #expect(finish(&log, "sub", 12, 9_500) && finish(&log, "pub", 1_200, 60))
        #expect(!finish(&log, "sub", 12, 9_500), "reported twice, counted once")
        log.measure(report([("pub again", 400, 10), ("sub again", 5, 1_000)]), conditions(), at: 11_000)
        let summary = try #require(
            note(&log, .participantLeft(ada, reason: .left, hasConnected: true), at: 12_500))
        #expect(summary.room == "R" && summary.roomSID == "RM_1" && summary.info == ada && summary.leftAt == 12_500)
        #expect(summary.reason == .left && summary.connectedAfterMilliseconds == 350)
        #expect(
            summary.tracks == [
                StaySummary.Track(
                    kind: .video, source: .camera, codec: .vp8, publishedAt: 2_000, unpublishedAt: 7_000)
            ])
        #expect(summary.bytesReceived == 1_200 + 12 + 400 + 5 && summary.bytesSent == 60 + 9_500 + 10 + 1_000)
        #expect(summary.history.samples.map(\.at) == [6_000, 11_000])
        #expect(summary.averageQuality == 3.5 && summary.worstQuality == 2)
        #expect(log.samples(of: "PA_1").isEmpty, "what was remembered of a stay ends with it")
        #expect(note(&log, .participantLeft(ada, reason: .left, hasConnected: true), at: 13_000) == nil)
    }

    @Test(
        "I6: a stay of 3 s that nobody looked at has what its connections carried, as their worker reports when they end"
    )
    func shortStay() throws {
        var log = StayLog()
        var departing = DepartingStays()
        note(&log, .participantJoined(ada), at: 1_000)
        let (pub, published) = Self.last("pub", 90_000, 700), (sub, received) = Self.last("sub", 300, 50_000)
        log.add(pub, of: "PA_1")
        log.add(sub, of: "PA_1")
        log.add(PeerID(77), of: "PA_gone")
        let change = log.note(
            .participantLeft(ada, reason: .left, hasConnected: true), at: 4_000, room: "R", roomSID: "RM_1")
        guard case .ended(var stay) = change else {
            Issue.record("\(String(describing: change))")
            return
        }
        stay.names.note(TrackID(5), "TR_5")
        #expect(departing.add(stay, at: 4_000) == nil, "it waits for its connections")
        #expect(departing.finish(pub, Self.ended(published), at: 4_010) == nil)
        #expect(departing.finish(pub, Self.ended(published), at: 4_010) == nil, "reported twice")
        var last = Self.ended(received)
        last.decisions = [
            DecisionRecord(
                time: .zero, subscription: SubscriptionID(1), track: TrackID(5), layer: nil, estimate: nil,
                reason: .best)
        ]
        last.decisions[0].age = .milliseconds(1_500)
        last.estimates = [
            EstimateRecord(age: .seconds(2), least: .kilobitsPerSecond(400), most: .kilobitsPerSecond(900))
        ]
        let reported = departing.finish(sub, last, at: 4_020)
        let summary = try #require(reported)
        #expect(summary.bytesReceived == 90_300 && summary.bytesSent == 50_700)
        #expect(summary.history.decisions.map(\.track) == ["TR_5"] && summary.history.decisions.map(\.at) == [2_520])
        #expect(summary.history.estimates.map(\.at) == [2_020])
        #expect(departing.removeOverdue(at: nil).isEmpty)
    }

    @Test("I6: a stay that a move ended waits for the connections that it ended, and not for those that go on")
    func movedStay() {
        for keeps in [true, false] {
            var log = StayLog()
            note(&log, .participantJoined(ada), at: 1_000)
            log.add(PeerID(1), of: "PA_1")
            let change = log.note(
                .participantLeft(ada, reason: .moved, hasConnected: true, keepsConnections: keeps), at: 4_000,
                room: "R", roomSID: "RM_1")
            guard case .ended(let stay) = change else {
                Issue.record("\(String(describing: change))")
                return
            }
            #expect(stay.missing.isEmpty == keeps)
        }
    }

    @Test("I6: of connections that overlap a stay keeps the latest decisions and estimates, in order")
    func overlappingConnections() throws {
        func measured(ages: [Int64]) -> EndedPeer {
            var last = EndedPeer()
            for age in ages {
                var record = DecisionRecord(
                    time: .zero, subscription: SubscriptionID(1), track: nil, layer: nil, estimate: nil, reason: .best)
                record.age = .seconds(age)
                last.decisions.append(record)
                last.estimates.append(
                    EstimateRecord(
                        age: .seconds(age), least: .kilobitsPerSecond(400), most: .kilobitsPerSecond(900)))
            }
            return last
        }
        var log = StayLog()
        note(&log, .participantJoined(ada), at: 1_000)
        let first = PeerID(1), second = PeerID(2)
        for peer in [first, second] { log.add(peer, of: "PA_1") }
        // The second ends later, and all but two of its decisions are older than that of the first.
        let ages = (1...200).reversed().map { Int64($0) }
        for (peer, last, at) in [(first, measured(ages: [2]), 1_000_000), (second, measured(ages: ages), 1_001_000)] {
            let isKnown = log.finish(peer, last, at: Int64(at), names: TrackNames())
            #expect(isKnown)
        }
        let summary = try #require(note(&log, .participantLeft(ada, reason: .left, hasConnected: true), at: 1_002_000))
        let expected = (ages.map { 1_001_000 - $0 * 1_000 } + [998_000]).sorted()
        #expect(summary.history.decisions.map(\.at) == Array(expected.suffix(StayLog.maxDecisions)))
        #expect(summary.history.estimates.map(\.at) == Array(expected.suffix(StayLog.maxEstimates)))
    }

    @Test("A summary whose worker reports nothing is written after two seconds with what is known, and once")
    func hangingWorker() throws {
        var log = StayLog()
        var departing = DepartingStays()
        note(&log, .participantJoined(ada), at: 1_000)
        log.measure(report([("pub", 1_000, 50)]), conditions(), at: 6_000)
        let change = log.note(
            .participantLeft(ada, reason: .left, hasConnected: true), at: 7_000, room: "R", roomSID: "RM_1")
        guard case .ended(let stay) = change else {
            Issue.record("\(String(describing: change))")
            return
        }
        #expect(departing.add(stay, at: 7_000) == nil)
        #expect(departing.removeOverdue(at: 8_999).isEmpty)
        #expect(departing.removeOverdue(at: 9_000).map(\.bytesReceived) == [1_000])
        let (peer, last) = Self.last("pub", 9_000, 9_000)
        #expect(departing.finish(peer, Self.ended(last), at: 9_100) == nil)
    }

    @Test(
        "I6: who leaves within seconds has in its summary what the worker reports at the end, also where the room has ended by then",
        arguments: [false, true])
    func shortStayOfService(roomEnds: Bool) async throws {
        let plane = FakePlane(), summaries = Mutex<[StaySummary]>([])
        let service = RoomHost(media: plane, stayEnded: { summary in summaries.withLock { $0.append(summary) } })
        let ada = try await service.join(request("ada")).session
        let offer = ClientDescriptions(ufrag: "clnt").offer([.audio("0"), .video("1")])
        _ = try await service.offer(ada, connection: "pub", sdp: offer)
        let peers = plane.consumeCommands().compactMap { if case .addPeer(let peer) = $0 { peer.id } else { nil } }
        let peer = try #require(peers.first)
        if roomEnds { try await service.deleteRoom(named: "R") } else { await service.leave(ada) }
        #expect(summaries.withLock { $0.isEmpty })
        let last = EndedPeer(bytesReceived: 123_456, bytesSent: 789)
        await service.receive([.peerMeasured(peer, last), .peerEnded(peer, .removed)])
        let summary = try #require(summaries.withLock { $0.first })
        #expect(summary.bytesReceived == 123_456 && summary.bytesSent == 789 && summary.info.identity == "ada")
        // Who had no connection has nothing to wait for.
        let bob = try await service.join(request("bob", room: "Q")).session
        await service.leave(bob)
        #expect(summaries.withLock { $0.map(\.info.identity) } == ["ada", "bob"])
    }

    @Test("I6: the summary has the freezes that the client reported, and none where it reported nothing")
    func freezes() throws {
        var log = StayLog()
        note(&log, .participantJoined(ada), at: 1_000)
        log.add(Freezes(count: 2, duration: .milliseconds(700)), of: "PA_1")
        log.add(Freezes(), of: "PA_1")
        log.add(Freezes(count: 1, duration: .milliseconds(200)), of: "PA_1")
        log.add(Freezes(count: 9, duration: .seconds(9)), of: "PA_gone")
        let summary = try #require(note(&log, .participantLeft(ada, reason: .left, hasConnected: true), at: 2_000))
        #expect(summary.freezes == Freezes(count: 3, duration: .milliseconds(900)))
        note(&log, .participantJoined(ada), at: 3_000)
        #expect(
            try #require(note(&log, .participantLeft(ada, reason: .left, hasConnected: true), at: 4_000)).freezes == nil
        )
    }

    @Test("The summary says when each step was reached, counted from the join; a stay that is over reaches nothing")
    func steps() throws {
        var log = StayLog()
        note(&log, .participantJoined(ada), at: 1_000)
        #expect(log.reach(.offer, by: "PA_1", at: 1_040) == 40)
        #expect(log.reach(.ice, by: "PA_1", at: 1_100) == 100)
        let summary = try #require(note(&log, .participantLeft(ada, reason: .left, hasConnected: false), at: 2_000))
        #expect(summary.steps == [.offer: 40, .ice: 100])
        #expect(log.reach(.dtls, by: "PA_1", at: 2_100) == nil)
    }

    @Test("A join is traced once: 15 s after it, or as its stay ends before")
    func traces() throws {
        var log = StayLog()
        note(&log, .participantJoined(ada), at: 1_000)
        let origin = JoinOrigin(receivedAt: 990, verification: .microseconds(40))
        log.grantJoin(origin, of: "PA_1")
        _ = log.reach(.offer, by: "PA_1", at: 1_020)
        #expect(log.consumeTraces(at: 15_999, room: "R").isEmpty)
        let trace = JoinTrace(
            room: "R", participant: "PA_1", profile: .full, joinedAt: 1_000, origin: origin, steps: [.offer: 20],
            outcome: .joined)
        #expect(log.consumeTraces(at: 16_000, room: "R") == [trace])
        #expect(log.consumeTraces(at: 17_000, room: "R", leaving: "PA_1").isEmpty)
        let summary = try #require(note(&log, .participantLeft(ada, reason: .left, hasConnected: true), at: 18_000))
        #expect(summary.tokenVerification == .microseconds(40))
        note(&log, .participantJoined(ada), at: 20_000)
        log.grantJoin(nil, of: "PA_1")
        #expect(log.consumeTraces(at: 20_001, room: "R", leaving: "PA_1").map(\.joinedAt) == [20_000])
    }

    @Test("A stay that ends before its join is granted is not traced: the refusal is")
    func refusedTraces() {
        var log = StayLog()
        note(&log, .participantJoined(ada), at: 1_000)
        #expect(log.consumeTraces(at: 1_000, room: "R", leaving: "PA_1").isEmpty)
        #expect(log.consumeTraces(at: 17_000, room: "R").isEmpty)
    }

    @Test(
        "I5: of 200 decisions in ten minutes the summary has those that were in force when the stay was looked at, each once"
    )
    func seenDecisions() throws {
        var log = StayLog()
        note(&log, .participantJoined(ada), at: 0)
        func decision(_ number: Int64) -> DecisionRecord {
            DecisionRecord(
                time: MonotonicTime(milliseconds: number * 3_000), subscription: SubscriptionID(1), track: TrackID(5),
                layer: LayerOffer(
                    LayerPoint(spatial: Int(number % 3), temporal: 0), bitrate: .kilobitsPerSecond(number), height: 180,
                    framesPerSecond: 30), estimate: nil, reason: .best)
        }
        let info = SubscriptionInfo(
            sid: "SU_1", track: "TR_5", publisher: nil, subscriber: "PA_1", kind: .video, connection: nil, mid: nil,
            paused: false, preference: .best, state: .active)
        // One each 3 s; the stay is looked at each 5 s, twice during the last one.
        for at in stride(from: Int64(5_000), through: 605_000, by: 5_000) {
            var statistics = SubscriptionStatistics(subscription: SubscriptionID(1))
            statistics.decision = decision(min(199, at / 3_000)).read(at: MonotonicTime(milliseconds: at))
            var seen = report([])
            seen.subscriptions = [SubscriptionReport(info: info, statistics: statistics)]
            log.measure(seen, conditions(), at: at)
        }
        let all = log.seenDecisions(of: "PA_1")
        let inForce = (1...120 as ClosedRange<Int64>).map { look -> Int64 in min(199, look * 5 / 3) * 3_000 }
        #expect(all.map(\.at) == inForce)
        let summary = try #require(note(&log, .participantLeft(ada, reason: .left, hasConnected: true), at: 606_000))
        let kept = summary.history.allDecisions
        #expect(kept.map(\.at) == all.map(\.at) && kept.allSatisfy { $0.track == "TR_5" && $0.subscription == nil })
        #expect(kept.last { $0.at <= 122_000 }?.record.isSame(as: decision(40)) == true, "in force at 2:02")
    }

    @Test(
        "I5: decisions that are seen are bounded; a summary has fewer, from the whole time, and the last ones in place of those"
    )
    func manySeenDecisions() throws {
        var seen = SeenDecisions()
        for number in 1...1_000 {
            var statistics = SubscriptionStatistics(subscription: SubscriptionID(1))
            let at = Int64(number) * 5_000
            statistics.decision = DecisionRecord(
                time: MonotonicTime(milliseconds: at), subscription: SubscriptionID(1), track: nil, layer: nil,
                estimate: nil, reason: number % 2 == 0 ? .best : .settling)
            let info = SubscriptionInfo(
                sid: "SU_1", track: "TR_5", publisher: nil, subscriber: "PA_1", kind: .video, connection: nil, mid: nil,
                paused: false, preference: .best, state: .active)
            var one = report([])
            one.subscriptions = [SubscriptionReport(info: info, statistics: statistics)]
            seen.add(one, at: at)
        }
        #expect(seen.all.map(\.at) == (281...1_000).map { Int64($0) * 5_000 })
        let thinned = seen.thinned.map(\.at)
        #expect(thinned.first == 281 * 5_000 && thinned.count == 180)
        #expect(zip(thinned, thinned.dropFirst()).allSatisfy { $1 - $0 == 20_000 })
        var history = StayHistory()
        history.seenDecisions = seen.all.map {
            DecisionReport(at: $0.at, subscription: nil, track: nil, record: $0.record)
        }
        history.decisions = Array(history.seenDecisions.suffix(64))
        #expect(history.allDecisions.map(\.at) == seen.all.map(\.at), "none of them twice")
    }

    @Test("Somebody who never connected has a summary that says so")
    func neverConnected() throws {
        var log = StayLog()
        note(&log, .participantJoined(ada), at: 1_000)
        let summary = try #require(note(&log, .participantLeft(ada, reason: .timeout, hasConnected: false), at: 2_000))
        #expect(summary.connectedAfterMilliseconds == nil && summary.averageQuality == nil && summary.bytesSent == 0)
    }

    @Test(
        "I6: a sample has the bit rates since the one before; an hour of them is kept, and no more tracks than a summary shows"
    )
    func samples() {
        var log = StayLog()
        note(&log, .participantJoined(ada), at: 0)
        for index in 1...2_000 {
            log.measure(report([("pub", UInt64(index) * 125_000, 625)]), conditions(), at: Int64(index) * 5_000)
        }
        let samples = log.samples(of: "PA_1")
        #expect(samples.count == StayLog.maxSamples)
        #expect(samples.map(\.at) == (1_281...2_000).map { Int64($0) * 5_000 })
        #expect(samples.allSatisfy { $0.uplink == .kilobitsPerSecond(200) && $0.downlink == .zero && $0.quality == 5 })
        #expect(samples.allSatisfy { $0.roundTripMilliseconds == 40 && $0.loss == 0 })
        for index in 0..<100 { note(&log, .trackPublished(track("TR_\(index)")), at: 0) }
        let summary = note(&log, .participantLeft(ada, reason: .left, hasConnected: true), at: 0)
        #expect(summary?.tracks.count == StayLog.maxTracks)
    }
}
