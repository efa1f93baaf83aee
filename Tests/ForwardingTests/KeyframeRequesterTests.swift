import Primitives
import Testing

@testable import Forwarding

@Suite("Keyframe requests")
struct KeyframeRequesterTests {
    @Test("A request that went to a path that had ended is repeated at once when the sender is back, then every 500 ms")
    func senderReturned() {
        var requester = KeyframeRequester(isScreen: false)
        let start = MonotonicTime.zero + .seconds(10)
        requester.request()
        var sent: [TimeSpan] = []
        func advance(by step: TimeSpan, for span: TimeSpan, from first: MonotonicTime) {
            var now = first
            while now < first + span {
                if requester.consumeDue(at: now) { sent.append(now - start) }
                now = now + step
            }
        }
        advance(by: .milliseconds(10), for: .milliseconds(700), from: start)
        #expect(sent == [.zero, .milliseconds(500)])
        requester.senderReturned()
        advance(by: .milliseconds(10), for: .milliseconds(700), from: start + .milliseconds(700))
        #expect(sent.dropFirst(2) == [.milliseconds(700), .milliseconds(1_200)])
    }

    @Test("A sender that returns is asked for nothing where nothing is wanted")
    func nothingWanted() {
        var requester = KeyframeRequester(isScreen: false)
        requester.senderReturned()
        let isDue = requester.consumeDue(at: .zero + .seconds(1))
        #expect(!isDue)
    }
}
