import MediaControl
import Primitives
import Rooms
import Testing

@testable import RoomService

@Suite("I7: network quality")
struct NetworkQualityTests {
    @Test(
        "A11: quality goes by the network alone, and by the worst of it",
        arguments: [
            (0.0, 50, 10, 1.0, 5), (0.02, 50, 10, 1.0, 4), (0.05, 50, 10, 1.0, 3), (0.15, 50, 10, 1.0, 2),
            (0.3, 50, 10, 1.0, 1), (0, 300, 10, 1.0, 4), (0, 500, 10, 1.0, 3), (0, 900, 10, 1.0, 2),
            (0, 50, 150, 1.0, 4), (0, 50, 300, 1.0, 3), (0, 50, 10, 0.7, 4), (0, 50, 10, 0.4, 3), (0, 50, 10, 0.2, 2),
            (0.02, 900, 300, 0.2, 2),
        ])
    func level(loss: Double, roundTrip: Int64, queue: Int64, share: Double, expected: Int) {
        var conditions = NetworkConditions()
        conditions.loss = loss
        conditions.roundTrip = .milliseconds(roundTrip)
        conditions.queueDelay = .milliseconds(queue)
        conditions.servedShare = share
        #expect(conditions.quality == expected)
        conditions.isSilent = true
        #expect(conditions.quality == 0)
    }

    private static func participant(
        _ peers: [PeerStatistics], subscriptions: [SubscriptionStatistics] = []
    ) -> ParticipantReport {
        let info = SubscriptionInfo(
            sid: "SU_1", track: nil, publisher: nil, subscriber: "PA_1", kind: .video, connection: nil, mid: nil,
            paused: false, preference: .best, state: .active)
        return ParticipantReport(
            sid: "PA_1", identity: "ada", connections: peers.map { ConnectionReport(id: "c", statistics: $0) },
            tracks: [], subscriptions: subscriptions.map { SubscriptionReport(info: info, statistics: $0) })
    }

    private static func peer(_ change: (inout PeerStatistics) -> Void = { _ in }) -> PeerStatistics {
        var peer = PeerStatistics(peer: PeerID(1))
        peer.isConnected = true
        peer.roundTripTime = .milliseconds(40)
        change(&peer)
        return peer
    }

    @Test("Nothing known is no fault; no transport is 0; the worst of several transports counts")
    func transports() {
        #expect(NetworkConditions(downlinkOf: Self.participant([Self.peer()])).quality == 5)
        #expect(NetworkConditions(downlinkOf: Self.participant([Self.peer { $0.isConnected = false }])).quality == 0)
        let lossy = Self.peer {
            $0.estimate = .kilobitsPerSecond(500)
            $0.downlinkLoss = 0.1
        }
        #expect(NetworkConditions(downlinkOf: Self.participant([Self.peer(), lossy])).quality == 2)
        #expect(
            NetworkConditions(downlinkOf: Self.participant([Self.peer(), Self.peer { $0.isSilent = true }])).quality
                == 0)
    }

    @Test("What does not fit counts; what nobody wants, or a policy holds back, does not")
    func share() {
        let short = Self.peer {
            $0.estimate = .kilobitsPerSecond(500)
            $0.allocated = .kilobitsPerSecond(450)
            $0.wanted = .kilobitsPerSecond(1_900)
        }
        #expect(NetworkConditions(downlinkOf: Self.participant([short])).quality == 2)
        let idle = Self.peer {
            $0.estimate = .kilobitsPerSecond(300)
            $0.allocated = .zero
            $0.wanted = .zero
        }
        #expect(NetworkConditions(downlinkOf: Self.participant([idle])).quality == 5)
    }

    @Test("What was lost before everybody muted is no bad network ten seconds later; while something is sent, it is")
    func idle() {
        let room = RoomInfo(
            sid: "RM_1", name: "r", metadata: "", topology: .routed, maxParticipants: nil, createdAt: 0)
        var watch = QualityWatch(), qualities: [Int] = [], losses: [Double?] = []
        for packets in [100, 200, 300, 300, 300, 300, 400] as [UInt64] {
            let lossy = Self.peer {
                $0.estimate = .kilobitsPerSecond(500)
                $0.downlinkLoss = 0.25
                $0.rtpPacketsSent = packets
            }
            var screen = SubscriptionStatistics(subscription: SubscriptionID(1))
            screen.bitrate = .kilobitsPerSecond(10)
            let report = RoomReport(room: room, participants: [Self.participant([lossy], subscriptions: [screen])])
            _ = watch.look(at: report) { _, conditions, loss in
                qualities.append(conditions.quality)
                losses.append(loss)
            }
        }
        #expect(qualities == [1, 1, 1, 1, 5, 5, 1])
        #expect(losses == [0.25, 0.25, 0.25, 0.25, nil, nil, 0.25])
    }

    @Test(
        "A11: one lost packet of a slow screen's four, in a receiver report, is no bad network where the path is measured"
    )
    func reports() {
        var screen = SubscriptionStatistics(subscription: SubscriptionID(1))
        screen.fractionLost = 0.25
        let measured = Self.peer { $0.estimate = .kilobitsPerSecond(3_000) }
        #expect(NetworkConditions(downlinkOf: Self.participant([measured], subscriptions: [screen])).quality == 5)
        #expect(NetworkConditions(downlinkOf: Self.participant([Self.peer()], subscriptions: [screen])).quality == 1)
    }
}
