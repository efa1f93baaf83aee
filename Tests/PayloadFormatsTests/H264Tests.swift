import PayloadFormats
import TestSupport
import Testing

@Suite("H.264 payloads (RFC 6184)")
struct H264Tests {
    /// Parameter sets that Chromium, GStreamer's x264enc and ffmpeg wrote.
    static let sets: [(hex: String, width: Int, height: Int, profile: UInt32)] = [
        ("6742c0158c8d40a0cbcf35060606078442350000", 320, 180, 0x42c015),
        ("6742c0208c8d402802dd350606060784423500", 1280, 720, 0x42c020),
        ("6742c016da0280bfe5c05a8303035280000003008000000f478b1750", 640, 360, 0x42c016),
        ("6742c016da0280bfe5c0440000030004000003007a3c58ba80", 640, 360, 0x42c016),
        ("67640028acd940780227e5c05a808080a0000003002000000791e30632c0", 1920, 1080, 0x640028),
        ("6742c01fd901a071ebc05a808080a0000003002000000791e30649", 414, 896, 0x42c01f),
        ("674d401eeca0c02af34980b501010140000003004000000f23c58b6580", 374, 666, 0x4d401e),
        ("67f4001f919b280a00b7602d40404050000003001000000303c8f1831960", 1280, 720, 0xf4001f),
        ("677a001fbcd940fc127963f016a0c0c0c8000003000800000301e478c18cb0", 1000, 562, 0x7a001f),
        ("6764001eacd940b424d80a5060606a5000000300100000030329f1429960", 720, 576, 0x64001e),
    ]

    @Test("A12: size after cropping and profile of parameter sets that real encoders wrote", arguments: sets)
    func parameterSet(_ hex: String, _ width: Int, _ height: Int, _ profile: UInt32) throws {
        let bytes = try #require(ClientCaptures.bytes(hex))
        let set = try unwrapped(SequenceParameterSet(bytes.span.bytes, offset: 0, length: bytes.count))
        #expect(set.dimensions == FrameDimensions(width: width, height: height))
        #expect(set.profileLevelID == profile)
        for length in 0..<9 {
            #expect(SequenceParameterSet(bytes.span.bytes, offset: 0, length: length) == nil)
        }
    }

    @Test("E4: a STAP-A of SPS and PPS can start a stream; the sets can be extracted")
    func aggregation() throws {
        let bytes = try #require(
            ClientCaptures.bytes("78 0013 6742c0208c8d402802dd350606060784423500 0004 68ce3c80"))
        let summary = try unwrapped(PayloadCodec.h264.summary(of: bytes.span.bytes, marker: false))
        #expect(summary.startsFrame && summary.startsKeyframe && summary.containsParameterSets)
        #expect(!summary.isKeyframe && !summary.endsPicture)
        #expect(summary.dimensions == FrameDimensions(width: 1280, height: 720))
        var units = try unwrapped(H264.Units(bytes.span.bytes))
        var found: [[UInt8]] = []
        while let unit = units.next(in: bytes.span.bytes) {
            #expect(unit.isWhole)
            found.append(Array(bytes[unit.offset..<(unit.offset + unit.length)]))
        }
        #expect(found.map { $0[0] & 0x1f } == [H264.sequenceParameterSet, H264.pictureParameterSet])
    }

    @Test("E4: an IDR frame in fragments: only the first packet can start a stream")
    func fragments() throws {
        let first = try #require(PayloadCodec.h264.summary(hex: "7c 85 88 84"))
        #expect(first.startsFrame && first.isKeyframe && first.startsKeyframe)
        let middle = try #require(PayloadCodec.h264.summary(hex: "7c 05 88 84"))
        #expect(!middle.startsFrame && middle.isKeyframe && !middle.startsKeyframe)
        let last = try #require(PayloadCodec.h264.summary(hex: "7c 45 88 84", marker: true))
        #expect(!last.startsFrame && last.endsFrame && last.endsPicture)
    }

    @Test("Slices: the first of a frame starts it, a second one does not; unreferenced ones are discardable")
    func slices() throws {
        let first = try #require(PayloadCodec.h264.summary(hex: "41 9a 22"))
        #expect(first.startsFrame && !first.isKeyframe && !first.isDiscardable)
        let second = try #require(PayloadCodec.h264.summary(hex: "41 46 22"))
        #expect(!second.startsFrame)
        #expect(try #require(PayloadCodec.h264.summary(hex: "01 9a 22")).isDiscardable)
        let secondOfRefresh = try #require(PayloadCodec.h264.summary(hex: "65 46 22"))
        #expect(secondOfRefresh.isKeyframe && !secondOfRefresh.startsKeyframe)
    }

    @Test("GStreamer: delimiter, SPS, PPS and SEI in one packet")
    func delimiter() throws {
        let hex = "78 0002 0910 001c 6742c016da0280bfe5c05a8303035280000003008000000f478b1750 0004 68ce3c80 0003 060580"
        let summary = try #require(PayloadCodec.h264.summary(hex: hex))
        #expect(summary.startsKeyframe && summary.containsParameterSets)
        #expect(summary.dimensions == FrameDimensions(width: 640, height: 360))
        let delta = try #require(PayloadCodec.h264.summary(hex: "58 0002 0930 0006 419a22803c30"))
        #expect(delta.startsFrame && !delta.startsKeyframe)
    }

    @Test(
        "Malformed and forbidden payloads are refused",
        arguments: [
            "", "00", "1e00", "1f00",  // Types 0, 30 and 31.
            "78", "780000", "780001", "78000267", "78000167 00", "78000118",  // Sizes; an aggregation inside.
            "7c", "7c85", "7cc588", "7c9c88",  // Fragment headers; both ends at once; a fragment of a fragment.
            "1900000001", "1a000000", "1d000000",  // STAP-B, MTAP16, FU-B.
        ])
    func malformed(_ hex: String) {
        #expect(PayloadCodec.h264.summary(hex: hex) == nil)
    }
}
