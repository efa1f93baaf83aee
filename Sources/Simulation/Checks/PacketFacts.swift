import MediaControl
import PayloadFormats
import Primitives
import RTP

/// What the checks want to know of one received packet.
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
    /// Of the server's making: parameter sets ahead of a keyframe, or padding.
    var isOwn = false

    init(_ packet: RawSpan, header: RTPHeader, codec: Codec) {
        sequenceNumber = header.sequenceNumber
        timestamp = header.timestamp
        marker = header.marker
        payloadLength = header.payloadLength
        let payload = packet.extracting(header.payloadOffset..<(header.payloadOffset + header.payloadLength))
        trace = MediaTrace(endOf: payload)
        guard let format = PayloadCodec(codec), let summary = format.summary(of: payload, marker: marker) else {
            return
        }
        startsKeyframe = summary.startsKeyframe
        temporalLayer = summary.temporalLayer
        if summary.pictureIDOffset != 0 { pictureID = summary.pictureID }
        if summary.tl0Offset != 0 { tl0PictureIndex = summary.tl0PictureIndex }
        isOwn = trace == nil && summary.containsParameterSets
    }
}

extension PayloadCodec {
    /// The payload format of a video codec; sound is not looked into.
    init?(_ codec: Codec) {
        switch codec {
        case .vp8: self = .vp8
        case .vp9: self = .vp9
        case .h264: self = .h264
        case .av1, .opus, .red, .otherAudio: return nil
        }
    }
}
