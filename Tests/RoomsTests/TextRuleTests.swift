import AccessTokens
import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Texts that name something or are shown")
struct TextRuleTests {
    @Test(
        "Refused: what changes how the text around it reads, or ends its line",
        arguments: [
            0x00, 0x07, 0x09, 0x0a, 0x0d, 0x1b, 0x7f, 0x85, 0x9f, 0x061c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a,
            0x202e, 0x2066, 0x2069,
        ] as [UInt32])
    func refused(code: UInt32) throws {
        let scalar = try #require(Unicode.Scalar(code))
        let text = "a" + String(scalar) + "b"
        for rule in [TextRule.identifier, .label] {
            #expect(rule.fault(in: text) == .refused(scalar, position: 2))
        }
        let isLayout = [0x09, 0x0a, 0x0d].contains(code)
        #expect((TextRule.metadata.fault(in: text) == nil) == isLayout, "only tabs and line ends stay in metadata")
    }

    @Test(
        "Let through: every script, emoji with joiners, private use, and what Unicode does not know yet",
        arguments: [
            "Žofie O'Neill-Ñandú", "נועה", "عائشة", "می‌خواهم", "👩‍👩‍👧", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "é", "e\u{301}", "\u{e000}", "\u{50000}",
            "a/b?c#d%2e", "...", ". .", "~", "\u{feff}x",
        ])
    func accepted(text: String) {
        for rule in TextRule.allCases { #expect(rule.fault(in: text) == nil) }
    }

    @Test(
        "An identifier has something to see and is no dot segment",
        arguments: [
            ("", TextRule.Fault.blank), (" ", .blank), ("\u{a0}\u{2003}\u{3000}", .blank), (".", .dotSegment),
            ("..", .dotSegment),
        ])
    func identifiers(text: String, fault: TextRule.Fault) {
        #expect(TextRule.identifier.fault(in: text) == fault)
        #expect(TextRule.label.fault(in: text) == nil && TextRule.metadata.fault(in: text) == nil)
    }

    @Test("Lengths are counted in code points, as JSON Schema does, not in bytes or clusters")
    func lengths() {
        let flag = "🇸🇪"
        #expect(TextRule.identifier.fault(in: String(repeating: flag, count: 128)) == nil)
        #expect(TextRule.identifier.fault(in: String(repeating: flag, count: 128) + "x") == .tooLong(256))
        #expect(TextRule.metadata.fault(in: String(repeating: "ä", count: 8_192)) == nil)
        #expect(TextRule.metadata.fault(in: String(repeating: "ä", count: 8_193)) == .tooLong(8_192))
    }

    @Test(
        "1.8: a join, a rename, an announcement and a description bring no such text; the error names field and code point"
    )
    func everyWayIn() throws {
        var bench = RoomBench()
        let bad = "eve\u{202e}gpj"
        func refusal(_ body: (inout RoomBench) throws(RoomError) -> Void) -> RoomError? {
            do throws(RoomError) {
                try body(&bench)
                return nil
            } catch {
                return error
            }
        }
        let identity = refusal { (bench) throws(RoomError) in try bench.join(bad) }
        #expect(identity?.code == .invalidRequest)
        #expect(identity?.detail.hasPrefix("the identity contains U+202E as character 4") == true)
        #expect(refusal { (bench) throws(RoomError) in try bench.join("..") }?.code == .invalidRequest)
        let name = refusal { (bench) throws(RoomError) in try bench.join("e") { $0.name = "E\0" } }
        #expect(name?.detail.hasPrefix("the name contains U+0000 as character 2") == true)
        let granted = refusal { (bench) throws(RoomError) in try bench.join("e") { $0.claims.name = bad } }
        #expect(granted?.code == .invalidRequest)
        let metadata = refusal { (bench) throws(RoomError) in try bench.join("e") { $0.metadata = bad } }
        #expect(metadata?.detail.hasPrefix("the metadata contains U+202E") == true)

        let ada = try bench.join("ada")
        for request in [
            SessionRequest.setMetadata(name: bad, metadata: nil), .setMetadata(name: nil, metadata: "\0"),
            .announce(.init("v", source: .camera, name: bad)), .announce(.init(bad, source: .camera)),
        ] {
            #expect(refusal { (bench) throws(RoomError) in try bench.perform(request, ada) }?.code == .invalidRequest)
        }
        try bench.offer(ada, [.video("0", track: bad)])
        #expect(
            bench.info(ada)?.tracks.map(\.clientTrackID) == [nil], "a track id that is no text to show is not shown")
    }
}
