import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Recording

@Suite("Frames of a recording, as hostile publishers send them")
struct FrameAssemblerTests {
    /// What comes of packets with one timestamp, and how many frames were dropped; the last has a marker.
    private func assemble(_ codec: Codec, _ packets: [[UInt8]]) throws -> (frames: Int, dropped: Int) {
        var assembler = try #require(FrameAssembler(codec))
        var frames = 0
        for (index, packet) in packets.enumerated() {
            let isLast = index == packets.count - 1
            frames += assembler.append(packet.span.bytes, marker: isLast, timestamp: 1, arrival: .zero).count
        }
        return (frames, assembler.consumeDropped())
    }

    // A descriptor with P and E: a layer that ends here and depends on another picture.
    @Test("A VP9 picture of more layers than its index can count is dropped", arguments: [9, 257])
    func layers(count: Int) throws {
        let (frames, dropped) = try assemble(.vp9, Array(repeating: [0x44, 0], count: count))
        #expect(frames == 0 && dropped == 1)
    }

    @Test("A frame of 1 MB is stored; one that does not end within 16 MB is dropped")
    func endless() throws {
        let start: [UInt8] = [0x10] + VP8Frame.keyframeHeader(width: 64, height: 64)
        let more: [UInt8] = [0x00] + Array(repeating: 7, count: 65_535)
        let whole = try assemble(.vp8, [start] + Array(repeating: more, count: 16))
        #expect(whole == (1, 0))
        let endless = try assemble(.vp8, [start] + Array(repeating: more, count: 257))
        #expect(endless == (0, 1))
    }
}
