import Primitives
import Testing

@testable import CongestionControl

@Suite("The limit by the losses in receiver reports")
struct ReportedLossTests {
    private func at(_ seconds: Int) -> MonotonicTime { .zero + .seconds(Int64(seconds)) }

    @Test("A layer that the link does not carry is tried ever more seldom, whether reports come each second or five")
    func seldom() {
        for interval in [1, 5] {
            var limit = ReportedLoss()
            var tries: [Int] = []
            var sent = 1.7e6
            for second in stride(from: 100, to: 700, by: interval) {
                // A link of 1 Mbit/s, and layers of 0.5 and 1.7.
                if sent > 1e6 { tries.append(second) }
                limit.apply(lost: max(0, 1 - 1e6 / sent), sent: sent, at: at(second))
                sent = limit.bitsPerSecond(at: at(second)).map { $0 < 1.87e6 } ?? false ? 0.5e6 : 1.7e6
            }
            let distances = zip(tries, tries.dropFirst()).map { $1 - $0 }
            #expect(distances.suffix(10).allSatisfy { $0 >= 25 }, "\(distances)")
            #expect(tries.count > 15, "a link that has become better would be found")
        }
    }

    @Test("After a pause in which nothing was reported the former limit is not in force again")
    func forgotten() {
        var limit = ReportedLoss()
        limit.apply(lost: 0.5, sent: 1e6, at: at(100))
        #expect(limit.bitsPerSecond(at: at(115)) == 750_000)
        #expect(limit.bitsPerSecond(at: at(116)) == nil)
        limit.apply(lost: 0, sent: 1e6, at: at(130))
        #expect(limit.bitsPerSecond(at: at(130)) == nil)
    }

    @Test("Losses up to a tenth neither lower the limit nor let it grow, and greater ones lower it to what was sent")
    func between() {
        var limit = ReportedLoss()
        limit.apply(lost: 0.2, sent: 1e6, at: at(100))
        for second in 101..<110 { limit.apply(lost: second % 2 == 0 ? 0.1 : 0.02, sent: 1e6, at: at(second)) }
        #expect(limit.bitsPerSecond(at: at(110)) == 900_000)
        for second in 111..<200 { limit.apply(lost: 0.2, sent: 500_000, at: at(second)) }
        #expect(limit.bitsPerSecond(at: at(200)) == 450_000)
    }

    @Test("What audio loses while videos are muted is no limit of theirs")
    func audioAlone() {
        var limit = ReportedLoss()
        for second in 100..<110 { limit.apply(lost: 0.2, sent: 40_000, at: at(second)) }
        #expect(limit.bitsPerSecond(at: at(110)) == nil)
        limit.apply(lost: 0.2, sent: 1e6, at: at(110))
        for second in 111..<120 { limit.apply(lost: 0.2, sent: 40_000, at: at(second)) }
        #expect(limit.bitsPerSecond(at: at(120)) == 900_000)
    }
}
