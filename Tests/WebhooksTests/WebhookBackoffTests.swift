import Primitives
import Testing

@testable import Webhooks

@Suite("Waiting for a webhook's receiver")
struct WebhookBackoffTests {
    @Test("Waits double from a second to a minute, half of each at random; one accepted request begins anew")
    func waits() {
        var backoff = WebhookBackoff()
        let waits = (0..<9).map { _ in backoff.step(after: .failed(""), at: .zero, jitter: 1) }
        #expect(waits == [1, 2, 4, 8, 16, 32, 60, 60, 60].map { .again(after: .seconds($0)) })
        #expect(backoff.step(after: .answered(status: 503), at: .zero, jitter: 0) == .again(after: .seconds(30)))
        #expect(backoff.step(after: .answered(status: 204), at: .zero, jitter: 0) == .next)
        #expect(backoff.step(after: .failed(""), at: .zero, jitter: 0) == .again(after: .milliseconds(500)))
    }

    @Test("Ten refusals give an event up; a receiver that is overloaded, broken or away for a day is left alone")
    func ends() {
        var refused = WebhookBackoff()
        // A receiver that was away answers 404 for a moment when it comes back.
        for _ in 0..<20 { _ = refused.step(after: .failed(""), at: .zero, jitter: 0) }
        for _ in 0..<9 { #expect(refused.step(after: .answered(status: 404), at: .zero, jitter: 0) != .giveUp) }
        #expect(refused.step(after: .answered(status: 400), at: .zero, jitter: 0) == .giveUp)
        for outcome in [
            WebhookOutcome.failed(""), .answered(status: 500), .answered(status: 429), .answered(status: 301),
        ] {
            var backoff = WebhookBackoff()
            for _ in 0..<20 {
                #expect(backoff.step(after: outcome, at: MonotonicTime(milliseconds: 5), jitter: 0) != .giveUp)
            }
            #expect(backoff.step(after: outcome, at: MonotonicTime(milliseconds: 86_400_004), jitter: 0) != .park)
            #expect(backoff.step(after: outcome, at: MonotonicTime(milliseconds: 86_400_005), jitter: 0) == .park)
        }
    }

    @Test("After a day an event is given up once another is accepted between two tries; if none is for a day, all wait")
    func othersAccepted() {
        func step(_ backoff: inout WebhookBackoff, _ minute: Int64, accepted: Int64) -> WebhookBackoff.Step {
            backoff.step(
                after: .answered(status: 500), at: MonotonicTime(milliseconds: minute * 60_000),
                accepted: MonotonicTime(milliseconds: accepted * 60_000), jitter: 1)
        }
        var backoff = WebhookBackoff()
        for minute in 0..<Int64(1_440) {
            let next = step(&backoff, minute, accepted: minute)
            #expect(next != .giveUp && next != .park)
        }
        #expect(step(&backoff, 1_440, accepted: 1_438) == .again(after: .seconds(60)))
        var away = backoff
        #expect(step(&backoff, 1_441, accepted: 1_441) == .giveUp)
        #expect(step(&backoff, 1_442, accepted: 1_441) == .again(after: .seconds(1)))
        #expect(step(&away, 2_878, accepted: 1_439) == .again(after: .seconds(60)))
        #expect(step(&away, 2_879, accepted: 1_439) == .park)
    }
}
