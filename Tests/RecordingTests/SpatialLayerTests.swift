import MediaControl
import PayloadFormats
import Primitives
import RTP
import TestSupport
import Testing

@testable import Recording

@Suite("Spatial layers in a recording")
struct SpatialLayerTests {
    /// The samples of the stream of `name` that has the most bytes.
    private func samples(_ name: String, _ codec: Codec) throws -> [[UInt8]] {
        var recorded = Recorded()
        let captured = try ClientCaptures.load(name).filter { !$0.isRTCP }
        let streams = Dictionary(grouping: captured) { RTPHeader($0.bytes.span.bytes)?.ssrc }.values
        func length(_ packets: [CapturedPacket]) -> Int { packets.reduce(0) { $0 + $1.bytes.count } }
        let video = streams.max { length($0) < length($1) }
        for packet in video ?? [] {
            guard let header = RTPHeader(packet.bytes.span.bytes), header.payloadLength > 0 else { continue }
            let end = header.payloadOffset + header.payloadLength
            recorded.packet(
                codec, sequence: Int(header.sequenceNumber), timestamp: header.timestamp, marker: header.marker,
                Array(packet.bytes[header.payloadOffset..<end]), at: packet.time)
        }
        recorded.finish()
        return recorded.segments.indices.flatMap { recorded.samples($0) }.map(\.bytes)
    }

    /// The samples of what Chromium sent as L3T3_KEY, and the layers' frames in each, by the index at its end.
    private func pictures() throws -> [[[UInt8]]] {
        try samples("whip_chromium_vp9_l3t3key", .vp9).map { frames(of: $0) }
    }

    private func frames(of sample: [UInt8]) -> [[UInt8]] {
        guard let marker = sample.last, marker & 0xe0 == 0xc0 else { return [sample] }
        let (count, width) = (Int(marker & 7) + 1, Int(marker >> 3 & 3) + 1)
        let index = sample.count - count * width - 2
        var start = 0
        return (0..<count).map { number in
            let size = (0..<width).reduce(0) { $0 | Int(sample[index + 1 + number * width + $1]) << (8 * $1) }
            defer { start += size }
            return Array(sample[start..<start + size])
        }
    }

    @Test("Of the layers of a VP9 picture the largest alone is shown, and all of them can be read as before")
    func shown() throws {
        let pictures = try pictures()
        #expect(pictures.count > 20 && pictures.contains { $0.count == 3 })
        var headers = VP9FrameHeaders()
        for picture in pictures {
            var shown: [Bool?] = []
            for frame in picture { shown.append(headers.next(frame.span.bytes)?.isShown) }
            let wanted: [Bool?] = picture.indices.map { $0 == picture.count - 1 }
            #expect(shown == wanted)
        }
    }

    @Test("A hidden frame is hidden, has the data of the one that was shown, and hiding it again changes nothing")
    func hiding() throws {
        var (headers, others) = (VP9FrameHeaders(), VP9FrameHeaders())
        var count = 0
        for picture in try pictures() {
            for frame in picture {
                guard let header = headers.next(frame.span.bytes) else { continue }
                let hidden = header.hiding(frame)
                let next = others.next(hidden.span.bytes)
                let read = try #require(next)
                #expect(!read.isShown && read.hiding(hidden) == hidden)
                guard header.isShown else { continue }
                #expect(hidden.count - frame.count == 0 || hidden.count - frame.count == 1)
                let data = max(0, frame.count - 40)
                #expect(hidden.suffix(data) == frame.suffix(data))
                count += 1
            }
        }
        #expect(count > 20)
    }

    @Test(
        "A sample of AV1 begins with a temporal delimiter if the stream has spatial layers, and with none if not",
        arguments: [("whip_chromium_av1_l3t3", true), ("whip_firefox_av1", false)])
    func delimiters(name: String, hasSpatialLayers: Bool) throws {
        let samples = try samples(name, .av1)
        #expect(samples.count > 20)
        let delimited = samples.count { $0.starts(with: [0x12, 0]) }
        #expect(delimited == (hasSpatialLayers ? samples.count : 0))
    }

    @Test("Whatever is cut off, empty or no VP9 has no header")
    func hostile() throws {
        let frame = try #require(try pictures().first?.first)
        for length in 0..<min(frame.count, 12) {
            var headers = VP9FrameHeaders()
            let part = Array(frame.prefix(length))
            let header = headers.next(part.span.bytes)
            #expect(header == nil)
        }
        var random = RandomSource(seed: 9)
        var found = 0
        for _ in 0..<2_000 {
            var headers = VP9FrameHeaders()
            let bytes = (0..<20).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            guard let header = headers.next(bytes.span.bytes) else { continue }
            found += 1
            #expect(header.hiding(bytes).count <= bytes.count + 1)
        }
        #expect(found < 2_000)
    }
}
