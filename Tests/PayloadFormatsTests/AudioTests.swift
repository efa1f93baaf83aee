import PayloadFormats
import TestSupport
import Testing

@Suite("Opus and RED")
struct AudioTests {
    @Test(
        "A4: every duration from 2.5 to 120 ms (RFC 6716 table 2)",
        arguments: [
            ("80", 120), ("88", 240), ("90", 480), ("98", 960), ("00", 480), ("08", 960), ("10", 1_920),
            ("18", 2_880), ("60", 480), ("68", 960), ("fc", 960), ("f9", 1_920), ("fa", 1_920), ("fb03", 2_880),
            ("1a", 5_760), ("fb06", 5_760), ("8330", 5_760),
        ])
    func durations(_ hex: String, _ samples: Int) throws {
        let summary = try #require(PayloadCodec.opus.summary(hex: hex))
        #expect(summary.sampleCount == samples)
        #expect(summary.startsFrame && summary.endsFrame && summary.isSwitchingPoint)
        #expect(!summary.isKeyframe)
    }

    @Test("Stereo is recognized (A3); zero frames or more than 120 ms are no Opus, and pass unread (G10)")
    func rules() throws {
        let stereo = try #require(ClientCaptures.bytes("fc"))
        #expect(try unwrapped(Opus(stereo.span.bytes)).isStereo)
        #expect(PayloadCodec.opus.summary(hex: "") == nil)
        for hex in ["fb", "fb00", "fb07", "1b03"] {
            let bytes = try #require(ClientCaptures.bytes(hex))
            #expect(Opus(bytes.span.bytes) == nil)
            let summary = try #require(PayloadCodec.opus.summary(hex: hex))
            #expect(summary.sampleCount == 0 && summary.startsFrame && summary.endsFrame)
        }
    }

    @Test("RED: two redundant blocks ahead of the primary one")
    func blocks() throws {
        // 111 two packets ago with 3 bytes, 111 one packet ago with 2, then the primary.
        let bytes = try #require(ClientCaptures.bytes("ef 1e00 03 ef 0f00 02 6f 010203 0405 fc0607"))
        var blocks = try unwrapped(RED.Blocks(bytes.span.bytes))
        var found: [RED.Block] = []
        while let block = blocks.next(in: bytes.span.bytes) { found.append(block) }
        #expect(found.map(\.timestampOffset) == [1_920, 960, 0])
        #expect(found.map(\.offset) == [9, 12, 14])
        #expect(found.map(\.length) == [3, 2, 3])
        #expect(found.map(\.payloadType) == [111, 111, 111])
        #expect(found.map(\.isPrimary) == [false, false, true])
        let summary = try unwrapped(PayloadCodec.red.summary(of: bytes.span.bytes, marker: false))
        #expect(summary.primaryPayloadType == 111)
        #expect(summary.primaryOffset == 14)
        #expect(summary.sampleCount == 960)
    }

    @Test("RED with the primary only, and with an empty one")
    func primary() throws {
        #expect(try #require(PayloadCodec.red.summary(hex: "6f fc01")).primaryOffset == 1)
        #expect(try #require(PayloadCodec.red.summary(hex: "6f")).sampleCount == 0)
    }

    @Test(
        "Truncated RED has no primary block, and passes unread (G10)",
        arguments: ["ef", "ef1e0003", "ef1e00036f0102"])
    func malformed(_ hex: String) throws {
        let bytes = try #require(ClientCaptures.bytes(hex))
        #expect(RED.primary(of: bytes.span.bytes) == nil)
        let summary = try #require(PayloadCodec.red.summary(hex: hex))
        #expect(summary.startsFrame && summary.primaryOffset == 0 && summary.sampleCount == 0)
        #expect(PayloadCodec.red.summary(hex: "") == nil)
    }

    @Test("Other audio is forwarded unread")
    func other() {
        #expect(PayloadCodec.otherAudio.summary(hex: "d5d5")?.startsFrame == true)
        #expect(PayloadCodec.otherAudio.summary(hex: "") == nil)
    }
}
