import MediaControl
import PayloadFormats
import Primitives
import RTP

/// What the checks need to know about one received packet.
struct PacketFacts: Sendable {
    var number: Int64 = 0
    var sequenceNumber: UInt16
    var timestamp: UInt32
    var marker: Bool
    var payloadLength: Int
    var trace: MediaTrace?
    var startsKeyframe = false
    var pictureID: UInt16?
    var tl0PictureIndex: UInt8?
    var temporalLayer = 0
    var spatialLayer = 0
    /// What its frame refers to, if the packet says so.
    var references: FrameReferences?
    /// Made by the server: parameter sets before a keyframe, or padding.
    var isOwn = false
    /// Padding in place of a packet that is not forwarded.
    var isFiller: Bool { payloadLength == 0 }

    /// `repairs`: the packet is a retransmission, whose payload begins with the number that it repairs (RFC 4588).
    init?(
        _ packet: RawSpan, header: RTPHeader, codec: Codec, descriptor: DependencyDescriptor? = nil, repairs: Bool
    ) {
        sequenceNumber = header.sequenceNumber
        timestamp = header.timestamp
        marker = header.marker
        var start = header.payloadOffset
        if repairs {
            guard let original = RTX.originalSequenceNumber(header, in: packet) else { return nil }
            sequenceNumber = original
            start += RTX.overhead
        }
        payloadLength = header.payloadOffset + header.payloadLength - start
        let payload = packet.extracting(start..<(start + payloadLength))
        isOwn = payloadLength == 0
        trace = MediaTrace(endOf: payload)
        guard let format = PayloadCodec(codec),
            let summary = format.summary(of: payload, marker: marker, descriptor: descriptor)
        else { return }
        startsKeyframe = summary.startsKeyframe
        temporalLayer = summary.temporalLayer
        spatialLayer = summary.spatialLayer
        references = FrameReferences(summary, codec: format, payload: payload, descriptor: descriptor)
        if summary.pictureIDOffset != 0 { pictureID = summary.pictureID }
        if summary.tl0Offset != 0 { tl0PictureIndex = summary.tl0PictureIndex }
        isOwn = trace == nil && summary.containsParameterSets
    }
}

extension PayloadCodec {
    /// The payload format of a video codec; audio is not examined.
    init?(_ codec: Codec) {
        switch codec {
        case .vp8: self = .vp8
        case .vp9: self = .vp9
        case .h264: self = .h264
        case .av1: self = .av1
        case .opus, .red, .otherAudio: return nil
        }
    }
}

extension PacketFacts: CustomStringConvertible {
    var description: String {
        let part =
            trace.map { "frame \($0.frame) of layer \($0.origin.layer), part \($0.index) of \($0.count)" } ?? "own"
        return "\(part)\(startsKeyframe ? ", key" : "")\(marker ? ", end" : "")"
    }
}
