import Testing

@testable import Recorder

@Suite("Disk reserve")
struct DiskReserveTests {
    @Test("There is room down to the reserve, and afterwards only a tenth or 16 MB above it")
    func margin() {
        for (reserve, again) in [(Int64(0), Int64(16 << 20)), (1_000_000_000, 1_100_000_000)] {
            var disk = DiskReserve(reserve)
            #expect(disk.look(free: reserve + 1))
            #expect(!disk.look(free: reserve) && !disk.hasRoom)
            #expect(!disk.look(free: again))
            #expect(disk.look(free: again + 1) && disk.look(free: reserve + 1))
        }
    }
}
