import MediaControl
import Primitives
import RTP
import SDP
import TestSupport

/// A capture with what its offer says about payload types and extension ids.
struct Capture: Sendable {
    let packets: [CapturedPacket]
    /// Payload type -> codec in lower case.
    private(set) var codecs: [UInt8: String] = [:]
    /// Extension id -> the last part of its URI.
    private(set) var meaning: [UInt8: String] = [:]

    init(_ name: String) throws {
        packets = try ClientCaptures.load(name)
        for line in try ClientCaptures.offer(name).split(whereSeparator: \.isNewline) {
            let words = line.split { $0 == " " || $0 == ":" || $0 == "/" }
            guard words.count > 2, let number = UInt8(words[1]) else { continue }
            if line.hasPrefix("a=rtpmap:") { codecs[number] = words[2].lowercased() }
            if line.hasPrefix("a=extmap:"), let uri = line.split(separator: " ").dropFirst().first {
                meaning[number] = Self.names.first { uri.contains($0.0) }?.0
            }
        }
    }

    /// Parts of URIs that distinguish them, and what they mean.
    static let names: [(String, HeaderExtension)] = [
        ("sdes:mid", .mid), ("sdes:rtp-stream-id", .rid), ("repaired-rtp-stream-id", .repairedRID),
        ("ssrc-audio-level", .audioLevel), ("abs-send-time", .absoluteSendTime),
        ("transport-wide-cc", .transportSequence),
        ("video-orientation", .videoOrientation), ("playout-delay", .playoutDelay),
        ("video-content-type", .videoContentType), ("video-timing", .videoTiming), ("color-space", .colorSpace),
        ("toffset", .transmissionOffset), ("abs-capture-time", .absoluteCaptureTime),
        ("dependency-descriptor", .dependencyDescriptor), ("video-layers-allocation", .videoLayersAllocation),
    ]

    func header(of packet: CapturedPacket) -> RTPHeader? { packet.bytes.withUnsafeBytes { RTPHeader($0.bytes) } }

    func elements(of packet: CapturedPacket) -> [(id: UInt8, value: [UInt8])] {
        guard let header = header(of: packet) else { return [] }
        return packet.bytes.withUnsafeBytes { bytes in
            var elements = RTPHeaderExtensions(header)
            var found: [(id: UInt8, value: [UInt8])] = []
            while let element = elements.next(in: bytes.bytes) {
                found.append((element.id, Array(bytes[element.offset..<(element.offset + element.length)])))
            }
            return found
        }
    }
}

extension Seeds {
    /// Stretches of each capture as steps of an engine's input, with a subscriber's feedback among them.
    @Sendable static func engine() throws -> [[UInt8]] {
        var seeds: [[UInt8]] = []
        for capture in try captures.get() {
            for start in [0, 150, 400] where start < capture.packets.count {
                var steps = Steps(capture)
                for packet in capture.packets[start...].prefix(28) { steps.append(packet) }
                seeds.append(steps.bytes + feedback() + [6, 40, 14, 30])
            }
        }
        // Commands among media and silence.
        let commands: [UInt8] = (0..<24).flatMap { [7 | $0 << 3, $0 &* 37] }
        seeds.append(seeds[0] + commands + seeds[0].prefix(4_000) + [6, 255, 14, 255])
        return seeds
    }

    /// NACK, PLI, FIR, REMB and reports of the subscriber about all of its streams.
    private static func feedback() -> [UInt8] {
        let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: 1_200, alignment: 8)
        defer { slot.deallocate() }
        var writer = RTCPWriter(slot)
        for stream in FuzzRoom.Stream.allCases {
            let ssrc = stream.subscription.ssrc
            writer.appendPictureLoss(senderSSRC: 1, mediaSSRC: ssrc)
            writer.beginNACK(senderSSRC: 1, mediaSSRC: ssrc)
            for number: UInt16 in [65_535, 0, 1, 2, 5] { writer.addMissing(number) }
            writer.appendFullIntraRequest(senderSSRC: 1, mediaSSRC: ssrc, sequenceNumber: 1)
        }
        return [11] + FuzzInput.record(slot[..<writer.length])
    }

    private struct Steps {
        let capture: Capture
        var bytes: [UInt8] = []
        private var layers: [UInt32] = []
        private var last: [UInt8: UInt16] = [:]

        init(_ capture: Capture) { self.capture = capture }

        mutating func append(_ packet: CapturedPacket) {
            if packet.isRTCP {
                bytes += [3] + FuzzInput.record(packet.bytes)
                return
            }
            guard let header = capture.header(of: packet), let codec = capture.codecs[header.payloadType],
                let stream = ["opus", "vp8", "vp9", "h264", "av1"].firstIndex(of: codec)
            else { return }
            if !layers.contains(header.ssrc) { layers.append(header.ssrc) }
            let layer = codec == "opus" ? 0 : (layers.firstIndex(of: header.ssrc) ?? 0) % 3
            let choice = UInt8(stream) | UInt8(layer) << 3
            let change = last[choice].map { header.sequenceNumber &- $0 } ?? 1
            last[choice] = header.sequenceNumber
            let elements = block(packet, stream, layer)
            let payload = packet.bytes[header.payloadOffset..<(header.payloadOffset + header.payloadLength)]
            let flags: UInt8 = (header.marker ? 1 : 0) | (elements.isLong ? 4 : 0) | (bytes.count & 1 == 0 ? 8 : 0)
            bytes += [0, choice, UInt8(truncatingIfNeeded: change), flags]
            bytes +=
                FuzzInput.record(elements.bytes) + FuzzInput.record(payload.prefix(payload.count > 400 ? 120 : 400))
        }

        /// The packet's elements under the room's ids, with the room's names.
        private func block(_ packet: CapturedPacket, _ stream: Int, _ layer: Int) -> (bytes: [UInt8], isLong: Bool) {
            let elements = capture.elements(of: packet).compactMap { element -> (UInt8, [UInt8])? in
                guard let name = capture.meaning[element.id],
                    let meaning = Capture.names.first(where: { $0.0 == name })?.1
                else { return nil }
                let value: [UInt8] =
                    switch meaning {
                    case .mid: Array(String(stream + 1).utf8)
                    case .rid, .repairedRID: [Array("qhf".utf8)[layer]]
                    default: element.value
                    }
                return (FuzzRoom.Stream.published[meaning], value)
            }
            let isLong = elements.contains { $0.0 > 14 || $0.1.isEmpty || $0.1.count > 16 }
            let bytes = elements.flatMap { id, value in
                (isLong ? [id, UInt8(value.count)] : [id << 4 | UInt8(value.count - 1)]) + value
            }
            return (bytes, isLong)
        }
    }
}
