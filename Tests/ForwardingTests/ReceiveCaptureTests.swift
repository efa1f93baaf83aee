import MediaControl
import PayloadFormats
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

/// The whole receive path over what real clients sent.
@Suite("Receive: captures of real clients")
struct ReceiveCaptureTests {
    private struct Outcome {
        var harness = UplinkHarness()
        var results: [IngestResult] = []
        var dropped: [DropReason: Int] = [:]
        var gaps: [DropReason: Int] = [:]
        var stored = 0
        var changed = 0
    }

    /// Plays a capture at its own pace.
    private static func play(_ name: String, namingSSRCs: Bool = false) throws -> Outcome {
        var outcome = Outcome()
        let harness = outcome.harness
        for description in try capturedTracks(name, namingSSRCs: namingSSRCs) {
            _ = harness.uplink.addTrack(description, at: at(0))
        }
        for packet in try ClientCaptures.load(name) {
            let now = packet.time + .seconds(1)
            harness.run(to: now)
            guard !packet.isRTCP else {
                packet.bytes.withUnsafeBytes { harness.uplink.receiveRTCP($0.bytes, at: now) }
                continue
            }
            let result = harness.receive(packet.bytes, at: now)
            switch result {
            case .dropped(let reason): outcome.dropped[reason, default: 0] += 1
            case .gap(_, _, let reason): outcome.gaps[reason, default: 0] += 1
            case .stored(let layer, let sequence):
                outcome.stored += 1
                if let track = harness.lastTrack,
                    track.stored(sequence, layer: layer)?.flags.contains(.repaired) == false,
                    track.storedBytes(sequence, layer: layer) != packet.bytes
                {
                    outcome.changed += 1
                }
            }
            harness.lastTrack?.endTurn()
        }
        return outcome
    }

    @Test(
        "Every packet is bound to a layer, and media is stored unchanged", arguments: ClientCaptures.all,
        [true, false])
    func everyPacket(name: String, namingSSRCs: Bool) throws {
        let outcome = try Self.play(name, namingSSRCs: namingSSRCs)
        let useless: Set<DropReason> = [.rtpDuplicate, .rtpPaddingOnly, .rtxUnknownStream, .rtpTooOld]
        #expect(outcome.dropped.filter { !useless.contains($0.key) }.isEmpty, "\(outcome.dropped)")
        #expect(outcome.gaps.filter { $0.key != .rtpPaddingOnly }.isEmpty, "\(outcome.gaps)")
        #expect(outcome.changed == 0)
        #expect(outcome.stored > 5)
        // Nothing was lost on the way, so nothing may be asked for but what the capture itself lacks.
        #expect(outcome.harness.nacked.count < 40, "\(outcome.harness.nacked.count) asked for")
    }

    @Test(
        "Codec, layers and sizes are those that the client encoded",
        arguments: [
            ("whip_chromium_vp8_sim3", Codec.vp8, 2), ("whip_chromium_h264_sim3", .h264, 3),
            ("whip_chromium_vp9_sim3", .vp9, 3), ("whip_chromium_vp9_l3t3key", .vp9, 1),
            ("whip_chromium_av1_l3t3", .av1, 1), ("whip_firefox_vp8_sim3", .vp8, 3), ("whip_firefox_av1", .av1, 1),
            ("whip_gst_h264", .h264, 1), ("whip_gst_vp8_mtu1400", .vp8, 1), ("whip_ffmpeg_h264", .h264, 1),
        ])
    func layers(name: String, codec: Codec, layers: Int) throws {
        let outcome = try Self.play(name)
        let tracks = outcome.harness.uplink.tracks.compactMap { $0 }
        let video = try #require(tracks.first { $0.description.kind == .video })
        #expect(video.format?.codec == codec)
        var seen = 0
        for index in 0..<video.layerCount where video.layer(index).pointee.totals.packets > 0 {
            seen += 1
            let width = video.layer(index).pointee.size.width, height = video.layer(index).pointee.size.height
            #expect(width >= 160 && height >= 90, "\(name) layer \(index): \(width) x \(height)")
            // Of three spatial layers each has a quarter of the next one's pixels; a stream without them is sent whole.
            let lowest = video.sizeSent(ofLayer: index, upTo: 0), all = video.sizeSent(ofLayer: index, upTo: 255)
            let share = name.contains("l3t3") ? 4 : 1
            #expect(all == (width, height) && lowest == (width / share, height / share), "\(name)")
            let hasKeyframe = video.layer(index).pointee.lastKeyframe != nil
            #expect(hasKeyframe, "\(name) layer \(index)")
            let isComplete = video.layer(index).pointee.parameterSets.isComplete
            #expect(isComplete == (codec == .h264), "parameter sets are kept")
        }
        #expect(seen == layers)
        #expect(outcome.harness.events.contains(.trackStarted(video.description.id, codec)))
        // Ranks follow size.
        let sizes = (0..<layers).map { rank -> Int in
            let layer = video.layer(video.layer(ofRank: rank))
            return layer.pointee.size.width * layer.pointee.size.height
        }
        if layers == video.layerCount { #expect(sizes == sizes.sorted()) }
    }

    @Test(
        "E5: the cached parameter sets make a STAP-A that the H.264 parser reads",
        arguments: ["whip_gst_h264", "whip_ffmpeg_h264", "whip_chromium_h264_sim3"])
    func parameterSets(name: String) throws {
        let outcome = try Self.play(name)
        let video = try #require(
            outcome.harness.uplink.tracks.compactMap { $0 }.first { $0.description.kind == .video })
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1200, alignment: 8)
        defer { buffer.deallocate() }
        let written = video.layer(0).pointee.parameterSets.writeSTAPA(into: buffer)
        let length = try #require(written)
        let payload = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<length])
        let walk = H264.Units(payload.bytes)
        var units = try #require(walk)
        var types: [UInt8] = []
        while let unit = units.next(in: payload.bytes) { types.append(unit.type) }
        #expect(types.first == H264.sequenceParameterSet && types.last == H264.pictureParameterSet)
        let read = PayloadCodec.h264.summary(of: payload.bytes, marker: false)
        let summary = try #require(read)
        #expect(summary.startsKeyframe && summary.dimensions != nil)
    }

    @Test("Truncated, corrupted and shuffled captures never trap", arguments: ClientCaptures.all)
    func hostile(name: String) throws {
        var random = RandomSource(seed: 1)
        let packets = try ClientCaptures.load(name)
        let harness = UplinkHarness()
        for description in try capturedTracks(name, namingSSRCs: false) {
            _ = harness.uplink.addTrack(description, at: at(0))
        }
        for round in 0..<2000 {
            var bytes = packets[Int(random.next() % UInt64(packets.count))].bytes
            for _ in 0..<(random.next() % 4) {
                bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
            }
            if random.next() % 4 == 0 { bytes.removeLast(Int(random.next() % UInt64(bytes.count))) }
            let now = at(Double(round) * 2)
            harness.receive(bytes, at: now)
            bytes.withUnsafeBytes { harness.uplink.receiveRTCP($0.bytes, at: now) }
            if round % 16 == 0 { harness.run(to: now) }
            if let track = harness.lastTrack {
                for arrival in track.arrivals { _ = track.storedBytes(arrival.sequence, layer: Int(arrival.layer)) }
                track.endTurn()
            }
        }
    }
}
