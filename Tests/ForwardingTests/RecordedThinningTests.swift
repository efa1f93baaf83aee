import MediaControl
import PayloadFormats
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

/// Temporal layers of VP8 as browsers encode them. Payloads name no layers there, dependency descriptors do.
@Suite("Temporal thinning of recorded streams")
struct RecordedThinningTests {
    /// The smallest layer of a capture, which both browsers begin with.
    private struct Recorded {
        let track: TrackDescription
        let descriptorID: UInt8
        private(set) var packets: [(time: MonotonicTime, bytes: [UInt8])] = []

        init(_ name: String) throws {
            track = try #require(try capturedTracks(name, namingSSRCs: false).first { $0.kind == .video })
            descriptorID = track.extensions[.dependencyDescriptor]
            let types = track.formats.map(\.payloadType)
            var ssrc: UInt32?
            for packet in try ClientCaptures.load(name) where !packet.isRTCP {
                let parsed = packet.bytes.withUnsafeBytes { RTPHeader($0.bytes) }
                let header = try #require(parsed)
                guard types.contains(header.payloadType), header.ssrc == ssrc ?? header.ssrc else { continue }
                ssrc = header.ssrc
                packets.append((packet.time + .seconds(1), packet.bytes))
            }
        }

        /// A subscriber that gets the lowest temporal layer.
        func harness() -> SendHarness {
            var formats = track.formats
            for index in formats.indices { formats[index].rtxPayloadType = nil }
            let harness = SendHarness(
                track,
                SendSession.subscription(
                    formats: formats, rtx: false, extensions: [(.dependencyDescriptor, descriptorID)]))
            Self.bound(harness, temporal: 0, at: .zero)
            return harness
        }

        static func bound(_ harness: SendHarness, temporal: Int, at now: MonotonicTime) {
            _ = harness.subscription.pointee.setBound(
                .upTo(LayerPoint(spatial: .max, temporal: temporal)), track: harness.track, at: now)
        }
    }

    /// What is wrong with a stream, and where its first frame of an upper layer is.
    private struct Play {
        var faults: [String] = []
        var firstUpper: Int?
        var frames = 0

        /// Frame `raised` of the source is the first for which all layers are allowed.
        init(_ recorded: Recorded, raised: Int) throws {
            let harness = recorded.harness()
            var reader = DependencyDescriptorReader()
            var shown: Set<UInt16> = []
            var last: UInt32?
            for packet in recorded.packets {
                let parsed = packet.bytes.withUnsafeBytes { RTPHeader($0.bytes) }
                let header = try #require(parsed)
                if header.timestamp != last {
                    if frames == raised { Recorded.bound(harness, temporal: .max, at: packet.time) }
                    frames += 1
                    last = header.timestamp
                }
                let before = harness.out.count
                harness.turn([packet.bytes], at: packet.time)
                for written in harness.out[before...] {
                    let value = try #require(written.extensions[recorded.descriptorID])
                    let read = reader.read(value.span.bytes)
                    let frame = try #require(read)
                    if frame.temporalLayer > 0 { firstUpper = firstUpper ?? frames - 1 }
                    for index in 0..<frame.referenceCount
                    where !shown.contains(frame.frameNumber &- frame.reference(at: index)) {
                        faults.append("frame \(frames - 1) refers \(frame.reference(at: index)) back")
                    }
                    shown.insert(frame.frameNumber)
                }
            }
        }
    }

    @Test(
        "H8: a viewer gets more temporal layers of recorded VP8 within one cycle of them, and each frame's references",
        arguments: [("whip_chromium_vp8_sim3", 8), ("whip_firefox_vp8_sim3", 4)])
    func up(name: String, cycle: Int) throws {
        let recorded = try Recorded(name)
        let frames = try Play(recorded, raised: .max).frames
        for raised in 1...(frames - cycle) {
            let play = try Play(recorded, raised: raised)
            #expect(play.faults.isEmpty, "raised at frame \(raised): \(play.faults)")
            let first = try #require(play.firstUpper)
            #expect((raised..<(raised + cycle)).contains(first), "raised at frame \(raised)")
        }
    }
}
