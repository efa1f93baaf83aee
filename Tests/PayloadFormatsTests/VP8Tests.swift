import PayloadFormats
import TestSupport
import Testing

@Suite("VP8 payload descriptor (RFC 7741)")
struct VP8Tests {
    @Test("Keyframe with every field of section 4.2, and its size")
    func keyframe() throws {
        // X, S; I, L, T, K; picture id 0x1234 in two bytes; TL0PICIDX 0x56; TID 1, Y, KEYIDX 3; P = 0, 640 x 360.
        let summary = try #require(
            PayloadCodec.vp8.summary(hex: "90 f0 9234 56 63 101c00 9d012a 8002 6801 3900", marker: true))
        #expect(summary.startsFrame && summary.endsFrame && summary.endsPicture)
        #expect(summary.isKeyframe && summary.startsKeyframe && summary.startsSpatialLayer)
        #expect(summary.pictureID == 0x1234)
        #expect(summary.pictureIDOffset == 2)
        #expect(summary.isLongPictureID)
        #expect(summary.tl0Offset == 4)
        #expect(summary.tl0PictureIndex == 0x56)
        #expect(summary.temporalLayer == 1)
        #expect(summary.keyIndex == 3)
        #expect(summary.dimensions == FrameDimensions(width: 640, height: 360))
    }

    @Test("Delta frame with a short picture id; layers and layer sync")
    func delta() throws {
        let sync = try #require(PayloadCodec.vp8.summary(hex: "b0 e0 11 07 a0 01"))
        #expect(sync.startsFrame && !sync.endsFrame && !sync.isKeyframe)
        #expect(sync.isDiscardable)
        #expect(sync.pictureID == 0x11)
        #expect(!sync.isLongPictureID)
        #expect(sync.tl0Offset == 3)
        #expect(sync.temporalLayer == 2)
        #expect(sync.isSwitchingPoint)
        let plain = try #require(PayloadCodec.vp8.summary(hex: "90 e0 11 07 80 01"))
        #expect(!plain.isSwitchingPoint)
        #expect(!plain.isDiscardable)
    }

    @Test("A later partition, and a later packet of a partition, start no frame")
    func continuation() throws {
        #expect(try #require(PayloadCodec.vp8.summary(hex: "11 00")).startsFrame == false)
        let later = try #require(PayloadCodec.vp8.summary(hex: "00 00", marker: true))
        #expect(!later.startsFrame && !later.isKeyframe && later.endsFrame)
    }

    @Test("The upper bits of the size are a scale, and no part of it")
    func scale() throws {
        let summary = try #require(PayloadCodec.vp8.summary(hex: "10 101c00 9d012a 80c2 6841 39"))
        #expect(summary.dimensions == FrameDimensions(width: 640, height: 360))
    }

    @Test(
        "A payload that ends within its descriptor is refused",
        arguments: ["", "90", "9080", "908080", "90c011", "90e01107", "90f0923456", "10"])
    func malformed(_ hex: String) {
        #expect(PayloadCodec.vp8.summary(hex: hex) == nil)
    }
}
