import PayloadFormats
import TestSupport
import Testing

@Suite("VP9 payload descriptor (RFC 9628)")
struct VP9Tests {
    @Test("Non-flexible: a base layer keyframe with sizes and a pattern of temporal layers")
    func nonFlexible() throws {
        // I, L, B, V; picture id 0x1234; T0 U0 S0 D0; TL0PICIDX 9; SS: 2 layers, sizes, 2 pictures.
        let summary = try #require(
            PayloadCodec.vp9.summary(hex: "aa 9234 00 09 38 014000b4 02800168 02 00 44 01 aa"))
        #expect(summary.startsFrame && !summary.endsFrame)
        #expect(summary.isKeyframe && summary.startsKeyframe && summary.startsSpatialLayer)
        #expect(summary.containsParameterSets)
        #expect(summary.pictureID == 0x1234)
        #expect(summary.pictureIDOffset == 1)
        #expect(summary.tl0Offset == 4)
        #expect(summary.tl0PictureIndex == 9)
        #expect(!summary.isFlexible)
        #expect(summary.dimensions == FrameDimensions(width: 640, height: 360))
    }

    @Test("G8: an upper layer of a keyframe's VP9 picture starts that layer but no stream")
    func upperLayer() throws {
        // I, L, F, B, E; picture id 5; T0 U1 S1 D1.
        let summary = try #require(PayloadCodec.vp9.summary(hex: "bc 05 13 aa", marker: true))
        #expect(summary.spatialLayer == 1)
        #expect(summary.usesLowerSpatialLayer)
        #expect(summary.startsSpatialLayer)
        #expect(!summary.isKeyframe && !summary.startsKeyframe)
        #expect(summary.endsFrame && summary.endsPicture)
        #expect(summary.isFlexible)
        #expect(summary.tl0Offset == 0)
    }

    @Test("Flexible: up to three references, switching point")
    func flexible() throws {
        // I, P, L, F, B, Z; T2 U1 S1 D0; references 1, 2 and 3.
        let summary = try #require(PayloadCodec.vp9.summary(hex: "f9 05 52 03 05 06 aa"))
        #expect(summary.temporalLayer == 2)
        #expect(summary.isSwitchingPoint)
        #expect(!summary.startsSpatialLayer)
        #expect(PayloadCodec.vp9.summary(hex: "f9 05 52 03 05 07 aa") == nil, "a fourth reference is forbidden")
        let noSwitch = try #require(PayloadCodec.vp9.summary(hex: "f9 05 42 02 aa"))
        #expect(!noSwitch.isSwitchingPoint)
    }

    @Test("Without a structure the frame header gives the size")
    func frameHeader() throws {
        // Profile 0, key, shown: 10 0 0 0 0 1 0; sync; colour space 1, range 0; 1280 - 1, 720 - 1.
        let summary = try #require(PayloadCodec.vp9.summary(hex: "8c 05 82 498342 2 04ff 02cf 0 aa"))
        #expect(summary.dimensions == FrameDimensions(width: 1280, height: 720))
    }

    @Test(
        "A payload that ends within its descriptor is refused",
        arguments: [
            "", "80", "8080", "a005", "a00500", "d005", "8205", "820510", "82053801400 0b4", "82050803", "8c05",
        ])
    func malformed(_ hex: String) {
        #expect(PayloadCodec.vp9.summary(hex: hex) == nil)
    }
}
