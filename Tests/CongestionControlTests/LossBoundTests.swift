import Testing

@testable import CongestionControl

@Suite("Loss bound")
struct LossBoundTests {
    /// 1,200 bytes each 8 ms, 1.2 Mbit/s; a report each 104 ms. What `isMissing` is reported as lost, and taken back two reports later where it comes late.
    private static func run(seconds: Int64, straying: Bool, comesLate: Bool, isMissing: (Int64) -> Bool) -> LossBound {
        var bound = LossBound()
        var late: [(sent: Int64, due: Int64)] = []
        for number in 0..<seconds * 125 {
            let sent = number * 8_000
            bound.add(1_200, sent: sent, isLost: isMissing(number))
            if isMissing(number), comesLate { late.append((sent, number + 26)) }
            guard number % 13 == 12 else { continue }
            while let first = late.first, first.due <= number {
                bound.recovered(sent: first.sent)
                late.removeFirst()
            }
            bound.update(estimate: 2_500e3, delivered: 1_200e3, straying: straying)
        }
        return bound
    }

    @Test("H4: packets reported lost that arrive later do not count as loss, however many there are")
    func late() {
        let bound = Self.run(seconds: 10, straying: true, comesLate: true) { $0 % 3 == 0 }
        #expect(bound.averageLoss == 0)
        #expect(bound.limit == nil)
    }

    @Test("Packets that never arrive count as loss, also on a path with scattered delays", arguments: [false, true])
    func lost(straying: Bool) throws {
        let bound = Self.run(seconds: 10, straying: straying, comesLate: false) { $0 % 3 == 0 }
        #expect(abs(bound.averageLoss - 1.0 / 3) < 0.03)
        #expect(try #require(bound.limit) < 1_500e3)
    }
}
