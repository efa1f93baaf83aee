import AccessTokens
import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

/// Joins of WHIP and WHEP, which come with their offer.
@Suite("Joins with an offer")
struct OfferedJoinTests {
    /// Why an offer is refused.
    enum Refusal: CaseIterable {
        case noDescription, publishesNothing, permitsNoSource, receivesNothing

        var offer: String {
            switch self {
            case .noDescription: "nonsense"
            case .publishesNothing: ClientDescriptions().offer([.audio("0", "recvonly")])
            case .permitsNoSource: ClientDescriptions().offer([.video("0")])
            case .receivesNothing: ClientDescriptions().offer([.audio("0", "sendonly"), .video("1", "sendonly")])
            }
        }

        var code: RoomError.Code {
            switch self {
            case .noDescription: .invalidDescription
            case .publishesNothing, .receivesNothing: .noCommonCodec
            case .permitsNoSource: .permissionDenied
            }
        }

        var follow: FollowTarget? { self == .receivesNothing ? .dominantSpeaker : nil }

        var request: JoinRequest {
            RoomBench.request("cam") { request in
                request.profile = follow == nil ? .publishOnly : .viewer
                if self == .permitsNoSource { request.claims.video.canPublishSources = [.screenShareAudio] }
            }
        }
    }

    private func join(_ bench: inout RoomBench, _ refusal: Refusal) -> RoomError.Code? {
        do throws(RoomError) {
            try bench.step { (room, turn) throws(RoomError) in
                _ = try room.join(
                    refusal.request, offer: refusal.offer, connection: "main", follow: refusal.follow, turn: &turn)
            }
            return nil
        } catch {
            return error.code
        }
    }

    @Test(
        "Whoever's offer is refused has not come: nobody is notified, and the numbers of events that follow have no gap",
        arguments: Refusal.allCases)
    func refused(refusal: Refusal) throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0"), .video("1")])
        let logged = bench.log.count
        _ = bench.consumeCommands()
        let code = join(&bench, refusal)
        #expect(code == refusal.code)
        #expect(bench.commands.isEmpty && bench.log.count == logged && bench.ended.isEmpty)
        #expect(bench.room.state.roster.sessions == [ada] && bench.room.state.routing.subscriptionCount == 0)
        let bob = try bench.join("bob")
        let numbers = (bench.events[ada] ?? []).map(\.sequence)
        #expect(numbers == (1...UInt64(numbers.count)).map { $0 })
        guard case .participantJoined(let info)? = bench.events[ada]?.last?.event else {
            Issue.record("no event")
            return
        }
        #expect(info.sid == bench.info(bob)?.sid)
    }

    @Test("A room that nobody has joined ends when it would have without a refused offer", arguments: Refusal.allCases)
    func emptyRoom(refusal: Refusal) {
        var bench = RoomBench()
        let end = bench.room.nextDeadline
        bench.now = bench.now + .seconds(1)
        let code = join(&bench, refusal)
        #expect(code == refusal.code)
        #expect(bench.room.nextDeadline == end)
    }

    @Test("A refused offer leaves an older stay of its identity as it was", arguments: Refusal.allCases)
    func olderStay(refusal: Refusal) throws {
        var bench = RoomBench()
        let cam = try bench.join("cam")
        try bench.offer(cam, [.audio("0")])
        _ = bench.consumeCommands()
        let code = join(&bench, refusal)
        #expect(code == refusal.code)
        #expect(bench.commands.isEmpty && bench.ended.isEmpty && bench.room.has(cam))
        #expect(bench.info(cam)?.tracks.count == 1)
    }
}
