import Primitives
import Testing

@testable import CongestionControl

@Suite("Queuing delay")
struct QueueDelayTests {
    @Test("H4: the minimum of the last seconds survives a packet that overtakes the one that started the window")
    func reordered() {
        var queue = QueueDelay()
        // A floor of 20 ms, then a queue of 100 ms that stays.
        for packet in 0..<900 {
            let sent = Int64(packet) * 10_000
            queue.add(sent: sent, arrival: sent + (packet < 300 ? 20_000 : 120_000), isContested: false)
        }
        #expect(queue.newest == 100_000)
        // Each third packet overtakes the one before, also the one that turns the window at 10 s.
        for packet in 900..<1_100 {
            let sent = Int64(packet) * 10_000
            queue.add(sent: sent, arrival: sent + (packet % 3 == 0 ? 109_000 : 120_000), isContested: false)
            #expect(queue.newest >= 89_000)
        }
    }

    @Test("A clock that jumps back starts a new window, and the minimum follows a shorter path at once")
    func jump() {
        var queue = QueueDelay()
        for packet in 0..<300 {
            let sent = Int64(packet) * 10_000 + 100_000_000
            queue.add(sent: sent, arrival: sent + 80_000, isContested: false)
        }
        for packet in 300..<600 {
            let sent = Int64(packet) * 10_000 + 100_000_000
            queue.add(sent: sent, arrival: sent - 50_000_000, isContested: false)
        }
        #expect(queue.newest == 0)
        #expect(queue.value == 0)
    }
}
