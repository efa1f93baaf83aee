import Primitives
import RTP
import TestSupport
import Testing

@Suite("Writing RTCP")
struct RTCPWriteTests {
    /// What `body` writes into a slot of `capacity` bytes.
    private func written(_ capacity: Int = 1500, _ body: (inout RTCPWriter) -> Void) -> [UInt8] {
        [UInt8]().withSlot(capacity: capacity) { slot in
            var writer = RTCPWriter(slot)
            body(&writer)
            return [UInt8](slot[..<writer.length])
        }
    }

    @Test("Reports, descriptions and BYE are laid out as RFC 3550 draws them")
    func reports() {
        let block = ReportBlock(
            ssrc: 0xaabb_ccdd, fractionLost: 0x40, cumulativeLost: -2, highestSequence: 0x1_0005, jitter: 7,
            lastSenderReport: 0x0304_0506, delaySinceLastSenderReport: 0x8000)
        let bytes = written { writer in
            writer.beginSenderReport(
                ssrc: 0x1122_3344, ntpTimestamp: 0x0102_0304_0506_0708, rtpTimestamp: 0x0a0b_0c0d, packetCount: 16,
                octetCount: 1_024)
            writer.addReportBlock(block)
            writer.appendSourceDescription(ssrc: 0x1122_3344, cname: Array("hi".utf8))
            writer.beginReceiverReport(ssrc: 1)
            writer.appendGoodbye([1, 2])
        }
        let expected = ClientCaptures.bytes(
            """
            81c8000c 11223344 0102030405060708 0a0b0c0d 00000010 00000400
            aabbccdd 40 fffffe 00010005 00000007 03040506 00008000
            81ca0003 11223344 0102 6869 00000000
            80c90001 00000001
            82cb0002 00000001 00000002
            """)
        #expect(bytes == expected)
    }

    @Test("Names of every length are terminated by a zero and padded to a word", arguments: 0...9)
    func names(_ length: Int) throws {
        let bytes = written { $0.appendSourceDescription(ssrc: 9, cname: [UInt8](repeating: 0x61, count: length)) }
        #expect(bytes.count % 4 == 0)
        #expect(bytes.last == 0)
        var compound = try unwrapped(RTCPCompound(bytes.span.bytes))
        guard case .sourceDescription(var description)? = compound.next(in: bytes.span.bytes) else {
            Issue.record("no description")
            return
        }
        #expect(description.next(in: bytes.span.bytes)?.length == length)
        #expect(description.next(in: bytes.span.bytes) == nil)
    }

    @Test("A report has at most 31 blocks; losses saturate at 24 bits")
    func manyBlocks() throws {
        let block = ReportBlock(
            ssrc: 1, fractionLost: 0, cumulativeLost: .max, highestSequence: 0, jitter: 0, lastSenderReport: 0,
            delaySinceLastSenderReport: 0)
        var added = 0
        let bytes = written { writer in
            writer.beginReceiverReport(ssrc: 1)
            for _ in 0..<40 where writer.addReportBlock(block) { added += 1 }
        }
        #expect(added == 31)
        var compound = try unwrapped(RTCPCompound(bytes.span.bytes))
        guard case .receiverReport(let report)? = compound.next(in: bytes.span.bytes) else {
            Issue.record("no report")
            return
        }
        #expect(report.blocks.count == 31)
        #expect(report.blocks.block(at: 30, in: bytes.span.bytes).cumulativeLost == 0x7f_ffff)
    }

    @Test("G4: missing numbers share an entry where it covers all of them, across the wrap, too")
    func nack() throws {
        let missing: [UInt16] = [65_530, 65_531, 65_535, 10, 11, 28, 100]
        let bytes = written { writer in
            writer.beginNACK(senderSSRC: 1, mediaSSRC: 2)
            for number in missing { writer.addMissing(number) }
        }
        var compound = try unwrapped(RTCPCompound(bytes.span.bytes))
        guard case .nack(let nack)? = compound.next(in: bytes.span.bytes) else {
            Issue.record("no NACK")
            return
        }
        // 65,530 with 65,546 = 10; then 11 begins a new entry with none in reach, 28 is 17 above it.
        #expect(nack.count == 4)
        #expect((0..<nack.count).flatMap { Array(nack.entry(at: $0, in: bytes.span.bytes)) } == missing)
    }

    @Test("Keyframe requests and REMB")
    func feedback() {
        let bytes = written { writer in
            writer.appendPictureLoss(senderSSRC: 1, mediaSSRC: 2)
            writer.appendFullIntraRequest(senderSSRC: 1, mediaSSRC: 5, sequenceNumber: 9)
            writer.appendMaximumBitrate(senderSSRC: 1, bitsPerSecond: 0x3ffff << 4, ssrcs: [5, 6])
        }
        let expected = ClientCaptures.bytes(
            """
            81ce0002 00000001 00000002
            84ce0004 00000001 00000000 00000005 09000000
            8fce0006 00000001 00000000 52454d42 0213ffff 00000005 00000006
            """)
        #expect(bytes == expected)
    }

    @Test(
        "The encoding of a bitrate loses less than one part in 131,072",
        arguments: [0, 1, 262_143, 262_144, 1_440_000, 1 << 40])
    func bitrate(_ bits: UInt64) throws {
        let bytes = written { $0.appendMaximumBitrate(senderSSRC: 1, bitsPerSecond: bits, ssrcs: [1]) }
        var compound = try unwrapped(RTCPCompound(bytes.span.bytes))
        guard case .maximumBitrate(let estimate)? = compound.next(in: bytes.span.bytes) else {
            Issue.record("no estimate")
            return
        }
        #expect(estimate.bitsPerSecond <= bits)
        #expect(bits - estimate.bitsPerSecond <= bits >> 17)
    }

    @Test("Extended reports are read back")
    func extendedReports() throws {
        let item = DelaySinceLastReceiverReport.Item(ssrc: 5, lastReceiverReport: 6, delay: 7)
        let bytes = written { writer in
            writer.appendReceiverReferenceTime(ssrc: 1, ntpTimestamp: 0x0102_0304_0506_0708)
            writer.appendDelaySinceLastReceiverReport(ssrc: 1, [item, item])
        }
        var compound = try unwrapped(RTCPCompound(bytes.span.bytes))
        guard case .receiverReferenceTime(let time)? = compound.next(in: bytes.span.bytes),
            case .delaySinceLastReceiverReport(let delays)? = compound.next(in: bytes.span.bytes)
        else {
            Issue.record("no extended reports")
            return
        }
        #expect(time.ntpTimestamp == 0x0102_0304_0506_0708)
        #expect(delays.count == 2)
        #expect(delays.item(at: 1, in: bytes.span.bytes) == item)
    }

    @Test("Nothing is written beyond a slot of any size, and what is written stays readable")
    func bounds() throws {
        for capacity in 0...160 {
            var backing = [UInt8](repeating: 0x5a, count: 300)
            let length = backing.withUnsafeMutableBytes { whole in
                var writer = RTCPWriter(UnsafeMutableRawBufferPointer(rebasing: whole[..<capacity]))
                writer.beginReceiverReport(ssrc: 1)
                writer.addReportBlock(
                    ReportBlock(
                        ssrc: 1, fractionLost: 0, cumulativeLost: 0, highestSequence: 0, jitter: 0,
                        lastSenderReport: 0, delaySinceLastSenderReport: 0))
                writer.appendSourceDescription(ssrc: 1, cname: [1, 2, 3])
                if writer.beginNACK(senderSSRC: 1, mediaSSRC: 2) {
                    for id in 0..<9 { writer.addMissing(UInt16(id * 40)) }
                }
                writer.appendPictureLoss(senderSSRC: 1, mediaSSRC: 2)
                writer.appendMaximumBitrate(senderSSRC: 1, bitsPerSecond: 9, ssrcs: [1, 2])
                writer.appendReceiverReferenceTime(ssrc: 1, ntpTimestamp: 2)
                return writer.length
            }
            #expect(length <= capacity)
            #expect(backing[capacity...].allSatisfy { $0 == 0x5a })
            let bytes = Array(backing[..<length])
            guard var compound = RTCPCompound(bytes.span.bytes) else {
                #expect(length == 0)
                continue
            }
            while compound.next(in: bytes.span.bytes) != nil {}
            #expect(!compound.isMalformed)
        }
    }
}
