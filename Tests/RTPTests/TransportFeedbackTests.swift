import Primitives
import RTP
import TestSupport
import Testing

@Suite("Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01)")
struct TransportFeedbackTests {
    private struct Read {
        var feedback: TransportFeedback
        var statuses: [TransportFeedback.Status]
    }

    private func read(_ bytes: [UInt8]) throws -> Read {
        var compound = try unwrapped(RTCPCompound(bytes.span.bytes))
        let packet = try unwrapped(compound.next(in: bytes.span.bytes))
        guard case .transportFeedback(let feedback) = packet else { throw Wrong() }
        var reader = try unwrapped(feedback.makeReader(in: bytes.span.bytes))
        var statuses: [TransportFeedback.Status] = []
        while let status = reader.next(in: bytes.span.bytes) { statuses.append(status) }
        return Read(feedback: feedback, statuses: statuses)
    }

    private struct Wrong: Error {}

    @Test("Every kind of chunk, bytes laid out by hand")
    func chunks() throws {
        // Base 65,534, 14 packets, reference time -1 (64 ms before 0), feedback 7: a run of 3 small, a run of 2 lost, and
        // a one-bit vector of 1 0 1 0 0 0 0 0 1 with 5 symbols unused (10 101000 00100000).
        let bytes = try unwrapped(
            ClientCaptures.bytes("8fcd0007 00000001 00000002 fffe000e ffffff07 2003 0002 a820 ff0010 04 08 02"))
        let result = try read(bytes)
        #expect(result.feedback.baseSequence == 65_534)
        #expect(result.feedback.referenceTime == -1)
        #expect(result.feedback.feedbackCount == 7)
        #expect(result.statuses.map(\.sequence) == (0..<14).map { UInt16(truncatingIfNeeded: 65_534 + $0) })
        let expected: [Int64?] = [-1, -1, 15, nil, nil, 19, nil, 27, nil, nil, nil, nil, nil, 29]
        #expect(result.statuses.map(\.arrival) == expected)
    }

    @Test("Chromium pads by less than a word: captured feedback")
    func padded() throws {
        let bytes = try unwrapped(
            ClientCaptures.bytes("afcd0007 fa17fa17 c0e741fd 00010007 030ab500 2007 cf000014980000 000003"))
        let result = try read(bytes)
        #expect(result.feedback.packetCount == 7)
        let start: Int64 = 0x030ab5 * 256
        #expect(result.statuses.map(\.arrival) == [207, 207, 207, 227, 379, 379, 379].map { start + $0 })
    }

    @Test("Two-bit vector with a large, negative delta")
    func twoBit() throws {
        // Symbols 1 2 0 1 then three unused: 11 01 10 00 01 00 00 00.
        let bytes = try unwrapped(
            ClientCaptures.bytes("8fcd0006 00000001 00000002 00010004 00000200 d840 04 fff6 ff 0000"))
        let expected: [Int64?] = [516, 506, nil, 761]
        #expect(try read(bytes).statuses.map(\.arrival) == expected)
    }

    @Test("Truncated chunks or deltas are refused; an empty run is skipped")
    func broken() throws {
        for hex in [
            "8fcd0005 00000001 00000002 00010004 00000200 2003 0000",  // One packet has no chunk.
            "8fcd0005 00000001 00000002 00010004 00000200 2004 0101",  // Two deltas are missing.
        ] {
            let bytes = try unwrapped(ClientCaptures.bytes(hex))
            var compound = try unwrapped(RTCPCompound(bytes.span.bytes))
            guard case .transportFeedback(let feedback)? = compound.next(in: bytes.span.bytes) else { throw Wrong() }
            #expect(feedback.makeReader(in: bytes.span.bytes) == nil)
        }
        let empty = try unwrapped(
            ClientCaptures.bytes("8fcd0006 00000001 00000002 00010002 00000200 2000 2002 01 02 0000"))
        #expect(try read(empty).statuses.map(\.arrival) == [513, 515])
    }

    @Test("H6: written feedback is read back, with any loss, jitter, reordering in time and slot size")
    func property() throws {
        var random = RandomSource(seed: 3)
        for round in 0..<400 {
            let lossy = Int.random(in: 0...99, using: &random)
            let jitter = Int64([1, 40, 300, 9_000][round & 3])
            var arrivals: [PacketArrival] = []
            var time = Int64.random(in: 0...4_000_000_000, using: &random)
            let base = Int64.random(in: 60_000...140_000, using: &random)
            for sequence in base..<(base + Int64.random(in: 1...400, using: &random)) {
                time += Int64.random(in: -jitter...(2 * jitter), using: &random) * 250
                if Int.random(in: 0...99, using: &random) < lossy { continue }
                arrivals.append(
                    PacketArrival(sequence: sequence, time: MonotonicTime(nanoseconds: max(0, time) * 1_000)))
            }
            guard !arrivals.isEmpty else { continue }
            try check(arrivals, from: base, capacity: Int.random(in: 32...1_200, using: &random))
        }
    }

    /// Writes as many feedbacks as it takes, reads them back and compares.
    private func check(_ arrivals: [PacketArrival], from base: Int64, capacity: Int) throws {
        var rest = arrivals
        var next = base
        var found: [Int64: Int64] = [:]
        while !rest.isEmpty {
            var taken = 0
            var backing = [UInt8](repeating: 0x5a, count: capacity + 16)
            let length = backing.withUnsafeMutableBytes { whole in
                var writer = RTCPWriter(UnsafeMutableRawBufferPointer(rebasing: whole[..<capacity]))
                taken = writer.appendTransportFeedback(
                    senderSSRC: 1, mediaSSRC: 2, feedbackCount: 3, from: next, arrivals: rest.span)
                return writer.length
            }
            #expect(backing[capacity...].allSatisfy { $0 == 0x5a })
            guard taken > 0 else {
                // Only a long gap in a tiny slot cannot be reported at all.
                #expect(capacity < 60)
                return
            }
            #expect(length <= capacity)
            let result = try read(Array(backing[..<length]))
            #expect(result.feedback.baseSequence == UInt16(truncatingIfNeeded: next))
            for (index, status) in result.statuses.enumerated() {
                #expect(status.sequence == UInt16(truncatingIfNeeded: next + Int64(index)))
                if let arrival = status.arrival { found[next + Int64(index)] = arrival }
            }
            let end = rest[taken - 1].sequence + 1
            #expect(Int64(result.statuses.count) == end - next)
            next = end
            rest.removeFirst(taken)
        }
        #expect(found.count == arrivals.count)
        for arrival in arrivals {
            // The reference time has 24 bits of 64 ms: 12 days, more than any of these.
            #expect(found[arrival.sequence] == arrival.time.microseconds / 250)
        }
    }

    @Test("Two packets further apart than a delta can express go into two packets of feedback")
    func farApart() {
        let arrivals = [
            PacketArrival(sequence: 1, time: MonotonicTime(milliseconds: 0)),
            PacketArrival(sequence: 2, time: MonotonicTime(milliseconds: 8_200)),
        ]
        [UInt8]().withSlot { slot in
            var writer = RTCPWriter(slot)
            let taken = writer.appendTransportFeedback(
                senderSSRC: 1, mediaSSRC: 2, feedbackCount: 0, from: 1, arrivals: arrivals.span)
            #expect(taken == 1)
        }
    }

    @Test("Packets lost ahead of the first arrival are reported, too")
    func lostFirst() throws {
        let arrivals = [PacketArrival(sequence: 20, time: MonotonicTime(milliseconds: 64))]
        let bytes = [UInt8]().withSlot { slot in
            var writer = RTCPWriter(slot)
            _ = writer.appendTransportFeedback(
                senderSSRC: 1, mediaSSRC: 2, feedbackCount: 0, from: 1, arrivals: arrivals.span)
            return [UInt8](slot[..<writer.length])
        }
        let result = try read(bytes)
        #expect(result.statuses.count == 20)
        #expect(result.statuses.prefix(19).allSatisfy { $0.arrival == nil })
        #expect(result.statuses.last?.arrival == 256)
    }
}
