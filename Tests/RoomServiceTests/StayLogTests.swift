import AccessTokens
import MediaControl
import Primitives
import Rooms
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
                var statistics = PeerStatistics(peer: PeerID(1))
                statistics.bytesReceived = connection.received
                statistics.bytesSent = connection.sent
                return ConnectionReport(id: connection.id, statistics: statistics)
            }, tracks: [], subscriptions: [])
    }

    private func conditions(loss: Double = 0) -> NetworkConditions {
        var conditions = NetworkConditions()
        conditions.loss = loss
        conditions.roundTrip = .milliseconds(40)
        return conditions
    }

    @discardableResult
    private func note(_ log: inout StayLog, _ event: RoomLogEvent, at: Int64) -> StaySummary? {
        if case .ended(let summary) = log.note(event, at: at, room: "R", roomSID: "RM_1") { summary } else { nil }
    }

    @Test("The first connection that is up tells how long it took to connect; later ones tell nothing")
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
        note(&log, .connectionChanged(participant: "PA_1", connection: "sub", state: .closed, reason: "bye"), at: 8_000)
        // The same name again, which begins at zero, and one that began anew between two looks.
        log.measure(report([("pub", 400, 10), ("sub", 5, 1_000)]), conditions(), at: 11_000)
        let summary = try #require(
            note(&log, .participantLeft(ada, reason: .left, hasConnected: true), at: 12_500))
        #expect(summary.room == "R" && summary.roomSID == "RM_1" && summary.info == ada && summary.leftAt == 12_500)
        #expect(summary.reason == .left && summary.connectedAfterMilliseconds == 350)
        #expect(
            summary.tracks == [
                StaySummary.Track(
                    kind: .video, source: .camera, codec: .vp8, publishedAt: 2_000, unpublishedAt: 7_000)
            ])
        #expect(summary.bytesReceived == 1_000 + 10 + 400 + 5 && summary.bytesSent == 50 + 9_000 + 10 + 1_000)
        #expect(summary.averageQuality == 3.5 && summary.worstQuality == 2)
        #expect(log.samples(of: "PA_1").isEmpty, "what was remembered of a stay ends with it")
        #expect(note(&log, .participantLeft(ada, reason: .left, hasConnected: true), at: 13_000) == nil)
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
        log.setOrigin(origin, of: "PA_1")
        _ = log.reach(.offer, by: "PA_1", at: 1_020)
        #expect(log.takeTraces(at: 15_999, room: "R").isEmpty)
        let trace = JoinTrace(
            room: "R", participant: "PA_1", profile: .full, joinedAt: 1_000, origin: origin, steps: [.offer: 20],
            outcome: .joined)
        #expect(log.takeTraces(at: 16_000, room: "R") == [trace])
        #expect(log.takeTraces(at: 17_000, room: "R", leaving: "PA_1").isEmpty)
        let summary = try #require(note(&log, .participantLeft(ada, reason: .left, hasConnected: true), at: 18_000))
        #expect(summary.tokenVerification == .microseconds(40))
        note(&log, .participantJoined(ada), at: 20_000)
        #expect(log.takeTraces(at: 20_001, room: "R", leaving: "PA_1").map(\.joinedAt) == [20_000])
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
