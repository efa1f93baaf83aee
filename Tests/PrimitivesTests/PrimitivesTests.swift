import Primitives
import Testing

@Suite("Primitives")
struct PrimitivesTests {
    @Test("A duration added to the distant future is the distant future")
    func distantFutureSaturates() {
        #expect(MonotonicTime.distantFuture + .seconds(1) == .distantFuture)
    }

    @Test("A Duration is converted to whole nanoseconds")
    func durations() {
        #expect(TimeSpan(Duration.milliseconds(1_500)) == .milliseconds(1_500))
        #expect(TimeSpan(Duration.nanoseconds(-7)).nanoseconds == -7)
    }

    @Test("IPv4 is kept mapped, and loopback is recognized in both families")
    func addresses() {
        let v4 = SocketAddress(ipv4: 0x7f00_0001, port: 7900)
        #expect(v4.isIPv4 && v4.isLoopback && v4.host == "127.0.0.1")
        #expect(Array(v4.bytes.suffix(6)) == [0xff, 0xff, 127, 0, 0, 1])
        let v6 = SocketAddress(high: 0, low: 1, port: 7900)
        #expect(!v6.isIPv4 && v6.isLoopback)
    }

    @Test(
        "IPv6 is written as RFC 5952 requires",
        arguments: [
            (0x2001_0db8_0000_0000, 1, "2001:db8::1"), (0, 1, "::1"), (0, 0, "::"),
            (0x2001_0db8_0000_0001, 0x0001_0001_0001_0001, "2001:db8:0:1:1:1:1:1"),
            (0x2001_0000_0000_0001, 0x0000_0000_0000_0001, "2001:0:0:1::1"),
            (0x2001_0db8_0000_0000, 0x0001_0000_0000_0001, "2001:db8::1:0:0:1"),
            (0xfe80_0001_0002_0003, 0x0004_0005_0006_0000, "fe80:1:2:3:4:5:6:0"),
        ] as [(UInt64, UInt64, String)])
    func text(_ high: UInt64, _ low: UInt64, _ text: String) {
        #expect(SocketAddress(high: high, low: low, port: 0).host == text)
    }

    @Test("A batch keeps datagrams contiguous and refuses those that do not fit")
    func batch() {
        var batch = OutboundBatch(datagrams: 2, bytes: 8)
        let there = SocketAddress(ipv4: 0x0a00_0001, port: 9)
        let first = [UInt8](repeating: 1, count: 5)
        let second = [UInt8](repeating: 2, count: 3)
        #expect(first.withUnsafeBytes { batch.append($0, to: there) })
        #expect(second.withUnsafeBytes { batch.append($0, to: there) })
        #expect(batch.entries.map(\.offset) == [0, 5])
        #expect(batch.entries.map(\.length) == [5, 3])
        #expect(batch.reserve(1) == nil)
        batch.removeAll()
        #expect(batch.count == 0 && batch.used == 0)
        #expect(!Array(repeating: UInt8(0), count: 9).withUnsafeBytes { batch.append($0, to: there) })
    }

    @Test("Each drop is counted under its reason")
    func drops() {
        var counters = DropCounters()
        for reason in DropReason.allCases { counters.count(reason) }
        counters.count(.truncated)
        #expect(counters[.truncated] == 2 && counters[.rtpMalformed] == 1)
        #expect(counters.total == UInt64(DropReason.allCases.count) + 1)
    }
}
