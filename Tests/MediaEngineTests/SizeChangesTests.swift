import MediaControl
import Primitives
import Testing

@testable import Forwarding
@testable import MediaEngine

/// The moments at which a track's subscribers may change to another size.
@Suite("Size changes of one track")
struct SizeChangesTests {
    private static let office = SubscriberNetwork(SocketAddress(ipv4: 0xc000_0201, port: 40_000))
    private static let home = SubscriberNetwork(SocketAddress(ipv4: 0xc000_0202, port: 40_000))

    /// One subscriber's attempt to change its size, to a larger one where there is a step; there are so many in its network, which take `allocated` kbit/s.
    private struct Attempt {
        var milliseconds: Int64
        var group: SizeChanges.Group?
        var step: Bitrate?

        static func fall(_ milliseconds: Int64, of count: Int = 5) -> Self {
            Self(
                milliseconds: milliseconds,
                group: SizeChanges.Group(network: office, count: count, allocated: .kilobitsPerSecond(2_000)))
        }
        static func raise(
            _ milliseconds: Int64, in network: SubscriberNetwork? = office, of count: Int = 5,
            from allocated: Int64 = 2_000
        ) -> Self {
            let group = network.map {
                SizeChanges.Group(network: $0, count: count, allocated: .kilobitsPerSecond(allocated))
            }
            return Self(milliseconds: milliseconds, group: group, step: .kilobitsPerSecond(1_000))
        }
    }

    /// Which attempts are admitted.
    private static func admitted(_ attempts: [Attempt]) -> [Bool] {
        var changes = SizeChanges()
        return attempts.map { attempt in
            let now = MonotonicTime.zero + .milliseconds(attempt.milliseconds)
            guard let step = attempt.step else { return changes.admitFall(in: attempt.group, at: now) }
            return changes.admitRaise(by: step, in: attempt.group, at: now)
        }
    }

    @Test("The next change is admitted 2 s after a change; others in the same turn are admitted with it")
    func moments() {
        let falls = [10_000, 10_000, 10_001, 11_999, 12_000, 13_000].map { Attempt.fall($0) }
        #expect(Self.admitted(falls) == [true, true, false, false, true, false])
    }

    @Test("Of five subscribers in a network one is raised within 4 s, of forty ten; lowering is not limited")
    func raises() {
        let mixed: [Attempt] = [
            .raise(10_000), .raise(10_000), .fall(10_000), .fall(10_000), .raise(12_000), .raise(14_000), .fall(14_000),
        ]
        #expect(Self.admitted(mixed) == [true, false, true, true, false, true, true])
        let many = [Attempt](repeating: .raise(10_000, of: 40), count: 40)
        #expect(Self.admitted(many).count { $0 } == 10)
    }

    @Test("Subscribers in different networks, alone in theirs or of unknown address are raised at the same moment")
    func networks() {
        let attempts: [Attempt] = [
            .raise(10_000), .raise(10_000, in: Self.home), .raise(10_000, of: 1), .raise(10_000, in: nil, of: 0),
        ]
        #expect(Self.admitted(attempts) == [true, true, true, true])
    }

    @Test("A network is an IPv4 address or 64 bits of an IPv6 address, whatever the port")
    func network() {
        #expect(SubscriberNetwork(SocketAddress(ipv4: 0xc000_0201, port: 1)) == Self.office)
        #expect(Self.home != Self.office)
        let prefix: UInt64 = 0x2001_0db8_0000_0001
        let first = SubscriberNetwork(SocketAddress(high: prefix, low: 1, port: 1))
        #expect(first == SubscriberNetwork(SocketAddress(high: prefix, low: 2, port: 2)))
        #expect(first != SubscriberNetwork(SocketAddress(high: prefix + 1, low: 1, port: 1)))
    }

    @Test("A refused raise is no change: a lowering is admitted right after it")
    func refused() {
        #expect(Self.admitted([.raise(10_000), .raise(12_500), .fall(12_600)]) == [true, false, true])
    }

    @Test(
        "H12: what a network did not carry together is tried again after 20 s, then 40 and 80; clearly less at once"
    )
    func failures() {
        let attempts: [Attempt] = [
            .raise(10_000), .fall(12_000), .raise(14_000), .raise(14_000, from: 1_600), .raise(31_000), .fall(33_000),
            .raise(70_000), .raise(72_000), .fall(74_000), .raise(140_000), .raise(153_000),
        ]
        #expect(
            Self.admitted(attempts) == [true, true, false, true, true, true, false, true, true, false, true])
    }

    @Test("H12: a raise that held, or after which one of many falls, bars none")
    func held() {
        #expect(Self.admitted([.raise(10_000), .fall(16_000), .raise(18_000)]) == [true, true, true])
        #expect(Self.admitted([.raise(10_000), .fall(12_000, of: 40), .raise(14_000)]) == [true, true, true])
    }

    @Test("A keyframe that is necessary at once admits the changes of all")
    func opened() {
        var changes = SizeChanges()
        let moments = (0..<4).map { MonotonicTime.zero + .milliseconds(10_000 + $0 * 500) }
        let first = changes.admitFall(in: nil, at: moments[0]), early = changes.admitFall(in: nil, at: moments[1])
        changes.open()
        let opened = changes.admitFall(in: nil, at: moments[1]), after = changes.admitFall(in: nil, at: moments[2])
        #expect([first, early, opened, after] == [true, false, true, false])
    }
}

/// What a video does until it may change its size.
@Suite("Postponed size changes")
struct PostponedChangeTests {
    private static let start = MonotonicTime.zero + .seconds(100)
    private static let short = DecisionReason.bandwidth(
        needed: .kilobitsPerSecond(900), available: .kilobitsPerSecond(400))

    private static func offer(_ spatial: Int, _ temporal: Int, _ kilobits: Int64) -> LayerOffer {
        LayerOffer(
            LayerPoint(spatial: spatial, temporal: temporal), bitrate: .kilobitsPerSecond(kilobits),
            height: 180 << spatial, framesPerSecond: 30)
    }
    private static let thinnable = [
        offer(0, 0, 60), offer(0, 1, 150), offer(1, 0, 200), offer(1, 1, 500), offer(2, 1, 1_500),
    ]

    /// A video that is sent in `layer` for `reason`.
    private static func video(in layer: LayerOffer, because reason: DecisionReason) -> VideoAllocation {
        var video = VideoAllocation()
        let record = DecisionRecord(
            time: start, subscription: SubscriptionID(1), track: nil, layer: layer, estimate: .kilobitsPerSecond(700),
            reason: reason)
        _ = video.apply(record, isThinned: false, costBefore: .zero, over: PathCondition(), at: start)
        return video
    }

    private static func apply(_ layer: LayerOffer?, to video: inout VideoAllocation, after seconds: Int64) {
        let record = DecisionRecord(
            time: start + .seconds(seconds), subscription: SubscriptionID(1), track: nil, layer: layer,
            estimate: .kilobitsPerSecond(400), reason: short)
        _ = video.apply(
            record, isThinned: false, costBefore: .zero, over: PathCondition(), at: start + .seconds(seconds))
    }

    private static func request(of video: inout VideoAllocation, after seconds: Int64) -> AllocationRequest {
        var request = AllocationRequest(id: SubscriptionID(1), offers: thinnable)
        video.fill(&request, over: PathCondition(), at: start + .seconds(seconds))
        return request
    }

    /// What becomes of the change to `new`, `seconds` after the video began, while no change is admitted; nil: it is made.
    private static func outcome(
        of video: inout VideoAllocation, to new: LayerOffer, because reason: DecisionReason,
        offers: [LayerOffer] = thinnable, after seconds: Int64 = 10
    ) -> AllocationDecision? {
        var decision = AllocationDecision(id: SubscriptionID(1), layer: new, reason: reason, next: nil)
        let request = AllocationRequest(id: SubscriptionID(1), offers: offers)
        let isPostponed = video.postpone(&decision, for: request, at: start + .seconds(seconds)) { _ in false }
        return isPostponed ? decision : nil
    }

    @Test("A postponed raise keeps the current layer and stays the next step")
    func raise() {
        var video = Self.video(in: Self.offer(1, 1, 500), because: Self.short)
        let decision = Self.outcome(of: &video, to: Self.offer(2, 1, 1_500), because: .best)
        #expect(decision?.layer?.point == LayerPoint(spatial: 1, temporal: 1))
        #expect(decision?.next?.point == LayerPoint(spatial: 2, temporal: 1))
        #expect(decision?.reason == .settling)
        #expect(!video.isAboutToShrink)
    }

    @Test("A postponed lowering keeps the current size with the fewest frames")
    func fall() {
        var video = Self.video(in: Self.offer(1, 1, 500), because: .best)
        let decision = Self.outcome(of: &video, to: Self.offer(0, 1, 150), because: Self.short)
        #expect(decision?.layer?.point == LayerPoint(spatial: 1, temporal: 0))
        #expect(video.isAboutToShrink)
    }

    @Test(
        "A video that waits for its moment to become smaller is not thinned, and when no other subscriber is left it falls at once"
    )
    func waiting() {
        var video = Self.video(in: Self.offer(1, 1, 500), because: .best)
        let fewest = Self.outcome(of: &video, to: Self.offer(0, 1, 150), because: Self.short)?.layer
        Self.apply(fewest, to: &video, after: 10)
        #expect(Self.request(of: &video, after: 11).mayThin == false)
        #expect(!video.isAboutToShrink)
        Self.apply(Self.offer(0, 1, 150), to: &video, after: 11)
        #expect(Self.request(of: &video, after: 15).mayRise == false)
        #expect(Self.request(of: &video, after: 16).mayRise)
    }

    @Test("H12: a size that grows where others share the network begins with few frames, and has all of them 2 s later")
    func fewFrames() {
        var video = Self.video(in: Self.offer(0, 1, 150), because: Self.short)
        var decision = AllocationDecision(id: SubscriptionID(1), layer: Self.offer(1, 1, 500), reason: .best, next: nil)
        let request = AllocationRequest(id: SubscriptionID(1), offers: Self.thinnable)
        var raises: [Bitrate?] = []
        let isPostponed = video.postpone(&decision, for: request, at: Self.start + .seconds(10)) { raise in
            raises.append(raise)
            return true
        }
        #expect(!isPostponed)
        #expect(raises == [.kilobitsPerSecond(50)], "what it begins with, and no more")
        video.beginWithFewFrames(&decision, for: request, at: Self.start + .seconds(10))
        #expect(decision.layer?.point == LayerPoint(spatial: 1, temporal: 0))
        #expect(decision.next?.point == LayerPoint(spatial: 1, temporal: 1))
        #expect(decision.reason == .settling)
        Self.apply(decision.layer, to: &video, after: 10)
        let early = Self.outcome(of: &video, to: Self.offer(1, 1, 500), because: .best, after: 11)
        #expect(early?.layer?.point == LayerPoint(spatial: 1, temporal: 0))
        #expect(early?.next?.point == LayerPoint(spatial: 1, temporal: 1))
        #expect(Self.outcome(of: &video, to: Self.offer(1, 1, 500), because: .best, after: 12) == nil)
    }

    @Test("A size whose frames cannot be fewer, and a screen's, grow at once")
    func allFrames() {
        for (hint, new) in [(ContentHint.motion, Self.offer(2, 1, 1_500)), (.detail, Self.offer(1, 1, 500))] {
            var video = Self.video(in: Self.offer(0, 1, 150), because: Self.short)
            var decision = AllocationDecision(id: SubscriptionID(1), layer: new, reason: .best, next: nil)
            var request = AllocationRequest(id: SubscriptionID(1), offers: Self.thinnable)
            request.hint = hint
            video.beginWithFewFrames(&decision, for: request, at: Self.start + .seconds(10))
            #expect(decision.layer == new)
            #expect(decision.reason == .best)
        }
    }

    @Test("Without temporal layers, in its first 3 s, or by the subscriber's preference a change is immediate")
    func immediate() {
        var whole = Self.video(in: Self.offer(2, 1, 1_500), because: .best)
        #expect(Self.outcome(of: &whole, to: Self.offer(1, 1, 500), because: Self.short) == nil)
        var young = Self.video(in: Self.offer(1, 1, 500), because: Self.short)
        #expect(Self.outcome(of: &young, to: Self.offer(0, 1, 150), because: Self.short, after: 2) == nil)
        var preferred = Self.video(in: Self.offer(1, 1, 500), because: .asPreferred)
        #expect(Self.outcome(of: &preferred, to: Self.offer(2, 1, 1_500), because: .best) == nil)
        #expect(Self.outcome(of: &preferred, to: Self.offer(0, 1, 150), because: .asPreferred) == nil)
    }
}
