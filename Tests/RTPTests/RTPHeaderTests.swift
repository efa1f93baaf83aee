import Primitives
import RTP
import TestSupport
import Testing

@Suite("RTP header (RFC 3550 section 5.1)")
struct RTPHeaderTests {
    @Test("Fixed header")
    func fixed() throws {
        let packet = try unwrapped(ClientCaptures.bytes("80e0 1234 01020304 a1b2c3d4 aabb"))
        let header = try unwrapped(RTPHeader(packet.span.bytes))
        #expect(header.marker)
        #expect(header.payloadType == 96)
        #expect(header.sequenceNumber == 0x1234)
        #expect(header.timestamp == 0x0102_0304)
        #expect(header.ssrc == 0xa1b2_c3d4)
        #expect(header.payloadOffset == 12)
        #expect(header.payloadLength == 2)
        #expect(header.packetLength == packet.count)
    }

    @Test("Contributing sources, extension and padding")
    func full() throws {
        let packet = try unwrapped(
            ClientCaptures.bytes("b2 60 0001 00000002 00000003 00000004 00000005 bede0001 10aa0000 0102 000003"))
        let header = try unwrapped(RTPHeader(packet.span.bytes))
        #expect(header.isOneByteExtension)
        #expect(header.extensionOffset == 24)
        #expect(header.extensionLength == 4)
        #expect(header.payloadOffset == 28)
        #expect(header.payloadLength == 2)
        #expect(header.paddingLength == 3)
    }

    @Test(
        "Datagrams that are not RTP are refused",
        arguments: [
            "", "80", "8060000100000002000000", "406000010000000200000003", "c06000010000000200000003",
            "816000010000000200000003",  // A contributing source that is not there.
            "906000010000000200000003",  // An extension that is not there.
            "906000010000000200000003bede0001",  // An extension that is cut off.
            "a06000010000000200000003",  // Padding without a count.
            "a0600001000000020000000300",  // Padding of no bytes.
            "a060000100000002000000030103",  // Padding longer than the packet.
        ])
    func malformed(_ hex: String) throws {
        let packet = try unwrapped(ClientCaptures.bytes(hex))
        #expect(RTPHeader(packet.span.bytes) == nil)
    }

    @Test("Patches change their field and nothing else")
    func patches() throws {
        let packet = try unwrapped(ClientCaptures.bytes("80e0 1234 01020304 a1b2c3d4 aabb"))
        try packet.withSlot { slot in
            RTPPatch.writeFixedHeader(
                to: slot, marker: true, payloadType: 101, sequenceNumber: 7, timestamp: 8, ssrc: 9)
            let length = try unwrapped(RTPPatch.pad(slot, length: packet.count, by: 4))
            #expect(RTPPatch.pad(slot, length: length, by: 4) == nil, "padded twice")
            let bytes = [UInt8](slot[..<length])
            let header = try unwrapped(RTPHeader(bytes.span.bytes))
            #expect(header.marker)
            #expect(header.payloadType == 101)
            #expect(header.sequenceNumber == 7)
            #expect(header.timestamp == 8)
            #expect(header.ssrc == 9)
            #expect(header.paddingLength == 4)
            #expect(bytes == ClientCaptures.bytes("a0e5 0007 00000008 00000009 aabb 00000004"))
        }
    }
}

@Suite("Unwrapping")
struct UnwrapperTests {
    @Test("Extended numbers continue across the wrap, forwards and backwards")
    func wrap() {
        var unwrapper = SequenceUnwrapper()
        let first = unwrapper.unwrap(65_534)
        #expect(unwrapper.unwrap(65_535) == first + 1)
        #expect(unwrapper.unwrap(1) == first + 3)
        #expect(unwrapper.unwrap(65_533) == first - 1)
        #expect(unwrapper.unwrap(0) == first + 2)
        #expect(unwrapper.peek(10) == first + 12)
        #expect(unwrapper.last == first + 2)
    }

    @Test("Numbers ahead of the first stay positive")
    func beforeFirst() {
        var unwrapper = SequenceUnwrapper()
        #expect(unwrapper.unwrap(2) == 0x1_0002)
        #expect(unwrapper.unwrap(65_530) == 0xfffa)
    }

    @Test("A hundred thousand steps of any size below half the range are followed")
    func property() {
        var random = RandomSource(seed: 1)
        var unwrapper = SequenceUnwrapper()
        var sequence = unwrapper.unwrap(0)
        for _ in 0..<100_000 {
            sequence += Int64.random(in: -32_768...32_767, using: &random)
            #expect(unwrapper.unwrap(UInt16(truncatingIfNeeded: sequence)) == sequence)
        }
    }
}

@Suite("Retransmission (RFC 4588)")
struct RTXTests {
    @Test("G3: a packet that is wrapped and unwrapped is unchanged")
    func roundTrip() throws {
        let packet = try unwrapped(ClientCaptures.bytes("90e0 1234 01020304 a1b2c3d4 bede0001 10aa0000 0102030405"))
        try packet.withSlot(capacity: packet.count + 2) { slot in
            let length = try unwrapped(
                RTX.wrap(
                    slot, length: packet.count, payloadOffset: 20, ssrc: 77, payloadType: 97, sequenceNumber: 500))
            #expect(length == packet.count + RTX.overhead)
            let wrapped = [UInt8](slot[..<length])
            let header = try unwrapped(RTPHeader(wrapped.span.bytes))
            #expect(header.ssrc == 77)
            #expect(header.payloadType == 97)
            #expect(header.sequenceNumber == 500)
            #expect(header.marker)
            #expect(RTX.originalSequenceNumber(header, in: wrapped.span.bytes) == 0x1234)
            let restored = try unwrapped(RTX.unwrap(slot, header: header, ssrc: 0xa1b2_c3d4, payloadType: 96))
            #expect([UInt8](slot[..<restored]) == packet)
        }
    }

    @Test("Unwrapping removes padding, and a probe of padding only contains no packet")
    func padding() throws {
        let padded = try unwrapped(ClientCaptures.bytes("a061 0001 00000002 00000003 1234 aa 0002"))
        try padded.withSlot { slot in
            let header = try unwrapped(RTPHeader(padded.span.bytes))
            let length = try unwrapped(RTX.unwrap(slot, header: header, ssrc: 4, payloadType: 96))
            #expect([UInt8](slot[..<length]) == ClientCaptures.bytes("8060 1234 00000002 00000004 aa"))
        }
        let probe = try unwrapped(ClientCaptures.bytes("a061 0001 00000002 00000003 000003"))
        let header = try unwrapped(RTPHeader(probe.span.bytes))
        #expect(header.payloadLength == 0)
        #expect(RTX.originalSequenceNumber(header, in: probe.span.bytes) == nil)
        probe.withSlot { slot in #expect(RTX.unwrap(slot, header: header, ssrc: 4, payloadType: 96) == nil) }
    }

    @Test("A slot without room is left unchanged")
    func noRoom() throws {
        let packet = try unwrapped(ClientCaptures.bytes("8060 1234 00000002 00000004 aa"))
        packet.withSlot(capacity: packet.count + 1) { slot in
            #expect(
                RTX.wrap(slot, length: packet.count, payloadOffset: 12, ssrc: 1, payloadType: 2, sequenceNumber: 3)
                    == nil)
            #expect([UInt8](slot[..<packet.count]) == packet)
        }
    }
}
