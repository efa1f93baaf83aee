import MP4
import MediaControl
import Primitives
import Testing

@testable import Recording

@Suite
struct AudioRecordingTests {
    /// 20 ms of CELT in one frame, stereo.
    private static let toc: UInt8 = 0xfc

    private func audio(_ recorded: inout Recorded, packets: Range<Int>, lost: Set<Int> = []) {
        for packet in packets where !lost.contains(packet) {
            recorded.packet(
                .opus, sequence: packet, timestamp: UInt32(packet * 960), marker: false,
                [Self.toc, UInt8(truncatingIfNeeded: packet), 1, 2], at: .seconds(Double(packet) / 50))
        }
    }

    @Test(
        "E14: packets become samples of their own length; what is lost is silence of the same length, and a gap in the log"
    )
    func silence() {
        var recorded = Recorded()
        audio(&recorded, packets: 0..<100, lost: [30, 31, 32])
        recorded.with { $0.advance(to: .seconds(4), into: &$1) }
        recorded.finish()
        let samples = recorded.samples()
        #expect(samples.map(\.time) == samples.indices.map { $0 * 960 })
        #expect(samples.count == 100)
        #expect(samples[30].bytes == [0xfc])
        #expect(recorded.gaps.count == 1)
        #expect(recorded.gaps[0].milliseconds == 60)
        #expect(recorded.gaps[0].packets == 3)
    }

    @Test("E14: packets that the worker dropped before the track ended, and a file that the disk lost, are gaps")
    func missingAtTheEnd() {
        var recorded = Recorded()
        audio(&recorded, packets: 0..<50)
        recorded.with { $0.noteGap(.overload, at: .seconds(1), into: &$1) }
        recorded.finish(at: .seconds(3))
        #expect(recorded.gaps.map(\.reason) == [.overload])
        var other = Recorded()
        audio(&other, packets: 0..<50)
        other.with { recorder, _ in recorder.abandonSegment() }
        other.with { $0.finishAbandoned(at: .seconds(3), into: &$1) }
        #expect(other.gaps.map(\.reason) == [.disk])
        #expect(other.gaps.allSatisfy { abs($0.milliseconds - 2_000) < 30 }, "\(other.gaps)")
        // Another file after the disk came back: the gap lies between the two.
        var third = Recorded()
        audio(&third, packets: 0..<50)
        third.with { recorder, _ in recorder.abandonSegment() }
        third.with { $0.noteGap(.disk, at: .seconds(2), into: &$1) }
        audio(&third, packets: 100..<150)
        third.finish(at: .seconds(4))
        #expect(third.gaps.map(\.reason) == [.disk] && third.gaps.map(\.milliseconds) == [1_000])
    }

    @Test("A pause of the sender (DTX) is silence as long as it was, in few packets, and no gap")
    func discontinuousTransmission() {
        var recorded = Recorded()
        audio(&recorded, packets: 0..<10)
        // The sequence goes on, the timestamp jumps by a second.
        recorded.packet(
            .opus, sequence: 10, timestamp: 60 * 960, marker: true, [Self.toc, 9, 9, 9], at: .seconds(1.2))
        recorded.finish()
        let samples = recorded.samples()
        #expect(samples.last?.time == 60 * 960)
        #expect(zip(samples, samples.dropFirst()).allSatisfy { $0.time + $0.duration == $1.time })
        #expect(samples[10].bytes == [Self.toc | 3, 6])
        #expect(samples[10].duration == 5_760)
        #expect(samples.count == 10 + 8 + 2 + 1)
        #expect(recorded.gaps.isEmpty)
    }

    @Test("What is lost behind packets that the network held up is a gap, and no jump of the publisher's clock")
    func lostAfterStall() {
        var recorded = Recorded()
        audio(&recorded, packets: 0..<50)
        for packet in Array(50..<100) + Array(200..<300) {
            recorded.packet(
                .opus, sequence: packet, timestamp: UInt32(packet * 960), marker: false, [Self.toc, 1, 2, 3],
                at: packet < 200 ? .seconds(4) : .seconds(Double(packet) / 50 + 0.02))
        }
        recorded.with { $0.advance(to: .seconds(8), into: &$1) }
        recorded.finish()
        #expect(recorded.notes.filter { if case .clockStep = $0 { true } else { false } }.isEmpty)
        #expect(recorded.samples().last.map { $0.time + $0.duration } == 300 * 960)
        #expect(recorded.gaps.map(\.reason) == [.loss] && recorded.gaps.map(\.milliseconds) == [2_000])
    }

    /// A sender report with the timestamp of a packet, at `wall` seconds of the publisher's clock.
    private func report(_ recorded: inout Recorded, packet: Int, wall: Double, at arrival: Double) {
        let anchor = ClockAnchor(
            timestamp: UInt32(packet * 960), ntp: UInt64((3_900_000_000 + wall) * 4_294_967_296),
            arrival: .seconds(arrival))
        recorded.with { $0.receive(anchor, into: &$1) }
    }

    private func steps(_ recorded: Recorded) -> [Int64] {
        recorded.notes.compactMap { if case .clockStep(let units, _) = $0 { units } else { nil } }
    }

    @Test("What a publisher leaves out of its timestamps while it captures nothing is silence from its next report on")
    func standstill() {
        var recorded = Recorded()
        audio(&recorded, packets: 0..<50)
        report(&recorded, packet: 50, wall: 1, at: 1)
        audio(&recorded, packets: 50..<100)
        report(&recorded, packet: 100, wall: 2, at: 2)
        // Six seconds without a packet; sequence and timestamps go on as if there had been none.
        for packet in 100..<300 {
            recorded.packet(
                .opus, sequence: packet, timestamp: UInt32(packet * 960), marker: false, [Self.toc, 1, 2, 3],
                at: .seconds(Double(packet) / 50 + 6))
            if packet == 199 { report(&recorded, packet: 200, wall: 10, at: 10) }
        }
        report(&recorded, packet: 300, wall: 12, at: 12)
        recorded.finish()
        #expect(steps(recorded).map { abs($0 + 6 * 48_000) <= 1 } == [true])
        let samples = recorded.samples(), end = samples.last.map { $0.time + $0.duration } ?? 0
        #expect(abs(end - (300 * 960 + 6 * 48_000)) <= 1)
        #expect(zip(samples, samples.dropFirst()).allSatisfy { $0.time + $0.duration == $1.time })
        #expect(recorded.gaps.isEmpty)
    }

    @Test("A standstill is noticed although the first report behind it comes before its packets")
    func reportBeforePackets() {
        var recorded = Recorded()
        audio(&recorded, packets: 0..<50)
        report(&recorded, packet: 50, wall: 1, at: 1)
        audio(&recorded, packets: 50..<100)
        report(&recorded, packet: 100, wall: 2, at: 2)
        report(&recorded, packet: 100, wall: 8, at: 8)
        for packet in 100..<400 {
            recorded.packet(
                .opus, sequence: packet, timestamp: UInt32(packet * 960), marker: false, [Self.toc, 1, 2, 3],
                at: .seconds(Double(packet) / 50 + 6))
            if packet == 349 { report(&recorded, packet: 350, wall: 13, at: 13) }
        }
        recorded.finish()
        #expect(steps(recorded).map { abs($0 + 6 * 48_000) <= 1 } == [true])
        let end = recorded.samples().last.map { $0.time + $0.duration } ?? 0
        #expect(abs(end - (400 * 960 + 6 * 48_000)) <= 1)
    }

    @Test("A publisher that was busy, and sends together what it captured meanwhile, leaves nothing out")
    func busyPublisher() {
        var recorded = Recorded()
        audio(&recorded, packets: 0..<50)
        report(&recorded, packet: 50, wall: 1, at: 1)
        audio(&recorded, packets: 50..<100)
        report(&recorded, packet: 100, wall: 2, at: 2)
        // It could do nothing for 0.8 s; the report that was due is sent with the first packets.
        for packet in 100..<300 {
            recorded.packet(
                .opus, sequence: packet, timestamp: UInt32(packet * 960), marker: false, [Self.toc, 1, 2, 3],
                at: .seconds(Double(max(packet, 140)) / 50))
            if packet == 100 { report(&recorded, packet: 101, wall: 2.8, at: 2.8) }
            if packet == 249 { report(&recorded, packet: 250, wall: 5, at: 5) }
        }
        recorded.finish()
        #expect(steps(recorded).isEmpty)
        #expect(recorded.samples().last.map { $0.time + $0.duration } == 300 * 960)
    }

    @Test("A wall clock that is set, and packets that the network held up, move nothing", arguments: [false, true])
    func noStandstill(isHeldUp: Bool) {
        var recorded = Recorded()
        audio(&recorded, packets: 0..<50)
        report(&recorded, packet: 50, wall: 1, at: 1)
        audio(&recorded, packets: 50..<100)
        report(&recorded, packet: 100, wall: 2, at: 2)
        for packet in 100..<300 {
            let arrival = Double(isHeldUp ? max(packet, 250) : packet) / 50
            recorded.packet(
                .opus, sequence: packet, timestamp: UInt32(packet * 960), marker: false, [Self.toc, 1, 2, 3],
                at: .seconds(arrival))
            if packet == 199 { report(&recorded, packet: 200, wall: isHeldUp ? 4 : 9, at: arrival) }
        }
        recorded.finish()
        #expect(steps(recorded).isEmpty)
        #expect(recorded.samples().last.map { $0.time + $0.duration } == 300 * 960)
    }

    @Test("Redundancy replaces a lost packet, and is left out where nothing was lost")
    func redundancy() {
        var recorded = Recorded()
        for packet in 0..<20 where packet != 10 {
            let redundant: [UInt8] = [Self.toc, UInt8(truncatingIfNeeded: packet - 1)]
            // One block 960 samples earlier, two bytes long; then the primary.
            let payload: [UInt8] =
                [0x80 | 96, UInt8(960 >> 6), UInt8((960 << 2) & 0xff), 2, 96] + redundant + [Self.toc, UInt8(packet)]
            recorded.packet(
                .red, sequence: packet, timestamp: UInt32(packet * 960), marker: false, payload,
                at: .seconds(Double(packet) / 50))
        }
        recorded.with { $0.advance(to: .seconds(4), into: &$1) }
        recorded.finish()
        #expect(recorded.samples().map(\.bytes) == (0..<20).map { [Self.toc, UInt8($0)] })
        #expect(recorded.gaps.isEmpty)
    }
}
