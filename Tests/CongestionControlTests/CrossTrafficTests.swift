import Primitives
import Testing

@testable import CongestionControl

@Suite("Queue of competing traffic")
struct CrossTrafficTests {
    /// Lets `seconds` pass, 20 reports each, with what came through and the wait, in milliseconds.
    private func pass(
        _ queue: inout CrossTrafficQueue, from start: Double, seconds: Double, delivered: Double,
        wait: (Double) -> Double
    ) {
        for step in 0..<Int(seconds * 20) {
            let elapsed = Double(step) / 20
            queue.update(
                wait: Int64(wait(elapsed) * 1_000), delivered: delivered,
                at: MonotonicTime(milliseconds: Int64((start + elapsed) * 1_000)))
        }
    }

    @Test("H5: a queue that persists although the sending rate fell belongs to competing traffic")
    func others() {
        var queue = CrossTrafficQueue()
        queue.alarm(delivered: 1_000e3)
        pass(&queue, from: 1, seconds: 0.3, delivered: 1_000e3) { _ in 200 }
        #expect(!queue.isPresent)
        // 40 % less each second should shorten it by 0.4 s.
        pass(&queue, from: 1.3, seconds: 1.2, delivered: 600e3) { _ in 200 }
        #expect(queue.isPresent)
        queue.forget()
        #expect(!queue.isPresent && !queue.isKnown)
    }

    @Test("H2: the sender's own queue of 300 ms drains as expected, with rates measured 10 % wrong")
    func own() {
        var queue = CrossTrafficQueue()
        queue.alarm(delivered: 550e3)
        // 500 kbit/s pass and 300 kbit/s are sent: 0.4 s a second.
        pass(&queue, from: 1, seconds: 0.75, delivered: 300e3) { 300 - $0 * 400 }
        #expect(!queue.isPresent)
    }

    @Test("H5: the share is half of the highest rate of the last minutes, and contention does not wear it down")
    func share() {
        var queue = CrossTrafficQueue()
        queue.noteEstimate(3_000e3, at: MonotonicTime(milliseconds: 1_000))
        queue.alarm(delivered: 1_000e3)
        pass(&queue, from: 2, seconds: 3, delivered: 500e3) { _ in 200 }
        #expect(queue.isPresent)
        for second in 5..<300 { queue.noteEstimate(800e3, at: MonotonicTime(milliseconds: Int64(second) * 1_000)) }
        #expect(queue.share == 1_500e3)
    }
}
