import Testing

@testable import Recorder

@Suite("Disk reserve")
struct DiskReserveTests {
    @Test("There is room down to the reserve, and afterwards only a tenth or 16 MB above it")
    func margin() {
        for (reserve, again) in [(Int64(0), Int64(16 << 20)), (1_000_000_000, 1_100_000_000)] {
            var disk = DiskReserve(reserve)
            let looks = [reserve + 1, reserve, again, again + 1, reserve + 1].map { disk.look(free: $0) }
            #expect(looks == [true, false, false, true, true] && disk.hasRoom)
        }
    }
}
