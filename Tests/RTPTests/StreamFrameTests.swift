import Primitives
import RTP
import Testing

@Suite("Packets in a byte stream (RFC 4571)")
struct StreamFrameTests {
    /// The packets that a reader finds in pieces of a stream; nil after them: one was too long.
    private func read(_ pieces: [[UInt8]]) -> [[UInt8]?] {
        var reader = FrameReader()
        var found: [[UInt8]?] = []
        for var piece in pieces {
            piece.withUnsafeMutableBytes { bytes in
                var position = 0
                while true {
                    switch reader.next(in: bytes, from: &position) {
                    case .packet(let packet):
                        found.append(Array(packet))
                        // Decryption writes into it.
                        for index in packet.indices { packet[index] = 0xee }
                        continue
                    case .needsMore: break
                    case .oversize: found.append(nil)
                    }
                    return
                }
            }
        }
        return found
    }

    private func frame(_ packet: [UInt8]) -> [UInt8] {
        var frame = [UInt8](repeating: 0, count: StreamFrame.headerLength) + packet
        frame.withUnsafeMutableBytes { StreamFrame.writeHeader(packet.count, into: $0) }
        return frame
    }

    private func packet(_ number: UInt8, _ length: Int) -> [UInt8] {
        (0..<length).map { number &+ UInt8(truncatingIfNeeded: $0) }
    }

    @Test("F9: the length is two bytes in network order, and the packet follows")
    func layout() { #expect(frame(packet(7, 300)).prefix(4) == [1, 44, 7, 8]) }

    @Test("F9: packets are found whatever pieces the stream comes in", arguments: [1, 2, 3, 7, 100, 1_199, 5_000])
    func pieces(_ step: Int) {
        let packets = [
            packet(1, 1), packet(2, 1_200), packet(3, 2), packet(4, StreamFrame.maximumLength), packet(5, 40),
        ]
        let stream = packets.flatMap(frame)
        let pieces = stride(from: 0, to: stream.count, by: step).map {
            Array(stream[$0..<min($0 + step, stream.count)])
        }
        #expect(read(pieces) == packets)
    }

    @Test("F9: a null packet is skipped")
    func null() { #expect(read([frame([]) + frame([1, 2]) + frame([]), frame([3])]) == [[1, 2], [3]]) }

    @Test("F9: a longer packet than any that is accepted ends the stream, also when its length comes in two pieces")
    func oversize() {
        let long = StreamFrame.maximumLength + 1
        #expect(read([frame([1]) + [UInt8(long >> 8), UInt8(long & 0xff)]]) == [[1], nil])
        #expect(read([[0xff], [0xff, 1, 2]]) == [nil])
    }

    @Test("F9: half a packet is nothing")
    func half() { #expect(read([Array(frame(packet(1, 100)).dropLast())]).isEmpty) }
}
