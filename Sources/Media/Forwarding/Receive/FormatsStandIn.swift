internal import Primitives

public struct PayloadSummary: Sendable {
    public var startsFrame = false
    public var endsFrame = false
    public var isKeyframe = false
    public var width: Int?
    public var height: Int?
    public init() {}
}
struct RTPHeader {
    var marker = false
    var payloadType: UInt8 = 0
    var sequenceNumber: UInt16 = 0
    var timestamp: UInt32 = 0
    var ssrc: UInt32 = 0
    var payloadOffset = 12
    var payloadLength = 0
    var paddingLength = 0
    var extensionOffset = 0
    var extensionLength = 0
    var isTwoByteExtension = false
    init?(_ packet: RawSpan) { return nil }
}
