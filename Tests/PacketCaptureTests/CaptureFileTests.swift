import PacketCapture
import Testing

@Suite("pcapng")
struct CaptureFileTests {
    /// The blocks of a file, by type, with what is between their lengths.
    private func blocks(_ bytes: [UInt8]) throws -> [(type: UInt32, body: [UInt8])] {
        var found: [(type: UInt32, body: [UInt8])] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let length = Int(number(Array(rest.dropFirst(4).prefix(4))))
            try #require(length % 4 == 0 && length >= 12 && length <= rest.count)
            let block = Array(rest.prefix(length))
            #expect(Int(number(Array(block.suffix(4)))) == length, "the length stands at both ends")
            found.append((number(Array(block.prefix(4))), Array(block[8..<length - 4])))
            rest = rest.dropFirst(length)
        }
        return found
    }

    private func number(_ bytes: [UInt8]) -> UInt32 { bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) } }

    private func file(_ packets: [(CaptureFile.Packet, [UInt8])], dropped: UInt64 = 0) -> CaptureFile {
        var file = CaptureFile(application: "martlet/test", comment: "ada in lecture")
        for (packet, kept) in packets { file.append(packet, kept: kept) }
        file.finish(dropped: dropped, time: 5_000_000_000)
        return file
    }

    @Test("A file is a section, an interface of raw IP with nanoseconds, packets, and statistics")
    func structure() throws {
        let packet = CaptureFile.Packet(time: 1, isSent: false, isRTCP: false, connection: 0, length: 3)
        let file = file([(packet, [1, 2, 3]), (packet, [1])], dropped: 7)
        let blocks = try blocks(file.bytes)
        #expect(blocks.map(\.type) == [0x0a0d_0d0a, 1, 6, 6, 5])
        #expect(Array(blocks[0].body.prefix(4)) == [0x4d, 0x3c, 0x2b, 0x1a], "little endian")
        #expect(Array(blocks[1].body.prefix(2)) == [101, 0])
        #expect(blocks[1].body[8...12] == [9, 0, 1, 0, 9])
        #expect(blocks[4].body.contains([5, 0, 8, 0, 7, 0, 0, 0]))
        #expect(file.packets == 2)
    }

    @Test("A cut packet has the lengths of the whole one, and an IP header whose checksum is right")
    func cut() throws {
        let time: Int64 = 1_790_000_000_123_456_789
        let packet = CaptureFile.Packet(time: time, isSent: true, isRTCP: true, connection: 1, length: 1_200)
        let file = file([(packet, [0x80, 0xc8])])
        let body = try blocks(file.bytes)[2].body
        #expect(Int64(number(Array(body[4..<8]))) << 32 | Int64(number(Array(body[8..<12]))) == time)
        #expect(number(Array(body[12..<16])) == 30 && number(Array(body[16..<20])) == 1_228)
        let frame = Array(body[20..<50])
        #expect(frame[0] == 0x45 && Int(frame[2]) << 8 | Int(frame[3]) == 1_228)
        var sum = 0
        for at in stride(from: 0, to: 20, by: 2) { sum += Int(frame[at]) << 8 | Int(frame[at + 1]) }
        #expect((sum & 0xffff) + sum >> 16 == 0xffff)
        #expect(Array(frame[12..<20]) == [198, 51, 100, 1, 192, 0, 2, 1])
        #expect(Int(frame[20]) << 8 | Int(frame[21]) == 5_005 && Int(frame[22]) << 8 | Int(frame[23]) == 40_003)
        #expect(Int(frame[24]) << 8 | Int(frame[25]) == 1_208)
        #expect(Array(frame[28...]) == [0x80, 0xc8])
    }

    @Test("What a packet adds is bounded by what is kept of it", arguments: [0, 1, 2, 3, 4, 1_200])
    func size(kept: Int) {
        var file = CaptureFile(application: "", comment: "")
        let before = file.bytes.count
        file.append(
            CaptureFile.Packet(time: 0, isSent: false, isRTCP: false, connection: 0, length: 1_500),
            kept: [UInt8](repeating: 0, count: kept))
        #expect(file.bytes.count - before <= CaptureFile.size(keeping: kept))
    }
}
