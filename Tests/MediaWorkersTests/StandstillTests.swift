import Primitives
import Testing

@testable import MediaWorkers

@Suite("A process that was stopped")
struct StandstillTests {
    @Test(
        "Datagrams are late if the socket was last empty more than half a second ago, and until it is empty again"
    )
    func late() {
        var standstill = Standstill()
        #expect(!standstill.isOver(at: MonotonicTime(milliseconds: 900_000)), "it has not looked yet")
        standstill.foundNoMore(at: MonotonicTime(milliseconds: 1_000))
        #expect(standstill.nextLook == MonotonicTime(milliseconds: 1_100))
        #expect(!standstill.isOver(at: MonotonicTime(milliseconds: 1_500)))
        #expect(standstill.isOver(at: MonotonicTime(milliseconds: 1_501)))
        #expect(standstill.isOver(at: MonotonicTime(milliseconds: 1_600)), "half of it is still there")
        standstill.foundNoMore(at: MonotonicTime(milliseconds: 1_600))
        #expect(!standstill.isOver(at: MonotonicTime(milliseconds: 1_601)))
    }
}
