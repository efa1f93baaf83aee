import PayloadFormats
import Primitives
import Testing

@Suite("Frame numbers of VP8 and VP9")
struct FrameNumbersTests {
    @Test("VP8 with all fields (RFC 7741 section 4.2): offsets, a picture id of 15 bits, TL0PICIDX, KEYIDX")
    func vp8() {
        let numbers = FrameNumbers(vp8: ([0x90, 0xf0, 0x81, 0x02, 0x2a, 0x65, 0x00] as [UInt8]).span.bytes)
        #expect(numbers.pictureOffset == 2 && numbers.picture == 0x102 && numbers.pictureMask == 0x7fff)
        #expect(numbers.temporalZeroOffset == 4 && numbers.temporalZero == 0x2a)
        #expect(numbers.layerOffset == 5 && numbers.keyIndexOffset == 5 && numbers.keyIndex == 5)
        #expect(numbers.end == 6)
    }

    @Test("VP9 (RFC 9628 section 4.2): a picture id of 7 bits; TL0PICIDX behind the layer, and none in flexible mode")
    func vp9() {
        let plain = FrameNumbers(vp9: ([0xa0, 0x7f, 0x22, 0x09, 0x00] as [UInt8]).span.bytes)
        #expect(plain.pictureOffset == 1 && plain.picture == 0x7f && plain.pictureMask == 0x7f)
        #expect(plain.layerOffset == 2 && plain.temporalZeroOffset == 3 && plain.temporalZero == 9 && plain.end == 4)
        let flexible = FrameNumbers(vp9: ([0xb0, 0x7f, 0x22, 0x09, 0x00] as [UInt8]).span.bytes)
        #expect(flexible.temporalZeroOffset == -1 && flexible.layerOffset == 2 && flexible.end == 3)
    }

    @Test("A payload that ends within its numbers has none", arguments: 0..<6)
    func truncated(length: Int) {
        let bytes = Array(([0x90, 0xf0, 0x81, 0x02, 0x2a, 0x65] as [UInt8]).prefix(length))
        let numbers = FrameNumbers(vp8: bytes.span.bytes)
        #expect(numbers.end == -1 && numbers.pictureOffset == -1 && numbers.temporalZeroOffset == -1)
        #expect(numbers.keyIndexOffset == -1 && numbers.layerOffset == -1)
    }

    @Test(
        "The id of a picture parameter set (H.264 section 7.3.2.2), and none for another unit or a truncated set")
    func pictureParameterSetID() throws {
        // ue(v): 1 is 0, 010 is 1, 00100 is 3.
        for (byte, id) in [(0x80, 0), (0x40, 1), (0x20, 3)] as [(UInt8, UInt32)] {
            #expect(try Self.pictureParameterSetID([0x68, byte, 0x80]) == id)
        }
        #expect(try Self.pictureParameterSetID([0x67, 0x80, 0x80]) == nil)
        #expect(try Self.pictureParameterSetID([0x68, 0x00]) == nil)
    }

    private static func pictureParameterSetID(_ bytes: [UInt8]) throws -> UInt32? {
        var units = try unwrapped(H264.Units(bytes.span.bytes))
        let unit = try unwrapped(units.next(in: bytes.span.bytes))
        return H264.pictureParameterSetID(bytes.span.bytes, unit)
    }
}
