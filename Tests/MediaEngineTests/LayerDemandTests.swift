import Primitives
import Testing

@testable import MediaEngine

@Suite("Demand for layers, as the publisher learns it")
struct LayerDemandTests {
    private func at(_ milliseconds: Int64) -> MonotonicTime { .zero + .milliseconds(milliseconds) }

    @Test("A layer without demand is announced once, after two seconds")
    func drop() {
        var demand = LayerDemand()
        #expect(demand.update(to: 0b001, of: 0b111, at: at(1_000)) == nil)
        #expect(demand.deadline == at(3_000))
        #expect(demand.update(to: 0b001, of: 0b111, at: at(2_000)) == nil)
        #expect(demand.deadline == at(3_000), "what lasts is not put off")
        #expect(demand.expire(with: 0b001, of: 0b111) == 0b001)
        #expect(demand.deadline == .distantFuture)
        #expect(demand.update(to: 0b001, of: 0b111, at: at(3_100)) == nil && demand.deadline == .distantFuture)
    }

    @Test("A layer with new demand is announced at once, apart from those whose two seconds still run")
    func rise() {
        var demand = LayerDemand()
        _ = demand.update(to: 0b001, of: 0b111, at: at(0))
        _ = demand.expire(with: 0b001, of: 0b111)
        #expect(demand.update(to: 0b100, of: 0b111, at: at(5_000)) == 0b101)
        #expect(demand.deadline == at(7_000), "the smallest is wanted no more")
        #expect(demand.expire(with: 0b100, of: 0b111) == 0b100)
    }

    @Test("Demand that returns within the two seconds leaves no deadline and announces nothing")
    func waver() {
        var demand = LayerDemand()
        _ = demand.update(to: 0b001, of: 0b111, at: at(0))
        #expect(demand.update(to: 0b111, of: 0b111, at: at(1_000)) == nil)
        #expect(demand.deadline == .distantFuture)
        #expect(demand.expire(with: 0b111, of: 0b111) == nil)
    }

    @Test("The publisher assumes demand for a layer that it adds later")
    func newLayer() {
        var demand = LayerDemand()
        #expect(demand.update(to: 0b1, of: 0b1, at: at(0)) == nil && demand.deadline == .distantFuture)
        #expect(demand.update(to: 0b11, of: 0b11, at: at(100)) == nil && demand.deadline == .distantFuture)
    }
}
