import Forwarding
import MediaControl
import Primitives
import Testing

@testable import MediaEngine

@Suite("History of one video's raises and falls")
struct StepHistoryTests {
    private let low = LayerPoint(spatial: 0, temporal: 2)
    private let high = LayerPoint(spatial: 1, temporal: 2)

    private func at(_ seconds: Double) -> MonotonicTime { .zero + .milliseconds(Int64(seconds * 1_000)) }

    private func change(
        _ from: LayerPoint?, _ to: LayerPoint?, short: Bool = true, estimate: Int64 = 500, cost: Int64 = 400,
        thinned: Bool = false
    ) -> StepHistory.Change {
        StepHistory.Change(
            from: from, to: to, costBefore: .kilobitsPerSecond(600), cost: .kilobitsPerSecond(cost),
            isThinned: thinned, isShort: short,
            estimate: .kilobitsPerSecond(estimate), isByLoss: false)
    }

    /// Sent from the first second on, in the higher layer from the tenth.
    private func risen() -> StepHistory {
        var history = StepHistory()
        history.note(change(nil, low), isFirst: true, at: at(1))
        history.note(change(low, high, short: false), isFirst: false, at: at(10))
        return history
    }

    @Test("After a fall for lack of bandwidth a raise is allowed after 5 s, after any other fall at once")
    func settling() {
        var history = StepHistory()
        history.note(change(nil, high), isFirst: true, at: at(1))
        #expect(history.mayRise(on: nil, at: at(20)))
        history.note(change(high, low), isFirst: false, at: at(20))
        #expect(!history.mayRise(on: .kilobitsPerSecond(500), at: at(24.9)))
        #expect(history.mayRise(on: .kilobitsPerSecond(500), at: at(25)))
        var other = StepHistory()
        other.note(change(nil, high), isFirst: true, at: at(1))
        other.note(change(high, low, short: false), isFirst: false, at: at(20))
        #expect(other.mayRise(on: .kilobitsPerSecond(500), at: at(20)))
    }

    @Test(
        "A step that is left within 15 s of the raise is barred for 10 s, then for 20 s, and allowed again after three such periods"
    )
    func failedStep() {
        var history = risen()
        history.note(change(high, low), isFirst: false, at: at(15))
        let failed = history.failedStep(on: .kilobitsPerSecond(500), at: at(16))
        #expect(failed?.layer == high && failed?.attempts == 1 && failed?.isBarred == true)
        #expect(failed?.bitrate == .kilobitsPerSecond(600))
        #expect(history.failedStep(on: .kilobitsPerSecond(500), at: at(25.1))?.isBarred == false)
        #expect(history.failedStep(on: .kilobitsPerSecond(500), at: at(45.1)) == nil)
        history.note(change(low, high, short: false), isFirst: false, at: at(26))
        history.note(change(high, low), isFirst: false, at: at(30))
        #expect(history.failedStep(on: .kilobitsPerSecond(500), at: at(49))?.isBarred == true)
        #expect(history.failedStep(on: .kilobitsPerSecond(500), at: at(49))?.attempts == 2)
        #expect(history.failedStep(on: .kilobitsPerSecond(500), at: at(50.1))?.isBarred == false)
    }

    private let few = LayerPoint(spatial: 1, temporal: 0)

    @Test(
        "A video keeps its size in too few frames for 5 s, and may have all its frames back after 1.5 s: no fall, no raise"
    )
    func thinning() {
        var history = risen()
        #expect(history.mayThin(at: at(15)) && !history.mayRegainFrames(at: at(15)))
        history.note(change(high, few, thinned: true), isFirst: false, at: at(15))
        #expect(!history.mayRise(on: nil, at: at(16.4)))
        #expect(history.mayRise(on: .kilobitsPerSecond(500), at: at(16.5)) && !history.isDraining(at: at(16)))
        #expect(history.mayThin(at: at(19.9)) && !history.mayThin(at: at(20)))
        #expect(!history.mayRegainFrames(at: at(16.4)) && history.mayRegainFrames(at: at(16.5)))
        history.note(change(few, high), isFirst: false, at: at(18))
        #expect(history.failedStep(on: .kilobitsPerSecond(500), at: at(18)) == nil)
        #expect(!history.mayRegainFrames(at: at(21)))
    }

    @Test(
        "Times of too few frames within 5 s of each other share the 5 s: a video that wavers for longer becomes smaller"
    )
    func wavering() {
        var history = risen()
        history.note(change(high, few, thinned: true), isFirst: false, at: at(15))
        history.note(change(few, high), isFirst: false, at: at(18))
        #expect(history.mayThin(at: at(21)))
        history.note(change(high, few, thinned: true), isFirst: false, at: at(21))
        #expect(history.mayThin(at: at(22.9)) && !history.mayThin(at: at(23)))
        history.note(change(few, high), isFirst: false, at: at(22.9))
        #expect(!history.mayThin(at: at(27.8)) && history.mayThin(at: at(27.9)))
    }

    @Test("Frames that a stall took come back at once when it ended at once")
    func forgivenThinning() {
        var history = risen()
        history.note(change(high, few, thinned: true), isFirst: false, at: at(15))
        history.forgive(at(12))
        #expect(!history.mayRegainFrames(at: at(15.3)))
        history.forgive(at(15.2))
        #expect(history.mayRegainFrames(at: at(15.3)) && history.mayRise(on: nil, at: at(15.3)))
    }

    @Test(
        "A step that is left within 15 s of the raise has failed, also where too few frames put off the change of size")
    func lateFall() {
        var history = risen()
        history.note(change(high, few, thinned: true), isFirst: false, at: at(24.9))
        history.note(change(few, low), isFirst: false, at: at(29.9))
        #expect(history.failedStep(on: .kilobitsPerSecond(500), at: at(30))?.layer == high)
        var other = risen()
        other.note(change(high, few, thinned: true), isFirst: false, at: at(25))
        other.note(change(few, low), isFirst: false, at: at(29.9))
        #expect(other.failedStep(on: .kilobitsPerSecond(500), at: at(30)) == nil)
    }

    @Test("Where only some frames come back, the video fell at the moment at which they became too few")
    func partialReturn() {
        var history = risen()
        history.note(change(high, few, thinned: true), isFirst: false, at: at(30))
        history.note(change(few, LayerPoint(spatial: 1, temporal: 1)), isFirst: false, at: at(32))
        #expect(!history.isDraining(at: at(32)))
        #expect(!history.mayRise(on: .kilobitsPerSecond(500), at: at(34.9)))
        #expect(history.mayRise(on: .kilobitsPerSecond(500), at: at(35)))
    }

    @Test("A video that becomes smaller after a time of too few frames fell from the step that it had before them")
    func fallAfterThinning() {
        var history = risen()
        history.note(change(high, few, thinned: true), isFirst: false, at: at(15))
        // Too long, and it waits for the moment that all subscribers share.
        history.note(change(few, few, thinned: true), isFirst: false, at: at(20))
        #expect(!history.mayThin(at: at(20.5)))
        history.note(change(few, low), isFirst: false, at: at(21))
        #expect(history.failedStep(on: .kilobitsPerSecond(500), at: at(22))?.layer == high)
        #expect(!history.mayRise(on: .kilobitsPerSecond(500), at: at(30.9)))
        #expect(history.mayRise(on: .kilobitsPerSecond(500), at: at(31)))
    }

    @Test("A video that began in the last 3 s or became larger in the last 2 s does not keep its size")
    func triedOnly() {
        var history = StepHistory()
        history.note(change(nil, low), isFirst: true, at: at(1))
        #expect(!history.mayThin(at: at(3.9)) && history.mayThin(at: at(4)))
        history.note(change(low, high, short: false), isFirst: false, at: at(10))
        history.note(change(high, LayerPoint(spatial: 1, temporal: 3), short: false), isFirst: false, at: at(11))
        #expect(!history.mayThin(at: at(11.9)) && history.mayThin(at: at(12)))
    }

    @Test("A path with twice the bandwidth of the fall clears the failed step")
    func otherPath() {
        var history = risen()
        history.note(change(high, low, estimate: 500), isFirst: false, at: at(15))
        #expect(history.failedStep(on: .kilobitsPerSecond(999), at: at(16)) != nil)
        #expect(history.failedStep(on: .kilobitsPerSecond(1_000), at: at(16)) == nil)
    }

    @Test(
        "A path with eight times its former bandwidth was interrupted: raises need not wait, unless the step failed before"
    )
    func interruption() {
        var history = StepHistory()
        history.note(change(nil, high), isFirst: true, at: at(1))
        history.note(change(high, low, estimate: 100), isFirst: false, at: at(20))
        #expect(!history.mayRise(on: .kilobitsPerSecond(799), at: at(20.5)))
        #expect(history.mayRise(on: .kilobitsPerSecond(800), at: at(20.5)))
        var again = risen()
        again.note(change(high, low, estimate: 100), isFirst: false, at: at(15))
        #expect(!again.mayRise(on: .kilobitsPerSecond(800), at: at(15.5)))
    }

    @Test("A fall for a stall that ended at once is ignored, one at another time is not")
    func forgiveness() {
        var history = risen()
        history.note(change(high, low), isFirst: false, at: at(15))
        history.forgive(at(12))
        #expect(!history.mayRise(on: .kilobitsPerSecond(500), at: at(16)))
        history.forgive(at(15.5))
        #expect(history.mayRise(on: .kilobitsPerSecond(500), at: at(16)))
        #expect(history.failedStep(on: .kilobitsPerSecond(500), at: at(16)) == nil)
    }

    @Test("For two seconds after a raise the layer counts with at most 110 % of its allocation")
    func costAfterRise() {
        let history = risen()
        #expect(history.cost(.kilobitsPerSecond(900), at: at(11)) == .kilobitsPerSecond(440))
        #expect(history.cost(.kilobitsPerSecond(300), at: at(11)) == .kilobitsPerSecond(300))
        #expect(history.cost(.kilobitsPerSecond(900), at: at(12)) == .kilobitsPerSecond(900))
    }

    @Test("A lowering in the first three seconds of a video is no fall")
    func fittingIn() {
        var history = StepHistory()
        history.note(change(nil, high), isFirst: true, at: at(1))
        history.note(change(high, low), isFirst: false, at: at(3.9))
        #expect(history.mayRise(on: nil, at: at(3.9)) && !history.isDraining(at: at(4)))
    }
}
