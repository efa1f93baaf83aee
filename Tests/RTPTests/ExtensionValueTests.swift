import Primitives
import RTP
import TestSupport
import Testing

@Suite("Values of header extensions")
struct ExtensionValueTests {
    /// Reads `hex` as the value of one element.
    private func value<Value>(
        _ hex: String, _ read: (RTPHeaderExtensions.Element, RawSpan) -> Value?
    ) throws -> Value? {
        let bytes = try unwrapped(ClientCaptures.bytes(hex))
        return read(RTPHeaderExtensions.Element(id: 1, offset: 0, length: bytes.count), bytes.span.bytes)
    }

    /// The bytes that `write` puts into a slot.
    private func written(_ length: Int, _ write: (UnsafeMutableRawBufferPointer) -> Void) -> [UInt8] {
        [UInt8](repeating: 0, count: length).withSlot(capacity: length) { slot in
            write(slot)
            return [UInt8](slot)
        }
    }

    @Test("Audio level (RFC 6464)")
    func audioLevel() throws {
        #expect(try value("9e") { AudioLevel($0, in: $1) } == AudioLevel(level: 30, isVoice: true))
        #expect(try value("7f00") { AudioLevel($0, in: $1) } == AudioLevel(level: 127, isVoice: false))
        #expect(try value("000000") { AudioLevel($0, in: $1) } == nil)
        #expect(written(1) { AudioLevel(level: 30, isVoice: true).write(to: $0, at: 0) } == [0x9e])
    }

    @Test("B6: all rotations, flip and camera of the video orientation are read back", arguments: UInt8(0)..<16)
    func orientation(_ byte: UInt8) throws {
        let bytes = [byte]
        let element = RTPHeaderExtensions.Element(id: 1, offset: 0, length: 1)
        let orientation = try unwrapped(VideoOrientation(element, in: bytes.span.bytes))
        #expect(orientation.rotation == Int(byte & 3) * 90)
        #expect(orientation.isFlipped == (byte & 4 != 0))
        #expect(orientation.isBackCamera == (byte & 8 != 0))
        #expect(written(1) { orientation.write(to: $0, at: 0) } == bytes)
    }

    @Test("Absolute send time is 6.18 fixed point and wraps after 64 s")
    func sendTime() throws {
        #expect(AbsoluteSendTime(MonotonicTime(milliseconds: 1_000)).value == 1 << 18)
        #expect(AbsoluteSendTime(MonotonicTime(milliseconds: 64_500)).value == 1 << 17)
        let early = AbsoluteSendTime(MonotonicTime(milliseconds: 63_900))
        let late = AbsoluteSendTime(MonotonicTime(milliseconds: 64_100))
        #expect(abs(late.interval(since: early).milliseconds - 200) <= 1)
        #expect(abs(early.interval(since: late).milliseconds + 200) <= 1)
        #expect(try value("abcdef") { AbsoluteSendTime($0, in: $1) }?.value == 0xabcdef)
        #expect(written(3) { AbsoluteSendTime(value: 0xabcdef).write(to: $0, at: 0) } == [0xab, 0xcd, 0xef])
    }

    @Test("Transport sequence, with and without a feedback request")
    func transportSequence() throws {
        #expect(try value("1234") { TransportSequenceNumber($0, in: $1) }?.value == 0x1234)
        #expect(try value("12348001") { TransportSequenceNumber($0, in: $1) }?.value == 0x1234)
        #expect(try value("12") { TransportSequenceNumber($0, in: $1) } == nil)
        #expect(written(2) { TransportSequenceNumber(0x1234).write(to: $0, at: 0) } == [0x12, 0x34])
    }

    @Test("Layers allocation: three streams of one spatial layer, as Chromium sent it")
    func allocation() throws {
        // Recorded (Tests/Vectors/rtp/whip_chromium_h264_sim3.rtphex): stream 0 of three, one spatial and one temporal layer each, rates, sizes.
        let hex = "21 00 9601 f403 cf07 013f00b33c 027f01673c 04ff02cf3c"
        let allocation = try unwrapped(try value(hex) { VideoLayersAllocation($0, in: $1) })
        #expect(allocation.streamCount == 3)
        #expect(allocation.layerCount == 3)
        #expect((0..<3).map { allocation.layers[$0].kilobitsPerSecond } == [150, 500, 975])
        #expect((0..<3).map { allocation.layers[$0].width } == [320, 640, 1_280])
        #expect((0..<3).map { allocation.layers[$0].height } == [180, 360, 720])
        #expect((0..<3).map { allocation.layers[$0].framesPerSecond } == [60, 60, 60])
    }

    @Test("Layers allocation: per-stream masks, and nothing being sent")
    func allocationMasks() throws {
        // Stream 1 of two: the first has spatial layers 0 and 1, the second has 2; two temporal layers each.
        let hex = "50 34 54 01 02 03 04 05 06"
        let allocation = try unwrapped(try value(hex) { VideoLayersAllocation($0, in: $1) })
        #expect(allocation.layerCount == 3)
        #expect((0..<3).map { allocation.layers[$0].spatialLayer } == [0, 1, 2])
        #expect((0..<3).map { allocation.layers[$0].stream } == [0, 0, 1])
        #expect((0..<3).map { allocation.layers[$0].kilobitsPerSecond } == [2, 4, 6])
        let none = try unwrapped(try value("00") { VideoLayersAllocation($0, in: $1) })
        #expect(none.streamCount == 0)
        for cut in ["21", "2100", "210064ac", "21 00 64 ac02 dc0b 01"] {
            #expect(try value(cut) { VideoLayersAllocation($0, in: $1) } == nil)
        }
    }
}
