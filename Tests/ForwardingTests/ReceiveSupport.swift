import MediaControl
import Primitives
import RTP
import TestSupport

@testable import Forwarding

/// Milliseconds of virtual time after a start that is not zero.
func at(_ milliseconds: Double) -> MonotonicTime {
    MonotonicTime(nanoseconds: 1_000_000_000 + Int64(milliseconds * 1_000_000))
}

/// One RTP packet to be.
struct TestPacket {
    var ssrc: UInt32 = 0x1111
    var payloadType: UInt8 = 96
    var sequence: UInt16
    var timestamp: UInt32 = 0
    var marker = false
    var payload: [UInt8] = TestPacket.vp8Delta
    /// id -> value; in the one-byte form where it can express them all.
    var extensions: [(UInt8, [UInt8])] = []
    var padding = 0

    /// A VP8 packet that starts a delta frame: S set, P set in the frame header.
    static let vp8Delta: [UInt8] = [0x10, 0x01, 0x00, 0x00, 0xaa]
    /// A VP8 packet that continues a frame.
    static let vp8Middle: [UInt8] = [0x00, 0xaa, 0xbb]
    /// A VP8 packet that starts a keyframe of the given size.
    static func vp8Keyframe(_ width: UInt16 = 640, _ height: UInt16 = 360) -> [UInt8] {
        [0x10] + VP8Frame.keyframeHeader(width: width, height: height) + [0, 0]
    }

    var bytes: [UInt8] {
        var out: [UInt8] = [0x80 | (extensions.isEmpty ? 0 : 0x10) | (padding > 0 ? 0x20 : 0)]
        out.append((marker ? 0x80 : 0) | payloadType)
        out += [UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence)]
        for shift in [24, 16, 8, 0] { out.append(UInt8(truncatingIfNeeded: timestamp >> UInt32(shift))) }
        for shift in [24, 16, 8, 0] { out.append(UInt8(truncatingIfNeeded: ssrc >> UInt32(shift))) }
        if !extensions.isEmpty {
            let isOneByte = extensions.allSatisfy { $0 <= 14 && (1...16).contains($1.count) }
            var elements: [UInt8] = []
            for (id, value) in extensions {
                elements += isOneByte ? [id << 4 | UInt8(value.count - 1)] : [id, UInt8(value.count)]
                elements += value
            }
            while elements.count % 4 != 0 { elements.append(0) }
            out += isOneByte ? [0xbe, 0xde] : [0x10, 0x00]
            out += [UInt8((elements.count / 4) >> 8), UInt8(truncatingIfNeeded: elements.count / 4)] + elements
        }
        out += payload
        if padding > 0 { out += [UInt8](repeating: 0, count: padding - 1) + [UInt8(padding)] }
        return out
    }

    /// The same packet as a retransmission.
    func retransmitted(ssrc: UInt32, payloadType: UInt8, sequence number: UInt16) -> TestPacket {
        var copy = self
        copy.payload = [UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence)] + payload
        copy.ssrc = ssrc
        copy.payloadType = payloadType
        copy.sequence = number
        return copy
    }
}

/// An uplink with a buffer, driven packet by packet.
final class UplinkHarness {
    static let own: UInt32 = 0xfeed
    let uplink: Uplink
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 16)
    private let feedback = UnsafeMutableRawBufferPointer.allocate(byteCount: 1200, alignment: 16)
    /// Every RTCP datagram that was sent.
    var sent: [(at: MonotonicTime, bytes: [UInt8])] = []
    var events: [MediaEvent] = []
    var lastTrack: PublishedTrack?

    init(profile: PeerProfile = .full) {
        uplink = Uplink(feedbackSSRC: Self.own, profile: profile)
    }

    deinit {
        buffer.deallocate()
        feedback.deallocate()
    }

    @discardableResult
    func receive(_ packet: TestPacket, at now: MonotonicTime) -> IngestResult { receive(packet.bytes, at: now) }

    @discardableResult
    func receive(_ bytes: [UInt8], at now: MonotonicTime) -> IngestResult {
        buffer.copyBytes(from: bytes)
        clock = max(clock, now)
        lastTrack = nil
        let result = uplink.receiveRTP(buffer, length: bytes.count, at: now, track: &lastTrack)
        events += uplink.takeEvents()
        return result
    }

    func receiveRTCP(_ build: (inout RTCPWriter) -> Void, at now: MonotonicTime) {
        var writer = RTCPWriter(buffer)
        build(&writer)
        uplink.receiveRTCP(
            UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<writer.length]).bytes, at: now)
    }

    /// Lets time pass up to `end`, doing what is due on the way at its very moment.
    func run(to end: MonotonicTime) {
        var guardCount = 0
        while uplink.nextDeadline <= end, guardCount < 100_000 {
            guardCount += 1
            let now = max(uplink.nextDeadline, clock)
            clock = now
            flush(at: now)
        }
        precondition(guardCount < 100_000, "the uplink never rests")
        clock = max(clock, end)
    }
    private var clock = MonotonicTime.zero

    func flush(at now: MonotonicTime) {
        while true {
            let length = uplink.advance(to: now, feedback: feedback)
            guard length > 0 else { break }
            sent.append((now, Array(feedback[..<length])))
        }
        events += uplink.takeEvents()
    }

    /// The RTCP packets sent, with their times.
    var packets: [(at: MonotonicTime, packet: RTCPPacket, datagram: [UInt8])] {
        sent.flatMap { item in
            var list: [(at: MonotonicTime, packet: RTCPPacket, datagram: [UInt8])] = []
            item.bytes.withUnsafeBytes { raw in
                guard var compound = RTCPCompound(raw.bytes) else { return }
                while let packet = compound.next(in: raw.bytes) { list.append((item.at, packet, item.bytes)) }
                precondition(!compound.isMalformed, "malformed RTCP was sent")
            }
            return list
        }
    }

    /// Numbers asked for, with the times of asking.
    var nacked: [(at: MonotonicTime, number: UInt16)] {
        packets.flatMap { item -> [(at: MonotonicTime, number: UInt16)] in
            guard case .nack(let nack) = item.packet else { return [] }
            return item.datagram.withUnsafeBytes { raw in
                (0..<nack.count).flatMap { index in nack.entry(at: index, in: raw.bytes).map { (item.at, $0) } }
            }
        }
    }

    var keyframeRequests: [MonotonicTime] {
        packets.compactMap { item in
            switch item.packet {
            case .pictureLoss, .fullIntraRequest: item.at
            default: nil
            }
        }
    }

    var reportBlocks: [(at: MonotonicTime, block: ReportBlock)] {
        packets.flatMap { item -> [(at: MonotonicTime, block: ReportBlock)] in
            guard case .receiverReport(let report) = item.packet else { return [] }
            return item.datagram.withUnsafeBytes { raw in
                (0..<report.blocks.count).map { (item.at, report.blocks.block(at: $0, in: raw.bytes)) }
            }
        }
    }

    /// Transport-wide number -> arrival in steps of 250 us; nil where reported as not received.
    var transportArrivals: [UInt16: Int64?] {
        var reported: [UInt16: Int64?] = [:]
        for item in packets {
            guard case .transportFeedback(let feedback) = item.packet else { continue }
            item.datagram.withUnsafeBytes { raw in
                var reader = feedback.makeReader(in: raw.bytes)
                while let status = reader?.next(in: raw.bytes) {
                    if let known = reported[status.sequence], known != nil { continue }
                    reported[status.sequence] = .some(status.arrival)
                }
            }
        }
        return reported
    }
}

extension TrackDescription {
    /// A camera with VP8 and RTX, all feedback, and the usual extension ids.
    static func camera(
        id: UInt64 = 1, mid: String = "1", rids: [String] = [], encodings: [EncodingDescription]? = nil,
        feedback: FeedbackKinds = [.nack, .pli, .transportCC, .remb], codec: Codec = .vp8,
        source: TrackSource = .camera,
        payloadType: UInt8 = 96, maximumBitrate: Bitrate? = nil
    ) -> TrackDescription {
        TrackDescription(
            id: TrackID(id), peer: PeerID(1), kind: .video, source: source, mid: mid,
            formats: [
                PayloadFormat(
                    codec: codec, payloadType: payloadType, rtxPayloadType: payloadType + 1, clockRateHz: 90_000)
            ],
            encodings: encodings
                ?? (rids.isEmpty ? [EncodingDescription()] : rids.map { EncodingDescription(rid: $0) }),
            extensions: usualExtensions, feedback: feedback, maximumBitrate: maximumBitrate)
    }

    static func microphone(
        id: UInt64 = 2, mid: String = "0", payloadType: UInt8 = 111, feedback: FeedbackKinds = [.transportCC],
        codec: Codec = .opus
    ) -> TrackDescription {
        TrackDescription(
            id: TrackID(id), peer: PeerID(1), kind: .audio, source: .microphone, mid: mid,
            formats: [PayloadFormat(codec: codec, payloadType: payloadType, rtxPayloadType: nil, clockRateHz: 48_000)],
            encodings: [EncodingDescription()], extensions: usualExtensions, feedback: feedback)
    }

    static var usualExtensions: HeaderExtensionIDs {
        var ids = HeaderExtensionIDs()
        ids[.audioLevel] = 1
        ids[.absoluteSendTime] = 2
        ids[.transportSequence] = 3
        ids[.mid] = 4
        ids[.rid] = 10
        ids[.repairedRID] = 11
        ids[.videoOrientation] = 13
        return ids
    }
}

extension PublishedTrack {
    /// The record of a stored packet.
    func stored(_ sequence: Int64, layer index: Int = 0) -> PacketRecord? {
        layer(index).pointee.history.record(sequence)?.pointee
    }

    /// The bytes of a stored packet.
    func storedBytes(_ sequence: Int64, layer index: Int = 0) -> [UInt8]? {
        guard let record = layer(index).pointee.history.record(sequence) else { return nil }
        return Array(layer(index).pointee.history.packet(record))
    }
}
