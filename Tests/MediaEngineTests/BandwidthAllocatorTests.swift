import MediaControl
import Primitives
import RTP
import Testing

@testable import Forwarding
@testable import MediaEngine

@Suite("Dividing one peer's path")
struct BandwidthAllocatorTests {
    /// Feedback about packet 1, which has come, as RTCP.
    private static let feedback: [UInt8] = [
        0x8f, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0, 1, 0, 1, 0, 0, 1, 0, 0x20, 1, 1, 0,
    ]

    /// A path that is measured, and whose receiver names this estimate.
    private static func path(_ estimate: Bitrate, at now: MonotonicTime) -> SendPath {
        var path = SendPath()
        path.sent(1, size: 1_000, as: .media, at: now)
        let bytes = feedback
        guard var compound = RTCPCompound(bytes.span.bytes),
            case .transportFeedback(let report)? = compound.next(in: bytes.span.bytes)
        else { preconditionFailure("no feedback") }
        let isTaken = path.receive(report, in: bytes.span.bytes, at: now)
        #expect(isTaken)
        path.receiverEstimate(estimate, at: now)
        return path
    }

    @Test(
        "A video that does not fit is probed for unless a cap keeps it away: the estimate has headers and audio in it",
        arguments: [(nil, true), (0.95, true), (0.9, false)] as [(Double?, Bool)])
    func cap(share: Double?, isProbed: Bool) throws {
        let stage = try FeedbackTests.Stage(viewers: 1)
        stage.film(150, keyframeFirst: true)
        let engine = stage.harness.engine, now = stage.harness.now
        let found = engine.tables.peerIndex[stage.viewers[0].id.rawValue], film = engine.tables.trackIndex[1]
        let peer = try #require(found), track = try #require(film)
        var offers: [LayerOffer] = []
        engine.tables.tracks[track].pointee.track.appendOffers(at: now, to: &offers)
        let offer = try #require(offers.first)
        let rate = Double(offer.bitrate.bitsPerSecond)
        // Without headers 0.924 of it.
        var path = Self.path(.bitsPerSecond(Int64(rate * 0.97)), at: now)
        var policy = DownlinkPolicy()
        policy.maximumBitrate = share.map { .bitsPerSecond(Int64(rate * $0)) }
        var allocator = BandwidthAllocator()
        _ = allocator.setPolicy(policy)
        _ = allocator.decide(engine.tables.subscriptions(ofPeer: peer), engine.tables, over: &path, at: now)
        let next = path.nextDeadline(at: now)
        #expect(isProbed ? next <= now : next == .distantFuture)
    }

    @Test("A muted video counts neither as allocated nor among what its subscriber could use")
    func mutedVideo() throws {
        let stage = try FeedbackTests.Stage(viewers: 1)
        let harness = stage.harness
        func figures() throws -> [Int64] {
            let report = harness.engine.report(.downlinks([stage.viewers[0].id], withHistory: false))
            let downlink = try #require(report?.downlinks.first)
            return [downlink.allocated.bitsPerSecond, downlink.wanted.bitsPerSecond]
        }
        stage.film(150, keyframeFirst: true)
        let before = try figures()
        harness.apply(.setTrackMuted(TrackID(1), true))
        harness.run(for: .seconds(2))
        let muted = try figures()
        harness.apply(.setTrackMuted(TrackID(1), false))
        stage.film(90)
        let after = try figures()
        #expect(before.allSatisfy { $0 > 0 } && muted == [0, 0] && after.allSatisfy { $0 > 0 })
    }
}
