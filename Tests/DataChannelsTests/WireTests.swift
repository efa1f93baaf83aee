import Testing

@testable import DataChannels
@testable import Primitives

@Suite("Data channels: wire formats")
struct WireTests {
    @Test("CRC32c of the vectors of RFC 3720 section B.4, by instruction and by table")
    func checksums() {
        let vectors: [([UInt8], UInt32)] = [
            ([UInt8](repeating: 0, count: 32), 0x8a91_36aa), ([UInt8](repeating: 0xff, count: 32), 0x62a8_ab43),
            (Array(0..<32), 0x46dd_794e), ((0..<32).map { 31 - $0 }, 0x113f_db5c),
            (Array("123456789".utf8), 0xe306_9283),
        ]
        for (bytes, sum) in vectors {
            bytes.withUnsafeBytes {
                var whole = CRC32c()
                whole.update($0)
                #expect(whole.value == sum)
                #expect(CRC32c.portable(of: $0) == sum)
            }
        }
    }

    @Test("DCEP messages survive the wire; malformed ones are refused")
    func channelMessages() {
        let terms = DataChannelTerms(
            label: "chat", subprotocol: "x", isOrdered: false, reliability: .retransmissions(2))
        #expect(DCEPMessage(DCEPMessage.open(terms).bytes) == .open(terms))
        #expect(DCEPMessage([2]) == .acknowledgement)
        // Chromium's OPEN of an ordered, reliable channel "a".
        #expect(DCEPMessage([3, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x61]) == .open(DataChannelTerms(label: "a")))
        let malformed: [[UInt8]] = [
            [], [3], [4], [3, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0x61], [3, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [3, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0xff],
            [3, 0, 1, 0, 0, 0, 0, 0, 9, 0, 0, 0] + [UInt8](repeating: 65, count: 2_304),
        ]
        for bytes in malformed { #expect(DCEPMessage(bytes) == nil) }
    }

    @Test("INIT: unknown parameters are skipped, zero tags and streams refused")
    func initiation() {
        var bytes = Initiation(tag: 7, window: 9, streams: 3, firstTSN: 11).bytes
        bytes.append(parameter: 0xc123, [1, 2, 3])
        let read = bytes.withUnsafeBytes { Initiation($0) }
        #expect(read == Initiation(tag: 7, window: 9, streams: 3, firstTSN: 11))
        for range in [0..<4, 8..<10, 10..<12] {
            var broken = bytes
            for index in range { broken[index] = 0 }
            #expect(broken.withUnsafeBytes { Initiation($0) } == nil)
        }
    }

    @Test("Arrived numbers: gaps are reported, filled, skipped, across the wrap-around")
    func tracker() {
        var tracker = TSNTracker(firstTSN: .max - 1)
        func unwrap(_ wire: UInt32) -> Int64 { Serial.unwrap(wire, near: tracker.cumulative) }
        for wire in [UInt32.max - 1, 1, 2, 5] { tracker.insert(unwrap(wire)) }
        #expect(tracker.classify(unwrap(1)) == .duplicate)
        #expect(tracker.classify(unwrap(.max)) == .new)
        #expect(tracker.classify(tracker.cumulative + 8_193) == .tooFar)
        let gaps = report(&tracker)
        #expect(gaps == [3, 4, 7, 7])
        tracker.insert(unwrap(.max))
        tracker.insert(unwrap(0))
        #expect(Serial.wire(tracker.cumulative) == 2)
        let rest = report(&tracker), skipped = tracker.skip(to: tracker.cumulative + 3)
        #expect(rest == [3, 3] && skipped)
        #expect(Serial.wire(tracker.cumulative) == 5 && !tracker.hasGap)
    }

    /// The gap blocks of a report.
    private func report(_ tracker: inout TSNTracker) -> [Int] {
        var buffer = [UInt8](repeating: 0, count: 1_160)
        return buffer.withUnsafeMutableBytes { buffer in
            var packet = PacketWriter(buffer, from: 1, to: 2, tag: 3)
            _ = tracker.writeReport(window: 1, into: &packet)
            return stride(from: 28, to: packet.length, by: 2).map { Int(buffer[$0]) << 8 | Int(buffer[$0 + 1]) }
        }
    }
}
