import MediaControl
import Primitives
import RTP
import TestSupport

@testable import Forwarding

/// Milliseconds of virtual time after a start that is not zero.
func at(_ milliseconds: Double) -> MonotonicTime {
    MonotonicTime(nanoseconds: 1_000_000_000 + Int64(milliseconds * 1_000_000))
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
        events += uplink.consumeEvents()
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
        events += uplink.consumeEvents()
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
