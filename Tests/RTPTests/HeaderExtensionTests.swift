import Primitives
import RTP
import TestSupport
import Testing

@Suite("Header extensions (RFC 8285)")
struct HeaderExtensionTests {
    private func elements(_ hex: String) throws -> [RTPHeaderExtensions.Element] {
        let packet = try unwrapped(ClientCaptures.bytes("9060 0001 00000002 00000003" + hex))
        let header = try unwrapped(RTPHeader(packet.span.bytes))
        var elements = RTPHeaderExtensions(header)
        var found: [RTPHeaderExtensions.Element] = []
        while let element = elements.next(in: packet.span.bytes) { found.append(element) }
        return found
    }

    @Test("One-byte headers: the example of section 4.2 with padding between elements")
    func oneByte() throws {
        let found = try elements("bede0003 10aa 21bbbb 0000 33cccccccc")
        #expect(found.map(\.id) == [1, 2, 3])
        #expect(found.map(\.length) == [1, 2, 4])
        #expect(found.map(\.offset) == [17, 19, 24])
    }

    @Test("Two-byte headers: the example of section 4.3, an empty value and application bits")
    func twoByte() throws {
        let found = try elements("1003 0003 0100 0201bb 00 0304cccccccc")
        #expect(found.map(\.id) == [1, 2, 3])
        #expect(found.map(\.length) == [0, 1, 4])
    }

    @Test(
        "A malformed rest ends the iteration and keeps the elements before it",
        arguments: [
            ("bede0001 10aa f0bb", 1),  // 15 is reserved.
            ("bede0001 10aa 03bb", 1),  // 0 with a length.
            ("bede0001 10aa 2fbb", 1),  // Longer than the extension.
            ("10000001 0101 aa02", 1),  // A header cut in half.
            ("10000001 0103 aa02", 0),
            ("bede0000", 0),
            ("12340001 10aa0000", 0),  // Another profile.
        ])
    func broken(_ hex: String, _ count: Int) throws {
        #expect(try elements(hex).count == count)
    }

    @Test("Elements are found by id, and compared")
    func find() throws {
        let packet = try unwrapped(ClientCaptures.bytes("9060 0001 00000002 00000003 bede0002 10aa 92 666f6f 0000"))
        let header = try unwrapped(RTPHeader(packet.span.bytes))
        let element = try unwrapped(RTPHeaderExtensions.find(9, header, in: packet.span.bytes))
        #expect(element.text(in: packet.span.bytes) == "foo")
        #expect(element.equals(Array("foo".utf8), in: packet.span.bytes) == true)
        #expect(element.equals(Array("fob".utf8), in: packet.span.bytes) == false)
        #expect(RTPHeaderExtensions.find(3, header, in: packet.span.bytes) == nil)
    }
}
