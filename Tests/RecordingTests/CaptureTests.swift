import Foundation
import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Recording

@Suite
struct CaptureTests {
    /// A capture's video with the most frames, and of those with the most bytes: its top layer.
    private static func topLayer(_ name: String) throws -> [CapturedPacket] {
        var streams: [UInt32: [CapturedPacket]] = [:]
        for packet in try ClientCaptures.load(name) where !packet.isRTCP {
            guard let header = RTPHeader(packet.bytes.span.bytes), header.payloadLength > 0 else { continue }
            streams[header.ssrc, default: []].append(packet)
        }
        func rank(_ packets: [CapturedPacket]) -> (Int, Int) {
            let headers = packets.compactMap { RTPHeader($0.bytes.span.bytes) }
            return (Set(headers.map(\.timestamp)).count / 8, headers.reduce(0) { $0 + $1.payloadLength })
        }
        // Packets of audio are small.
        let videos = streams.values.filter { rank($0).1 > 250 * $0.count }
        return videos.max { rank($0) < rank($1) } ?? []
    }

    /// Whether a sample of H.264 is nothing but NAL units behind lengths of four bytes, without start codes in them,
    /// and without parameter sets and delimiters.
    private static func isPackaged(_ sample: [UInt8]) -> Bool {
        var place = 0
        while place + 4 < sample.count {
            let length = sample[place..<(place + 4)].reduce(0) { $0 << 8 | Int($1) }
            let end = place + 4 + length
            guard length > 0, end <= sample.count, !(7...9).contains(sample[place + 4] & 0x1f) else { return false }
            let unit = sample[(place + 4)..<end]
            guard !unit.indices.contains(where: { unit[$0...].starts(with: [0, 0, 1]) }) else { return false }
            place = end
        }
        return place == sample.count
    }

    @Test(
        "E1, E7: every frame of what real clients sent becomes one sample, and the file is finished",
        arguments: [
            ("whip_chromium_vp8_sim3", Codec.vp8), ("whip_chromium_h264_sim3", .h264), ("whip_ffmpeg_h264", .h264),
            ("whip_gst_h264", .h264), ("whip_gst_vp8_mtu1400", .vp8), ("whip_chromium_vp9_sim3", .vp9),
            ("whip_chromium_vp9_l3t3key", .vp9), ("whip_chromium_av1_l3t3", .av1), ("whip_firefox_av1", .av1),
        ])
    func clients(name: String, codec: Codec) throws {
        var recorded = Recorded()
        var timestamps = Set<UInt32>()
        for packet in try Self.topLayer(name) {
            guard let header = RTPHeader(packet.bytes.span.bytes) else { continue }
            timestamps.insert(header.timestamp)
            // Its extensions have other ids than a recorder's, and are of no interest here.
            let kept = Array(packet.bytes[header.payloadOffset..<(header.payloadOffset + header.payloadLength)])
            recorded.packet(
                codec, sequence: Int(header.sequenceNumber), timestamp: header.timestamp, marker: header.marker, kept,
                at: packet.time)
        }
        recorded.finish()
        #expect(recorded.faults.isEmpty)
        try #require(recorded.segments.count >= 1)
        let stored = recorded.segments.indices.map { recorded.samples($0).count }.reduce(0, +)
        // A capture may begin and end within a frame.
        #expect(stored >= timestamps.count - recorded.recorder.totals.framesLost - 1)
        #expect(stored + recorded.recorder.totals.framesLost >= 20)
        #expect(recorded.recorder.totals.framesLost <= timestamps.count / 10, "\(recorded.recorder.totals)")
        #expect(recorded.samples().first?.isSync == true)
        if codec == .h264 {
            let samples = recorded.segments.indices.flatMap { recorded.samples($0) }
            #expect(samples.allSatisfy { Self.isPackaged($0.bytes) })
        }
        guard let folder = ProcessInfo.processInfo.environment["MARTLET_KEEP_RECORDINGS"] else { return }
        for (index, bytes) in recorded.segments.enumerated() {
            try Data(bytes).write(to: URL(fileURLWithPath: "\(folder)/\(name).\(index).mp4"))
        }
    }
}
