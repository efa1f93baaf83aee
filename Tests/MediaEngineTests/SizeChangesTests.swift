import MediaControl
import Primitives
import Testing

@testable import Forwarding
@testable import MediaEngine

/// The moments at which a track's subscribers may change to another size.
@Suite("Changes of size of one track")
struct SizeChangesTests {
    private static func at(_ milliseconds: Int64) -> MonotonicTime { .zero + .milliseconds(milliseconds) }

    /// One subscriber's attempt to change its size.
    private struct Attempt {
        var milliseconds: Int64
        var isRaise = false
    }

    /// Which attempts of a track's `count` subscribers are admitted.
    private static func admitted(_ attempts: [Attempt], of count: Int = 5) -> [Bool] {
        var changes = SizeChanges()
        return attempts.map { changes.admit(isRaise: $0.isRaise, among: count, at: at($0.milliseconds)) }
    }

    @Test("After a change the next is admitted 2 s later; others in the same turn are admitted with it")
    func moments() {
        let falls = [10_000, 10_000, 10_001, 11_999, 12_000, 13_000].map { Attempt(milliseconds: $0) }
        #expect(Self.admitted(falls) == [true, true, false, false, true, false])
    }

    @Test("Of five subscribers one becomes larger in 4 s, of forty ten; becoming smaller is not limited")
    func raises() {
        let mixed = [
            Attempt(milliseconds: 10_000, isRaise: true), Attempt(milliseconds: 10_000, isRaise: true),
            Attempt(milliseconds: 10_000), Attempt(milliseconds: 10_000),
            Attempt(milliseconds: 12_000, isRaise: true), Attempt(milliseconds: 12_000),
            Attempt(milliseconds: 14_000, isRaise: true),
        ]
        #expect(Self.admitted(mixed) == [true, false, true, true, false, true, true])
        let many = [Attempt](repeating: Attempt(milliseconds: 10_000, isRaise: true), count: 40)
        #expect(Self.admitted(many, of: 40).count { $0 } == 10)
    }

    @Test("A raise that is refused is no change: a smaller size is admitted right after it")
    func refused() {
        let attempts = [
            Attempt(milliseconds: 10_000, isRaise: true), Attempt(milliseconds: 12_500, isRaise: true),
            Attempt(milliseconds: 12_600),
        ]
        #expect(Self.admitted(attempts) == [true, false, true])
    }

    @Test("A keyframe that is necessary at once opens the moment for all")
    func opened() {
        var changes = SizeChanges()
        let first = changes.admit(isRaise: false, among: 5, at: Self.at(10_000))
        let early = changes.admit(isRaise: false, among: 5, at: Self.at(10_500))
        changes.open()
        let opened = changes.admit(isRaise: false, among: 5, at: Self.at(10_500))
        let after = changes.admit(isRaise: false, among: 5, at: Self.at(11_000))
        #expect([first, early, opened, after] == [true, false, true, false])
    }
}

/// What a video does until it may change its size.
@Suite("A postponed change of size")
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
        _ = video.apply(record, costBefore: .zero, over: PathCondition(), at: start)
        return video
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

    @Test("A larger size waits in the layer that is sent and stays the next step")
    func raise() {
        var video = Self.video(in: Self.offer(1, 1, 500), because: Self.short)
        let decision = Self.outcome(of: &video, to: Self.offer(2, 1, 1_500), because: .best)
        #expect(decision?.layer?.point == LayerPoint(spatial: 1, temporal: 1))
        #expect(decision?.next?.point == LayerPoint(spatial: 2, temporal: 1))
        #expect(decision?.reason == .settling)
        #expect(!video.isAboutToShrink)
    }

    @Test("A smaller size waits in the fewest frames of the size that is sent")
    func fall() {
        var video = Self.video(in: Self.offer(1, 1, 500), because: .best)
        let decision = Self.outcome(of: &video, to: Self.offer(0, 1, 150), because: Self.short)
        #expect(decision?.layer?.point == LayerPoint(spatial: 1, temporal: 0))
        #expect(video.isAboutToShrink)
    }

    @Test("Without temporal layers, in its first 3 s, or by the subscriber's preference a change is made at once")
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
