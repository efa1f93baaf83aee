import MediaControl
import PayloadFormats
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

/// G10: what is encrypted end to end is forwarded by what stands beside the payload. Captures of real clients, their payloads encrypted.
@Suite("End-to-end encrypted payloads")
struct OpaquePayloadTests {
    /// Encrypts what end-to-end encryption covers, or decrypts it, with the key stream of `seed`.
    private static func encrypt(_ payload: [UInt8], from start: Int, seed: UInt64 = 10) -> [UInt8] {
        var random = RandomSource(seed: seed)
        let keys = (0..<payload.count).map { _ in UInt8(truncatingIfNeeded: random.next() >> 24) }
        return payload.indices.map { $0 < start ? payload[$0] : payload[$0] ^ keys[$0 - start] }
    }

    /// Bytes of VP8's payload descriptor (RFC 7741 section 4.2). With the descriptor extension libwebrtc writes one.
    private static func descriptorLength(_ payload: [UInt8]) -> Int {
        guard payload.count > 1, payload[0] & 0x80 != 0 else { return 1 }
        let flags = payload[1]
        var length = 2
        if flags & 0x80 != 0 { length += payload.count > 2 && payload[2] & 0x80 != 0 ? 2 : 1 }
        if flags & 0x40 != 0 { length += 1 }
        if flags & 0x30 != 0 { length += 1 }
        return length
    }

    private struct Capture {
        var track: TrackDescription
        var packets: [(time: MonotonicTime, bytes: [UInt8])] = []

        /// The packets of one kind of media; `encrypted` covers their payloads, behind the number of a repeat and VP8's payload
        /// descriptor.
        init(_ name: String, _ kind: MediaKind, encrypted: Bool) throws {
            track = try #require(try capturedTracks(name, namingSSRCs: false).first { $0.kind == kind })
            let types = track.formats.map(\.payloadType), repairs = track.formats.compactMap(\.rtxPayloadType)
            for packet in try ClientCaptures.load(name) where !packet.isRTCP {
                let parsed = packet.bytes.withUnsafeBytes { RTPHeader($0.bytes) }
                let header = try #require(parsed)
                let isRepeat = repairs.contains(header.payloadType)
                guard types.contains(header.payloadType) || isRepeat else { continue }
                var bytes = packet.bytes
                let range = header.payloadOffset..<(header.payloadOffset + header.payloadLength)
                let codec = track.formats.first {
                    $0.payloadType == header.payloadType || $0.rtxPayloadType == header.payloadType
                }?.codec
                let number = isRepeat ? 2 : 0
                let start =
                    number
                    + (codec == .vp8 ? OpaquePayloadTests.descriptorLength(Array(bytes[range].dropFirst(number))) : 0)
                if encrypted { bytes.replaceSubrange(range, with: encrypt(Array(bytes[range]), from: start)) }
                packets.append((packet.time + .seconds(1), bytes))
            }
        }

        private func encrypt(_ payload: [UInt8], from start: Int) -> [UInt8] {
            OpaquePayloadTests.encrypt(payload, from: start)
        }
    }

    /// What a subscriber that takes the track's own format is sent.
    private static func forward(_ capture: Capture) -> SendHarness {
        var formats = capture.track.formats
        for index in formats.indices { formats[index].rtxPayloadType = nil }
        var pairs: [(HeaderExtension, UInt8)] = []
        let descriptor = capture.track.extensions[.dependencyDescriptor]
        if descriptor != 0 { pairs.append((.dependencyDescriptor, descriptor)) }
        let harness = SendHarness(
            capture.track,
            SendSession.subscription(kind: capture.track.kind, formats: formats, rtx: false, extensions: pairs))
        for packet in capture.packets { harness.turn([packet.bytes], at: packet.time) }
        return harness
    }

    @Test(
        "G10: encrypted video with a dependency descriptor is forwarded like the same video unencrypted",
        arguments: ["whip_chromium_h264_sim3", "whip_chromium_av1_l3t3", "whip_chromium_vp8_sim3"])
    func video(name: String) throws {
        let clear = Self.forward(try Capture(name, .video, encrypted: false))
        let opaque = Self.forward(try Capture(name, .video, encrypted: true))
        #expect(clear.out.count > 50)
        #expect(opaque.out.count == clear.out.count)
        let start = name.contains("vp8") ? 1 : 0
        for (sent, plain) in zip(opaque.out, clear.out) {
            #expect(sent.header.sequenceNumber == plain.header.sequenceNumber)
            #expect(sent.header.timestamp == plain.header.timestamp && sent.header.marker == plain.header.marker)
            #expect(Self.encrypt(sent.payload, from: start) == plain.payload, "the payload is whole")
        }
        for layer in 0..<clear.track.layerCount {
            let keyframes = clear.track.layer(layer).pointee.totals.keyframes
            #expect(opaque.track.layer(layer).pointee.totals.keyframes == keyframes)
        }
    }

    @Test("G10: encrypted Opus is forwarded whole, without any descriptor")
    func audio() throws {
        var capture = try Capture("whip_chromium_vp8_sim3", .audio, encrypted: false)
        // A key stream for each packet, so that their first bytes are any: most that end in 3 break the rules of Opus.
        for index in capture.packets.indices {
            let bytes = capture.packets[index].bytes
            let parsed = bytes.withUnsafeBytes { RTPHeader($0.bytes) }
            let start = try #require(parsed).payloadOffset
            capture.packets[index].bytes = Self.encrypt(bytes, from: start, seed: UInt64(index))
        }
        let harness = Self.forward(capture)
        #expect(capture.packets.count > 200)
        #expect(harness.out.count == capture.packets.count)
        for (sent, packet) in zip(harness.out, capture.packets) {
            #expect(packet.bytes.suffix(sent.payload.count).elementsEqual(sent.payload))
        }
    }

    @Test(
        "G10: encrypted VP8 without a dependency descriptor is forwarded; nothing after its payload descriptor changes"
    )
    func withoutDescriptor() throws {
        let opaque = try Capture("whip_gst_vp8_mtu1400", .video, encrypted: true)
        var bodies: Set<[UInt8]> = []
        for packet in opaque.packets {
            let parsed = packet.bytes.withUnsafeBytes { RTPHeader($0.bytes) }
            let header = try #require(parsed)
            let payload = packet.bytes[header.payloadOffset..<(header.payloadOffset + header.payloadLength)]
            bodies.insert(Array(payload.dropFirst(Self.descriptorLength(Array(payload)))))
        }
        let sent = Self.forward(opaque).out
        #expect(sent.count > 50)
        for packet in sent {
            #expect(bodies.contains(Array(packet.payload.dropFirst(Self.descriptorLength(packet.payload)))))
        }
    }

    @Test(
        "G10: encrypted RED is forwarded whole; a subscriber without RED is refused, because the server cannot strip it"
    )
    func redundantAudio() {
        let red = PayloadFormat(codec: .red, payloadType: 70, rtxPayloadType: nil, clockRateHz: 48_000)
        let opus = PayloadFormat(codec: .opus, payloadType: 109, rtxPayloadType: nil, clockRateHz: 48_000)
        var random = RandomSource(seed: 1)
        let payloads = (0..<2_000).map { _ in (0..<60).map { _ in UInt8(truncatingIfNeeded: random.next() >> 24) } }
        func play(to accepted: [PayloadFormat]) -> SendHarness {
            let harness = SendHarness(
                SendSession.track(kind: .audio, formats: [SendSession.red, SendSession.opus]),
                SendSession.subscription(kind: .audio, formats: accepted, rtx: false))
            for (index, payload) in payloads.enumerated() {
                let packet = TestPacket(
                    ssrc: 0x100, payloadType: 63, sequence: UInt16(index), timestamp: 960 * UInt32(index),
                    payload: payload)
                harness.turn([packet.bytes], at: at(20 * Double(index)))
            }
            return harness
        }
        #expect(play(to: [red, opus]).out.map(\.payload) == payloads)
        let plain = play(to: [opus])
        #expect(plain.out.isEmpty)
        #expect(plain.signals.filter { $0.contains(.noCommonCodec) }.count == 1)
    }

    @Test("G10: a packet ahead of the dependency structure never starts a stream, whatever its bytes look like")
    func beforeStructure() throws {
        var capture = try Capture("whip_chromium_h264_sim3", .video, encrypted: true)
        let id = capture.track.extensions[.dependencyDescriptor]
        // The first packets of the first keyframes are lost: one of four flags behind 3 mandatory bytes says that a structure follows.
        let early = capture.packets[capture.packets.count / 3].time
        capture.packets.removeAll { packet in
            guard packet.time < early else { return false }
            let parsed = packet.bytes.withUnsafeBytes { RTPHeader($0.bytes) }
            let received = parsed.map { WrittenPacket(bytes: packet.bytes, header: $0, time: packet.time) }
            guard let descriptor = received?.extensions[id], descriptor.count > 3 else { return false }
            return descriptor[3] & 0x80 != 0
        }
        let harness = SendHarness(
            capture.track,
            SendSession.subscription(
                formats: capture.track.formats, rtx: false, extensions: [(.dependencyDescriptor, id)]))
        for packet in capture.packets {
            let before = harness.out.count
            harness.turn([packet.bytes], at: packet.time)
            guard before == 0, let first = harness.out.first else { continue }
            let descriptor = try #require(first.extensions[id])
            #expect(descriptor.count > 3 && descriptor[3] & 0x80 != 0, "begins with a keyframe")
        }
        let end = try #require(capture.packets.last).time
        let received = harness.track.statistics(at: end).layers.reduce(0) { $0 + $1.packetsReceived }
        #expect(received > 200, "they are received all the same")
    }
}
