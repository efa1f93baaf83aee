import Primitives
import RTP
import Simulation
import TestSupport
import Testing

/// What virtual clients and the load generator write; the server has a writer of its own (SendGoldenTests).
@Suite("Header extensions of clients")
struct HeaderExtensionWriterTests {
    private let plain = ClientCaptures.bytes("8060 0001 00000002 00000003")!

    private func read(_ slot: UnsafeMutableRawBufferPointer, _ length: Int) throws -> (RTPHeader, [UInt8: [UInt8]]) {
        let bytes = [UInt8](slot[..<length])
        let parsed = RTPHeader(bytes.span.bytes)
        let header = try #require(parsed)
        var elements = RTPHeaderExtensions(header)
        var found: [UInt8: [UInt8]] = [:]
        while let element = elements.next(in: bytes.span.bytes) {
            found[element.id] = Array(bytes[element.offset..<(element.offset + element.length)])
        }
        return (header, found)
    }

    @Test("The one-byte form is used while it can express all elements")
    func oneByte() throws {
        try plain.withSlot { slot in
            var writer = HeaderExtensionWriter(slot, at: 12)
            #expect(writer.append(id: 1, UInt8(0xaa)) == true)
            #expect(writer.append(id: 14, UInt16(0xbbcc)) == true)
            let end = writer.finish()
            #expect(end == 24)
            #expect([UInt8](slot[12..<24]) == ClientCaptures.bytes("bede0002 10aa e1bbcc 000000"))
            let (header, found) = try read(slot, end)
            #expect(header.payloadOffset == end)
            #expect(found == [1: [0xaa], 14: [0xbb, 0xcc]])
        }
    }

    @Test(
        "The block is converted to the two-byte form when an element needs it",
        arguments: [(UInt8(15), 1), (3, 17), (3, 0), (200, 30)])
    func becomesTwoByte(_ id: UInt8, _ length: Int) throws {
        try plain.withSlot { slot in
            var writer = HeaderExtensionWriter(slot, at: 12)
            #expect(writer.append(id: 1, UInt8(0xaa)) == true)
            #expect(writer.append(id: 2, UInt16(0xbbcc)) == true)
            let appended = writer.append(id: id, length: length)
            let value = try #require(appended)
            for index in 0..<length { slot[value + index] = UInt8(index) }
            #expect(writer.append(id: 9, UInt8(0xdd)) == true)
            let (header, found) = try read(slot, writer.finish())
            #expect(header.isTwoByteExtension)
            #expect(found == [1: [0xaa], 2: [0xbb, 0xcc], id: (0..<length).map { UInt8($0) }, 9: [0xdd]])
        }
    }

    @Test("Where the two-byte form is not allowed, the element is refused and the others stay")
    func refused() throws {
        try plain.withSlot { slot in
            var writer = HeaderExtensionWriter(slot, at: 12, allowsTwoByte: false)
            #expect(writer.append(id: 1, UInt8(0xaa)) == true)
            #expect(writer.append(id: 15, length: 1) == nil)
            #expect(writer.append(id: 0, length: 1) == nil)
            let (header, found) = try read(slot, writer.finish())
            #expect(header.isOneByteExtension)
            #expect(found == [1: [0xaa]])
        }
    }

    @Test("Without elements there is no extension")
    func empty() throws {
        var packet = plain
        packet[0] = 0x90
        packet.withSlot { slot in
            var writer = HeaderExtensionWriter(slot, at: 12)
            #expect(writer.finish() == 12)
            #expect(slot[0] == 0x80)
        }
    }

    @Test("Nothing is written beyond a full slot, in any order of elements")
    func bounds() throws {
        var random = RandomSource(seed: 7)
        for _ in 0..<2_000 {
            let capacity = Int.random(in: 16...80, using: &random)
            // A guard byte behind the slot shows a write past it.
            var backing = plain + [UInt8](repeating: 0x5a, count: 100)
            try backing.withUnsafeMutableBytes { whole in
                let slot = UnsafeMutableRawBufferPointer(rebasing: whole[..<capacity])
                var writer = HeaderExtensionWriter(slot, at: 12)
                var expected: [UInt8: Int] = [:]
                for id in UInt8(1)...18 {
                    let length = Int.random(in: 0...20, using: &random)
                    guard let value = writer.append(id: id, length: length) else { continue }
                    for index in 0..<length { slot[value + index] = id }
                    expected[id] = length
                }
                let end = writer.finish()
                #expect(end <= capacity)
                #expect(whole[capacity...].allSatisfy { $0 == 0x5a })
                let (_, found) = try read(slot, end)
                #expect(found.mapValues(\.count) == expected)
                #expect(found.allSatisfy { id, value in value.allSatisfy { $0 == id } })
            }
        }
    }
}
