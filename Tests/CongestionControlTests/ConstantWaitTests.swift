import Primitives
import Testing

@testable import CongestionControl

@Suite("Waits that are a longer path and no queue")
struct ConstantWaitTests {
    /// Feeds ten seconds of feedback, each 50 ms apart, and returns the second at which the wait counted as constant.
    private func seconds(
        usual: Int64 = 0, lossRate: (Double) -> Double = { _ in 0 }, wait: (Double) -> Int64
    ) -> Double? {
        var constant = ConstantWait()
        for step in 0...200 {
            let time = Double(step) / 20
            if constant.update(
                standing: wait(time), usual: wait(time) + usual, lossRate: lossRate(time),
                at: .zero + .milliseconds(Int64(step) * 50))
            {
                return time
            }
        }
        return nil
    }

    @Test("150 ms more, to within 4 ms, are a longer path after five seconds")
    func longer() {
        #expect(seconds { $0.truncatingRemainder(dividingBy: 0.2) < 0.1 ? 150_000 : 154_000 } == 5)
    }

    @Test("Losses of more than 2 %, or a wait that moves by more than packets vary anyway, start the five seconds anew")
    func anew() {
        #expect(seconds(lossRate: { $0 < 3 ? 0.03 : 0.01 }, wait: { _ in 150_000 }) == 7.95)
        #expect(seconds { $0 < 4 ? 150_000 : 160_000 } == 9)
        #expect(seconds(usual: 15_000) { $0 < 4 ? 150_000 : 160_000 } == 5)
    }

    @Test("CUBIC's queue at 3 Mbit/s, up to 300 ms, its plateau in the middle: never")
    func cubic() {
        // RFC 9438 figure 1: packets above the plateau are 0.4 t³; each waits 4 ms at 3 Mbit/s.
        #expect(
            seconds { time in
                let period = (time + 5).truncatingRemainder(dividingBy: 6) - 3
                return 240_000 + Int64(0.4 * period * period * period * 4_000)
            } == nil)
    }
}
