import MediaControl
import PayloadFormats
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

/// A depacketizer that has the aggregation header, the marker and nothing else, as libwebrtc's without a dependency descriptor: a frame begins
/// with a packet that continues nothing and ends with one that is not continued.
private struct PlainDepacketizer {
    struct Frame: Equatable {
        var timestamp: UInt32
        var startsSequence: Bool
        /// Its OBUs, fragments put together.
        var units: [[UInt8]]
        var hasMarker: Bool
    }

    var frames: [Frame] = []
    var faults: [String] = []
    private var isOpen = false

    init(_ packets: [WrittenPacket]) {
        for (before, packet) in zip([nil] + packets.map { Optional($0) }, packets) {
            if let before, packet.header.sequenceNumber != before.header.sequenceNumber &+ 1 {
                faults.append("\(packet.header.sequenceNumber) after \(before.header.sequenceNumber)")
            }
            receive(packet)
        }
        // The capture ends within a temporal unit.
        if isOpen { frames.removeLast() }
    }

    private mutating func receive(_ packet: WrittenPacket) {
        // Padding in the place of a packet that is left out.
        guard packet.header.payloadLength > 0 else { return }
        let payload = packet.payload
        let continues = payload[0] & 0x80 != 0, isContinued = payload[0] & 0x40 != 0
        if continues != isOpen {
            faults.append("\(packet.header.sequenceNumber) continues: \(continues), open: \(isOpen)")
        }
        if !continues || frames.isEmpty {
            frames.append(
                Frame(
                    timestamp: packet.header.timestamp, startsSequence: payload[0] & 8 != 0, units: [], hasMarker: false
                ))
        }
        if frames[frames.count - 1].timestamp != packet.header.timestamp {
            faults.append("\(packet.header.sequenceNumber) continues another picture")
        }
        addUnits(payload, continues: continues)
        frames[frames.count - 1].hasMarker = packet.header.marker
        isOpen = isContinued
        if packet.header.marker, isContinued {
            faults.append("\(packet.header.sequenceNumber): a marker within a frame")
        }
    }

    private mutating func addUnits(_ payload: [UInt8], continues: Bool) {
        let count = Int(payload[0] >> 4 & 3)
        var cursor = 1, element = 0
        while cursor < payload.count {
            element += 1
            var length = payload.count - cursor
            if element != count {
                length = 0
                var shift = 0
                repeat {
                    length |= Int(payload[cursor] & 0x7f) << shift
                    shift += 7
                    cursor += 1
                } while payload[cursor - 1] & 0x80 != 0
            }
            let bytes = payload[cursor..<(cursor + length)]
            cursor += length
            if element == 1, continues, let last = frames[frames.count - 1].units.indices.last {
                frames[frames.count - 1].units[last] += bytes
            } else {
                frames[frames.count - 1].units.append(Array(bytes))
            }
        }
        if count > 0, element != count { faults.append("\(element) elements of \(count)") }
    }

    /// The highest spatial layer of a frame, by its OBUs' extensions.
    static func spatialLayer(of frame: Frame) -> Int {
        frame.units.map { $0[0] & 4 != 0 ? Int($0[1] >> 3 & 3) : 0 }.max() ?? 0
    }
}

@Suite("AV1 spatial layers for a subscriber without dependency descriptor")
struct SendJoiningTests {
    private static let accepted = PayloadFormat(codec: .av1, payloadType: 35, rtxPayloadType: 36, clockRateHz: 90_000)

    /// A capture of Chromium's L3T3 through a subscription; `reorder` delays every so many-th packet by three. Packets by sequence number.
    private func play(
        descriptor: UInt8? = nil, reorder: Int = 0, at changes: [Int: LayerBound] = [:]
    ) throws -> (harness: SendHarness, packets: [WrittenPacket], timestamps: Set<UInt32>) {
        let tracks = try capturedTracks("whip_chromium_av1_l3t3", namingSSRCs: false)
        let track = try #require(tracks.first { $0.kind == .video })
        let harness = SendHarness(
            track,
            SendSession.subscription(
                formats: [Self.accepted], extensions: descriptor.map { [(.dependencyDescriptor, $0)] } ?? []))
        var late: [(turn: Int, bytes: [UInt8])] = []
        var timestamps: Set<UInt32> = []
        let media = try ClientCaptures.load("whip_chromium_av1_l3t3").filter { !$0.isRTCP && $0.bytes[1] & 0x7f == 45 }
        for (turn, packet) in media.enumerated() {
            let now = packet.time + .seconds(1)
            if let bound = changes[turn] {
                _ = harness.subscription.pointee.setBound(bound, track: harness.track, at: now)
            }
            timestamps.insert(
                UInt32(bigEndian: packet.bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 4, as: UInt32.self) })
            )
            if reorder > 0, turn % reorder == reorder - 1 {
                late.append((turn + 3, packet.bytes))
            } else {
                harness.turn([packet.bytes], at: now)
            }
            while let first = late.first, first.turn <= turn {
                harness.turn([first.bytes], at: now)
                late.removeFirst()
            }
        }
        let base = try #require(harness.out.first).header.sequenceNumber
        let packets = harness.out.sorted { $0.header.sequenceNumber &- base < $1.header.sequenceNumber &- base }
        return (harness, packets, timestamps)
    }

    @Test(
        "G8: all layers of a temporal unit become one whole frame, whose last packet has the marker",
        arguments: [0, 7, 11])
    func oneFramePerTemporalUnit(reorder: Int) throws {
        let (_, packets, timestamps) = try play(reorder: reorder)
        let plain = PlainDepacketizer(packets)
        #expect(plain.faults == [])
        #expect(plain.frames.count >= timestamps.count - 1)
        #expect(Set(plain.frames.map(\.timestamp)).count == plain.frames.count, "one frame per timestamp")
        #expect(plain.frames.allSatisfy { $0.hasMarker })
        #expect(plain.frames.first?.startsSequence == true)
        // The OBUs are the publisher's.
        let (_, described, _) = try play(descriptor: 5, reorder: reorder)
        let last = plain.frames.last?.timestamp
        let units = PlainDepacketizer(described).frames.prefix {
            $0.timestamp != described.last?.header.timestamp || $0.timestamp == last
        }
        #expect(units.flatMap(\.units) == plain.frames.flatMap(\.units))
        #expect(plain.frames.map { PlainDepacketizer.spatialLayer(of: $0) }.max() == 2)
    }

    @Test("G8: with fewer spatial layers, too; more layers start with a keyframe only", arguments: [0, 9])
    func layersChange(reorder: Int) throws {
        let (_, packets, _) = try play(
            reorder: reorder,
            at: [
                100: .upTo(LayerPoint(spatial: 1, temporal: 2)), 200: .upTo(LayerPoint(spatial: 0, temporal: 2)),
                300: .upTo(LayerPoint(spatial: 0, temporal: 0)),
                400: .unlimited,
            ])
        let plain = PlainDepacketizer(packets)
        #expect(plain.faults == [])
        #expect(Set(plain.frames.map(\.timestamp)).count == plain.frames.count)
        #expect(plain.frames.allSatisfy { $0.hasMarker })
        let layers = plain.frames.map { PlainDepacketizer.spatialLayer(of: $0) }
        #expect(Set(layers) == [0, 1, 2])
        for (index, layer) in layers.enumerated().dropFirst() where layer > layers[index - 1] {
            // The publisher itself begins its top layer amid the stream, once, before anything is left out.
            #expect(plain.frames[index].startsSequence || index < 30)
        }
    }

    @Test("G3: a retransmission has the bytes of the original, in RTX with its own header")
    func repeats() throws {
        let (harness, packets, _) = try play()
        for packet in packets.suffix(40) {
            let repeated = try #require(harness.repeats(of: packet.header.sequenceNumber, at: at(60_000)))
            #expect(Array(repeated.payload.dropFirst(2)) == packet.payload)
        }
    }

    @Test(
        "Frames of a temporal layer that was left are repeated, but not for a receiver whose descriptor says that no other needs them",
        arguments: [nil, 5] as [UInt8?])
    func repeatsOfLeftLayers(descriptor: UInt8?) throws {
        let (harness, packets, _) = try play(descriptor: descriptor)
        _ = harness.subscription.pointee.setBound(
            .upTo(LayerPoint(spatial: .max, temporal: 0)), track: harness.track, at: at(59_000))
        let repeated = packets.suffix(40).filter {
            harness.repeats(of: $0.header.sequenceNumber, at: at(60_000)) != nil
        }
        #expect(descriptor == nil ? repeated.count == 40 : (1..<40).contains(repeated.count))
    }

    @Test("With a negotiated descriptor payloads are unchanged")
    func unchangedWithDescriptor() throws {
        let (_, packets, _) = try play(descriptor: 5)
        let media = try ClientCaptures.load("whip_chromium_av1_l3t3").filter { !$0.isRTCP && $0.bytes[1] & 0x7f == 45 }
        var published: Set<[UInt8]> = []
        for packet in media {
            let header = try #require(packet.bytes.withUnsafeBytes { RTPHeader($0.bytes) })
            published.insert(Array(packet.bytes[header.payloadOffset..<(header.payloadOffset + header.payloadLength)]))
        }
        #expect(packets.allSatisfy { published.contains($0.payload) })
        #expect(packets.allSatisfy { $0.extensions[5] != nil })
    }
}
