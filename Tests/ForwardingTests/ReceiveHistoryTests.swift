import PayloadFormats
import Primitives
import Testing

@testable import Forwarding

@Suite("Receive: packet history")
struct ReceiveHistoryTests {
    private func expect(_ condition: Bool, line: Int = #line) {
        #expect(condition, "line \(line)")
    }

    private static func insert(
        _ history: inout PacketHistory, _ sequence: Int64, length: Int = 100, at now: MonotonicTime
    ) {
        let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: sequence), count: length)
        let record = PacketRecord(
            sequence: sequence, timestamp: sequence * 10, arrival: now, position: 0, length: UInt16(length),
            payloadOffset: 12, payloadType: 96, flags: [], audioLevel: 255, format: 0, extensions: ExtensionLocations(),
            summary: .init())
        bytes.withUnsafeBytes { history.insert($0, record) }
    }

    private static func isIntact(_ history: borrowing PacketHistory, _ sequence: Int64, length: Int = 100) -> Bool {
        guard let record = history.record(sequence) else { return false }
        let bytes = history.packet(record)
        return bytes.count == length && bytes.allSatisfy { $0 == UInt8(truncatingIfNeeded: sequence) }
    }

    @Test("Stored packets are found by number, late ones too, and no others")
    func lookUp() {
        var history = PacketHistory(.audio)
        for sequence in [Int64(70_000), 70_001, 70_003, 70_002] { Self.insert(&history, sequence, at: at(0)) }
        for sequence in Int64(70_000)...70_003 { let intact = Self.isIntact(history, sequence); #expect(intact) }
        expect(history.record(69_999) == nil)
        expect(history.record(70_004) == nil)
        expect(history.record(70_000 + 32) == nil)
        expect(history.highest == 70_003)
    }

    @Test(
        "Old packets are evicted whole and never found with another packet's bytes", arguments: [40, 333, 1200, 2048])
    func eviction(length: Int) {
        let limits = PacketHistory.Limits(
            initialBytes: 4096, maximumBytes: 8192, maximumRecords: 128, retention: .milliseconds(100))
        var history = PacketHistory(limits)
        for sequence in Int64(0)..<600 {
            Self.insert(&history, sequence, length: length, at: at(Double(sequence) * 5))
            var alive = 0
            for old in max(0, sequence - 150)...sequence {
                guard history.record(old) != nil else { continue }
                alive += 1
                let intact = Self.isIntact(history, old, length: length); #expect(intact)
            }
            #expect(alive >= 1)
        }
    }

    @Test("The history grows while packets within the retention would be evicted, up to its limit")
    func growth() {
        var history = PacketHistory(.video)
        let small = history.memoryBytes
        // 500 packets/s of 1,100 B is 550 kB a second: all of the last second is there.
        for sequence in Int64(0)..<1500 { Self.insert(&history, sequence, length: 1100, at: at(Double(sequence) * 2)) }
        for sequence in Int64(1000)..<1500 {
            let intact = Self.isIntact(history, sequence, length: 1100); #expect(intact)
        }
        expect(history.memoryBytes > small)
        let grown = history.memoryBytes
        for sequence in Int64(1500)..<20_000 {
            Self.insert(&history, sequence, length: 1100, at: at(3000 + Double(sequence) * 0.1))
        }
        expect(history.memoryBytes >= grown)
        expect(history.memoryBytes <= (1 << 20) + 1024 * MemoryLayout<PacketRecord>.stride)
    }

    @Test("A burst after a quiet period is stored whole, wherever in the ring it starts", arguments: 0..<40)
    func burst(quiet: Int) {
        // Audio in bursts of half a second (B10), and a slide of 200 kB, after packets now and then (DTX, a still screen).
        for (limits, length, count) in [(PacketHistory.Limits.audio, 240, 50), (.video, 1_100, 190)] {
            var history = PacketHistory(limits)
            for sequence in 0..<quiet {
                Self.insert(
                    &history, Int64(sequence), length: 7 * length / 4, at: at(Double(sequence) * 400))
            }
            for sequence in quiet..<(quiet + count) {
                Self.insert(&history, Int64(sequence), length: length, at: at(100_000))
            }
            for sequence in quiet..<(quiet + count) {
                let intact = Self.isIntact(history, Int64(sequence), length: length); #expect(intact)
            }
        }
    }

    @Test("The history of a slow stream stays small")
    func staysSmall() {
        var history = PacketHistory(.video)
        let small = history.memoryBytes
        for sequence in Int64(0)..<600 { Self.insert(&history, sequence, length: 300, at: at(Double(sequence) * 250)) }
        expect(history.memoryBytes == small)
    }

    @Test("Growing keeps live packets and restores no overwritten ones")
    func growthKeeps() {
        let limits = PacketHistory.Limits(
            initialBytes: 4096, maximumBytes: 1 << 16, maximumRecords: 512, retention: .seconds(1))
        var history = PacketHistory(limits)
        // First slowly: several laps without growth. Then fast.
        for sequence in Int64(0)..<200 { Self.insert(&history, sequence, length: 500, at: at(Double(sequence) * 400)) }
        for sequence in Int64(200)..<500 {
            Self.insert(&history, sequence, length: 500, at: at(80_000 + Double(sequence)))
        }
        for sequence in Int64(0)..<500 where history.record(sequence) != nil {
            let intact = Self.isIntact(history, sequence, length: 500); #expect(intact)
        }
        for sequence in Int64(400)..<500 { let intact = Self.isIntact(history, sequence, length: 500); #expect(intact) }
    }
}
