import Primitives

/// One packet of a compound, or one block of an extended report.
///
/// The views hold numbers and offsets into the datagram; lists are read with the datagram at hand.
public enum RTCPPacket: Sendable {
    /// Sender report (RFC 3550 section 6.4.1).
    case senderReport(SenderReport)
    /// Receiver report (RFC 3550 section 6.4.2).
    case receiverReport(ReceiverReport)
    /// Source description (RFC 3550 section 6.5).
    case sourceDescription(SourceDescription)
    /// Goodbye (RFC 3550 section 6.6).
    case goodbye(Goodbye)
    /// Generic NACK (RFC 4585 section 6.2.1).
    case nack(GenericNACK)
    /// Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1).
    case transportFeedback(TransportFeedback)
    /// Picture loss indication (RFC 4585 section 6.3.1).
    case pictureLoss(PictureLossIndication)
    /// Full intra request (RFC 5104 section 4.3.1).
    case fullIntraRequest(FullIntraRequest)
    /// Receiver estimated maximum bitrate (draft-alvestrand-rmcat-remb-03).
    case maximumBitrate(ReceiverEstimatedMaximumBitrate)
    /// Receiver reference time block of an extended report (RFC 3611 section 4.4).
    case receiverReferenceTime(ReceiverReferenceTime)
    /// Delay since last receiver report blocks of an extended report (RFC 3611 section 4.5).
    case delaySinceLastReceiverReport(DelaySinceLastReceiverReport)
    /// Application-defined (RFC 3550 section 6.7); not used.
    case application(UnknownRTCP)
    /// Anything else, well framed.
    case unknown(UnknownRTCP)
}

/// Numbers of the RTCP packet types and feedback formats.
public enum RTCPType {
    /// SR.
    public static let senderReport: UInt8 = 200
    /// RR.
    public static let receiverReport: UInt8 = 201
    /// SDES.
    public static let sourceDescription: UInt8 = 202
    /// BYE.
    public static let goodbye: UInt8 = 203
    /// APP.
    public static let application: UInt8 = 204
    /// RTPFB: NACK is format 1, transport-wide feedback 15.
    public static let transportFeedback: UInt8 = 205
    /// PSFB: PLI is format 1, FIR 4, REMB 15.
    public static let payloadFeedback: UInt8 = 206
    /// XR.
    public static let extendedReport: UInt8 = 207

    /// Whether a datagram with this second byte is RTCP, not RTP (RFC 5761 section 4): packet types 192 to 223 are in the place of RTP's marker and payload
    /// type.
    @inlinable @inline(__always) public static func contains(_ secondByte: UInt8) -> Bool { secondByte & 0xe0 == 0xc0 }
}

/// Walks a compound or reduced-size (RFC 5506) RTCP datagram.
///
/// ```swift
/// guard var compound = RTCPCompound(datagram) else { … }
/// while let packet = compound.next(in: datagram) { switch packet { … } }
/// if compound.isMalformed { … }
/// ```
/// Packets read before a malformed one are valid; the rest is not examined.
public struct RTCPCompound: Sendable {
    private var position = 0
    private let end: Int
    /// Where the next block of an extended report starts, and where that report ends; 0 outside of one.
    private var blockPosition = 0
    private var blockEnd = 0
    private var blockSSRC: UInt32 = 0
    /// Whether the walk ended at bytes that are no RTCP.
    public private(set) var isMalformed = false

    /// A walk over `datagram`; nil when its first four bytes are no RTCP header.
    public init?(_ datagram: RawSpan) {
        end = datagram.byteCount
        guard end >= 4, datagram.readUInt8(0) & 0xc0 == 0x80, RTCPType.contains(datagram.readUInt8(1)) else {
            return nil
        }
    }

    /// The next packet; nil at the end.
    public mutating func next(in datagram: RawSpan) -> RTCPPacket? {
        while true {
            if blockPosition < blockEnd {
                if let block = nextBlock(in: datagram) { return block }
                continue
            }
            guard position < end, !isMalformed else { return nil }
            guard let frame = RTCPFrame(datagram, at: position, end: end) else {
                isMalformed = true
                return nil
            }
            position = frame.next
            if frame.type == RTCPType.extendedReport {
                guard frame.bodyEnd - frame.body >= 4 else {
                    isMalformed = true
                    return nil
                }
                blockSSRC = datagram.readUInt32(frame.body)
                blockPosition = frame.body + 4
                blockEnd = frame.bodyEnd
                continue
            }
            guard let packet = Self.read(frame, in: datagram) else {
                isMalformed = true
                return nil
            }
            return packet
        }
    }

    private static func read(_ frame: RTCPFrame, in datagram: RawSpan) -> RTCPPacket? {
        switch (frame.type, frame.count) {
        case (RTCPType.senderReport, _): SenderReport(frame, in: datagram).map { .senderReport($0) }
        case (RTCPType.receiverReport, _): ReceiverReport(frame, in: datagram).map { .receiverReport($0) }
        case (RTCPType.sourceDescription, _): .sourceDescription(SourceDescription(frame))
        case (RTCPType.goodbye, _): Goodbye(frame, in: datagram).map { .goodbye($0) }
        case (RTCPType.transportFeedback, 1): GenericNACK(frame, in: datagram).map { .nack($0) }
        case (RTCPType.transportFeedback, 15): TransportFeedback(frame, in: datagram).map { .transportFeedback($0) }
        case (RTCPType.payloadFeedback, 1): PictureLossIndication(frame, in: datagram).map { .pictureLoss($0) }
        case (RTCPType.payloadFeedback, 4): FullIntraRequest(frame, in: datagram).map { .fullIntraRequest($0) }
        case (RTCPType.payloadFeedback, 15):
            // Format 15 is shared by all application layer feedback; only "REMB" is known.
            ReceiverEstimatedMaximumBitrate(frame, in: datagram).map { .maximumBitrate($0) } ?? .unknown(.init(frame))
        case (RTCPType.application, _): .application(UnknownRTCP(frame))
        default: .unknown(UnknownRTCP(frame))
        }
    }

    /// The next known block of the extended report being read; nil when this block is not used or malformed.
    private mutating func nextBlock(in datagram: RawSpan) -> RTCPPacket? {
        guard blockEnd - blockPosition >= 4 else {
            blockPosition = blockEnd
            isMalformed = true
            return nil
        }
        let type = datagram.readUInt8(blockPosition)
        let length = 4 * Int(datagram.readUInt16(blockPosition + 2))
        let body = blockPosition + 4
        guard length <= blockEnd - body else {
            blockPosition = blockEnd
            isMalformed = true
            return nil
        }
        blockPosition = body + length
        switch type {
        case 4 where length == 8:
            return .receiverReferenceTime(.init(senderSSRC: blockSSRC, ntpTimestamp: datagram.readUInt64(body)))
        case 5 where length % 12 == 0:
            return .delaySinceLastReceiverReport(.init(senderSSRC: blockSSRC, offset: body, count: length / 12))
        default: return nil
        }
    }
}

/// The common header of one RTCP packet, framed.
///
/// ```text
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |V=2|P| count   |      type     |     length in words - 1       |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
struct RTCPFrame {
    let count: Int
    let type: UInt8
    let body: Int
    /// End of the body without padding.
    let bodyEnd: Int
    let next: Int

    init?(_ datagram: RawSpan, at position: Int, end: Int) {
        guard end - position >= 4 else { return nil }
        let first = datagram.readUInt8(position)
        guard first & 0xc0 == 0x80 else { return nil }
        count = Int(first & 0x1f)
        type = datagram.readUInt8(position + 1)
        body = position + 4
        next = body + 4 * Int(datagram.readUInt16(position + 2))
        guard next <= end else { return nil }
        if first & 0x20 != 0 {
            guard next > body else { return nil }
            // RFC 3550 section 6.4.1 requires a multiple of four; libwebrtc pads its transport-wide feedback by 1 to 3 bytes.
            let padding = Int(datagram.readUInt8(next - 1))
            guard padding > 0, padding <= next - body else { return nil }
            bodyEnd = next - padding
        } else {
            bodyEnd = next
        }
    }

    var bodyLength: Int { bodyEnd - body }
}
