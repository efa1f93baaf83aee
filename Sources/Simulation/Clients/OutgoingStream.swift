import MediaControl
public import Primitives
import RTP

/// One SSRC that a client sends: numbering, packets for retransmission, and feedback about it.
public struct OutgoingStream: Sendable {
    public let ssrc: UInt32
    public let rtxSSRC: UInt32?
    public let rid: String?
    /// Number of the next packet.
    public var sequence: UInt16
    /// Packets and payload bytes sent, without retransmissions.
    public private(set) var packets: UInt32 = 0
    public private(set) var octets: UInt32 = 0
    /// Retransmitted packets.
    public private(set) var repeats = 0
    /// When keyframes were requested.
    public internal(set) var keyframeRequests: [MonotonicTime] = []
    /// Each number that was requested again, with the time.
    public internal(set) var nacks: [(time: MonotonicTime, number: UInt16)] = []
    /// The fraction in the last receiver report.
    public internal(set) var fractionLost: UInt8 = 0
    /// A receiver report has named it: mid and rid are no longer sent, as libwebrtc does.
    var isKnown = false
    private let mid: String
    private let format: PayloadFormat
    private let timestampOffset: UInt32
    private var rtxSequence: UInt16
    private var history = [Sent?](repeating: nil, count: 512)

    private struct Sent: Sendable {
        var sequence: UInt16
        var packet: MediaPacket
    }

    init(ssrc: UInt32, rtxSSRC: UInt32?, mid: String, rid: String?, format: PayloadFormat, random: inout RandomSource) {
        self.ssrc = ssrc
        self.rtxSSRC = rtxSSRC
        self.mid = mid
        self.rid = rid
        self.format = format
        sequence = UInt16.random(in: .min ... .max, using: &random)
        rtxSequence = UInt16.random(in: .min ... .max, using: &random)
        timestampOffset = UInt32.random(in: .min ... .max, using: &random)
    }

    /// The RTP timestamp of a source's media time.
    func timestamp(_ media: UInt32) -> UInt32 { media &+ timestampOffset }

    /// Writes a new packet; returns its length.
    mutating func write(
        _ packet: MediaPacket, transportSequence: UInt16, at now: MonotonicTime,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int {
        history[Int(sequence) & (history.count - 1)] = Sent(sequence: sequence, packet: packet)
        packets &+= 1
        octets &+= UInt32(packet.payload.count)
        defer { sequence &+= 1 }
        let stamp = Stamp(sequence: sequence, transportSequence: transportSequence, now: now)
        return write(packet, stamp, original: nil, into: slot)
    }

    /// Writes a packet again; nil if it is too old.
    mutating func writeAgain(
        _ number: UInt16, transportSequence: UInt16, at now: MonotonicTime, into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        guard let sent = history[Int(number) & (history.count - 1)], sent.sequence == number else { return nil }
        repeats += 1
        guard rtxSSRC != nil else {
            let stamp = Stamp(sequence: number, transportSequence: transportSequence, now: now)
            return write(sent.packet, stamp, original: nil, into: slot)
        }
        defer { rtxSequence &+= 1 }
        let stamp = Stamp(sequence: rtxSequence, transportSequence: transportSequence, now: now)
        return write(sent.packet, stamp, original: number, into: slot)
    }

    private struct Stamp {
        var sequence: UInt16
        var transportSequence: UInt16
        var now: MonotonicTime
    }

    private func write(
        _ packet: MediaPacket, _ stamp: Stamp, original: UInt16?, into slot: UnsafeMutableRawBufferPointer
    ) -> Int {
        let type = original == nil ? format.payloadType : format.rtxPayloadType ?? 0
        slot.write(UInt8(0x80), at: 0)
        slot.write((packet.marker ? 0x80 : 0) | type, at: 1)
        slot.write(stamp.sequence, at: 2)
        slot.write(timestamp(packet.timestamp), at: 4)
        slot.write(original == nil ? ssrc : rtxSSRC ?? ssrc, at: 8)
        var offset = writeExtensions(packet, stamp, isRepeat: original != nil, into: slot)
        if let original {
            slot.write(original, at: offset)
            offset += RTX.overhead
        }
        packet.payload.withUnsafeBytes {
            UnsafeMutableRawBufferPointer(rebasing: slot[offset...]).copyMemory(from: $0)
        }
        return offset + packet.payload.count
    }

    private func writeExtensions(
        _ packet: MediaPacket, _ stamp: Stamp, isRepeat: Bool, into slot: UnsafeMutableRawBufferPointer
    ) -> Int {
        let ids = SessionTerms.publishedExtensions
        var writer = HeaderExtensionWriter(slot, at: RTPHeader.fixedLength)
        _ = writer.append(id: ids[.transportSequence], stamp.transportSequence)
        if let offset = writer.append(id: ids[.absoluteSendTime], length: AbsoluteSendTime.length) {
            AbsoluteSendTime(stamp.now).write(to: slot, at: offset)
        }
        if !packet.descriptor.isEmpty { append(packet.descriptor, id: ids[.dependencyDescriptor], to: &writer, slot) }
        if let level = packet.level { _ = writer.append(id: ids[.audioLevel], 0x80 | level) }
        if !isKnown {
            append(Array(mid.utf8), id: ids[.mid], to: &writer, slot)
            if let rid { append(Array(rid.utf8), id: isRepeat ? ids[.repairedRID] : ids[.rid], to: &writer, slot) }
        }
        return writer.finish()
    }

    private func append(
        _ bytes: [UInt8], id: UInt8, to writer: inout HeaderExtensionWriter, _ slot: UnsafeMutableRawBufferPointer
    ) {
        guard let offset = writer.append(id: id, length: bytes.count) else { return }
        for (index, byte) in bytes.enumerated() { slot[offset + index] = byte }
    }
}
