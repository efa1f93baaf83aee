import PayloadFormats
import Primitives
import RTP

/// Reading and changing one clear packet.
enum PacketBenchmarks {
    static func run(_ runner: Runner) throws {
        var source = PacketSource(ssrc: 1)
        let packets = (0..<256).flatMap { _ in source.frame(keyframe: false, sizes: [1_080, 1_080, 1_079, 1_079]) }
        let storage = UnsafeMutableRawBufferPointer.allocate(byteCount: packets.count * 2_048, alignment: 64)
        defer { storage.deallocate() }
        for (index, packet) in packets.enumerated() {
            UnsafeMutableRawBufferPointer(rebasing: storage[(index * 2_048)...]).copyBytes(from: packet)
        }
        let length = packets[0].count
        func packet(_ index: Int) -> UnsafeMutableRawBufferPointer {
            UnsafeMutableRawBufferPointer(rebasing: storage[(index * 2_048)..<(index * 2_048 + length)])
        }
        let repeats = 64
        runner.time("parse: header and extensions", operations: packets.count * repeats) {
            var sum = 0
            for _ in 0..<repeats {
                for index in packets.indices {
                    let bytes = UnsafeRawBufferPointer(packet(index)).bytes
                    guard let header = RTPHeader(bytes) else { continue }
                    var elements = RTPHeaderExtensions(header)
                    while let element = elements.next(in: bytes) { sum &+= element.offset }
                    sum &+= header.payloadOffset
                }
            }
            consume(sum)
        }
        runner.time("parse: VP8 payload", operations: packets.count * repeats) {
            var sum = 0
            for _ in 0..<repeats {
                for index in packets.indices {
                    let payload = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(packet(index))[20...])
                    sum &+= VP8.summary(of: payload.bytes, marker: false)?.startsFrame == true ? 1 : 0
                }
            }
            consume(sum)
        }
    }
}
