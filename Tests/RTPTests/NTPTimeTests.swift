import Primitives
import RTP
import Testing

@Suite("NTP timestamps")
struct NTPTimeTests {
    @Test(
        "A timestamp is read to the nanosecond, up to the end of its era",
        arguments: [
            (0, 0), (1 << 32, 1_000_000_000), (0x8000_0000, 500_000_000), (0x0000_0001_4000_0000, 1_250_000_000),
            (.max, 4_294_967_295_999_999_999),
        ] as [(UInt64, Int64)])
    func reading(timestamp: UInt64, nanoseconds: Int64) {
        #expect(NTPTime.since1900(timestamp) == .nanoseconds(nanoseconds))
    }

    @Test("What the server's clock writes is read back")
    func both() {
        let start = NTPTime.since1900(NTPTime.at(.zero))
        #expect(start == .seconds(3_913_056_000))
        let passed = NTPTime.since1900(NTPTime.at(MonotonicTime(nanoseconds: 12_345_678_901))) - start
        #expect((12_345_678_900...12_345_678_901).contains(passed.nanoseconds))
    }
}
