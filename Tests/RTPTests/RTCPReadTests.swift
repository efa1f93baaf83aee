import Primitives
import RTP
import TestSupport
import Testing

/// Bytes laid out by hand after the diagrams of the RFCs.
@Suite("Reading RTCP")
struct RTCPReadTests {
    private func packets(_ hex: String) throws -> (packets: [RTCPPacket], isMalformed: Bool, bytes: [UInt8]) {
        let bytes = try unwrapped(ClientCaptures.bytes(hex))
        var compound = try unwrapped(RTCPCompound(bytes.span.bytes))
        var packets: [RTCPPacket] = []
        while let packet = compound.next(in: bytes.span.bytes) { packets.append(packet) }
        return (packets, compound.isMalformed, bytes)
    }

    @Test("Sender report with a block, then a description: RFC 3550 sections 6.4.1 and 6.5")
    func compound() throws {
        let read = try packets(
            """
            81c8000c 11223344 0102030405060708 0a0b0c0d 00000010 00000400
            aabbccdd 40 fffffe 00010005 00000007 03040506 00008000
            81ca0003 11223344 0102 6869 00000000
            """)
        guard case .senderReport(let report) = read.packets[0] else { throw Wrong() }
        #expect(report.ssrc == 0x1122_3344)
        #expect(report.ntpTimestamp == 0x0102_0304_0506_0708)
        #expect(report.compactTimestamp == 0x0304_0506)
        #expect(report.rtpTimestamp == 0x0a0b_0c0d)
        #expect(report.packetCount == 16)
        #expect(report.octetCount == 1024)
        let block = report.blocks.block(at: 0, in: read.bytes.span.bytes)
        #expect(block.ssrc == 0xaabb_ccdd)
        #expect(block.fractionLost == 0x40)
        #expect(block.cumulativeLost == -2)
        #expect(block.highestSequence == 0x1_0005)
        #expect(block.jitter == 7)
        #expect(block.lastSenderReport == 0x0304_0506)
        #expect(block.delaySinceLastSenderReport == 0x8000)
        guard case .sourceDescription(var description) = read.packets[1] else { throw Wrong() }
        let item = try unwrapped(description.next(in: read.bytes.span.bytes))
        #expect(item.ssrc == 0x1122_3344)
        #expect(item.type == SourceDescription.Item.cname)
        #expect(Array(read.bytes[item.offset..<(item.offset + item.length)]) == Array("hi".utf8))
        #expect(description.next(in: read.bytes.span.bytes) == nil)
        #expect(!read.isMalformed)
    }

    @Test("Two chunks of a description, each terminated and padded to a word")
    func chunks() throws {
        let read = try packets("82ca0006 00000001 0101 61 00 00000002 0103 626364 02 01 65 00 00000000")
        guard case .sourceDescription(var description) = read.packets[0] else { throw Wrong() }
        var found: [String] = []
        while let item = description.next(in: read.bytes.span.bytes) {
            found.append("\(item.ssrc) \(item.type) \(item.length)")
        }
        #expect(found == ["1 1 1", "2 1 3", "2 2 1"])
    }

    @Test("Generic NACK (RFC 4585 section 6.2.1)")
    func nack() throws {
        let read = try packets("81cd0004 00000001 00000002 fffe 8003 0010 0000")
        guard case .nack(let nack) = read.packets[0] else { throw Wrong() }
        #expect(nack.senderSSRC == 1)
        #expect(nack.mediaSSRC == 2)
        #expect(nack.count == 2)
        #expect(Array(nack.entry(at: 0, in: read.bytes.span.bytes)) == [65_534, 65_535, 0, 14])
        #expect(Array(nack.entry(at: 1, in: read.bytes.span.bytes)) == [16])
    }

    @Test("Reduced size (RFC 5506): PLI alone, FIR, REMB and unknown application feedback")
    func reducedSize() throws {
        let read = try packets(
            """
            81ce0002 00000001 00000002
            84ce0004 00000001 00000000 00000005 09000000
            8fce0006 00000001 00000000 52454d42 0213ffff 00000005 00000006
            8fce0003 00000001 00000000 41424344
            """)
        guard case .pictureLoss(let loss) = read.packets[0], case .fullIntraRequest(let request) = read.packets[1],
            case .maximumBitrate(let estimate) = read.packets[2], case .unknown(let unknown) = read.packets[3]
        else { throw Wrong() }
        #expect(loss.mediaSSRC == 2)
        #expect(request.entry(at: 0, in: read.bytes.span.bytes) == .init(ssrc: 5, sequenceNumber: 9))
        // Exponent 4, mantissa 0x3ffff.
        #expect(estimate.bitsPerSecond == 0x3ffff << 4)
        #expect((0..<estimate.count).map { estimate.ssrc(at: $0, in: read.bytes.span.bytes) } == [5, 6])
        #expect(unknown.type == 206)
    }

    @Test("Extended reports (RFC 3611): reference time, delays, unknown blocks between them")
    func extendedReport() throws {
        let read = try packets(
            """
            80cf000d 00000001
            04000002 0102030405060708
            2a000001 00000000
            05000006 00000002 00000003 00000004 00000005 00000006 00000007
            """)
        #expect(read.packets.count == 2)
        guard case .receiverReferenceTime(let time) = read.packets[0],
            case .delaySinceLastReceiverReport(let delays) = read.packets[1]
        else { throw Wrong() }
        #expect(time.senderSSRC == 1)
        #expect(time.ntpTimestamp == 0x0102_0304_0506_0708)
        #expect(delays.count == 2)
        #expect(
            delays.item(at: 1, in: read.bytes.span.bytes)
                == .init(ssrc: 5, lastReceiverReport: 6, delay: 7))
    }

    @Test("BYE, APP and an unknown type are framed; padding is no data")
    func others() throws {
        let read = try packets(
            """
            82cb0004 00000001 00000002 05 6c61746572 0000
            81cc0002 00000001 41424344
            80d00000
            a0c90002 00000007 00000004
            """)
        try #require(read.packets.count == 4)
        guard case .goodbye(let goodbye) = read.packets[0], case .application = read.packets[1],
            case .unknown = read.packets[2], case .receiverReport(let report) = read.packets[3]
        else { throw Wrong() }
        #expect((0..<goodbye.count).map { goodbye.ssrc(at: $0, in: read.bytes.span.bytes) } == [1, 2])
        #expect(report.blocks.count == 0)
        #expect(!read.isMalformed)
    }

    @Test(
        "A malformed packet ends the compound and keeps the packets before it",
        arguments: [
            "80c90001 00000001 81c90001 00000001",  // A block that is not there.
            "80c90001 00000001 80c90002 00000001",  // Longer than the datagram.
            "80c90001 00000001 00c90001 00000001",  // Another version.
            "80c90001 00000001 81ce0001 00000001",  // PLI without a media source.
            "80c90001 00000001 a0c90001 00000001",  // Padding that takes a part of the sender.
            "80c90001 00000001 80cf0002 00000001 04000002",  // A block that is cut off.
            "80c90001 00000001 80c9",
        ])
    func broken(_ hex: String) throws {
        let read = try packets(hex)
        #expect(read.packets.count == 1)
        #expect(read.isMalformed)
    }

    @Test("A datagram that does not start like RTCP is refused", arguments: ["", "80c8", "80600001", "40c80000"])
    func refused(_ hex: String) throws {
        let bytes = try unwrapped(ClientCaptures.bytes(hex))
        #expect(RTCPCompound(bytes.span.bytes) == nil)
    }

    @Test("A datagram is RTCP where its second byte is 192 to 223, else RTP (RFC 5761 section 4)")
    func demultiplexing() {
        #expect((UInt8.min...UInt8.max).filter { RTCPType.contains($0) } == Array(192...223))
    }

    struct Wrong: Error {}
}
