/// A payload format that both sides understand.
public struct NegotiatedFormat: Sendable, Hashable {
    public var codec: CodecName
    /// 0 to 127, without 64 to 95, which would read as RTCP (RFC 5761).
    public var payloadType: UInt8
    /// The payload type of its retransmissions (RFC 4588), where negotiated.
    public var rtxPayloadType: UInt8?
    public var clockRateHz: UInt32
    /// Channels of the rtpmap; 1 if it names none.
    public var channels: Int
    /// The format parameters as the remote side gave them, complete.
    public var parameters: FormatParameters
    /// Distinguishes formats of one codec that must not be mixed: H.264 profile and packetization mode (`cb/1`), VP9 and
    /// AV1 profile (`0`). Equal strings are interchangeable; empty where a codec has one format only.
    public var variant: String
    /// Feedback negotiated for this format.
    public var feedback: FeedbackSet

    /// A format; used as it is in `LocalSending.formats`, where payload types do not matter.
    public init(
        codec: CodecName, payloadType: UInt8 = 0, rtxPayloadType: UInt8? = nil, clockRateHz: UInt32, channels: Int = 1,
        parameters: FormatParameters = FormatParameters(), variant: String = "", feedback: FeedbackSet = []
    ) {
        self.codec = codec
        self.payloadType = payloadType
        self.rtxPayloadType = rtxPayloadType
        self.clockRateHz = clockRateHz
        self.channels = channels
        self.parameters = parameters
        self.variant = variant
        self.feedback = feedback
    }

    /// H.264 in packetization mode 1 that was not negotiated, such as a file's. `profileLevelID` is a text that `H264Profile` reads.
    public static func h264(payloadType: UInt8, profileLevelID: String) -> NegotiatedFormat {
        let parameters = FormatParameters([
            .init("packetization-mode", "1"), .init("profile-level-id", profileLevelID),
        ])
        return NegotiatedFormat(
            codec: .h264, payloadType: payloadType, clockRateHz: 90_000, parameters: parameters,
            variant: H264Format(parameters)?.variant ?? "")
    }
}
