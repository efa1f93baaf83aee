import Primitives

/// The AV1 payload format (RTP Payload Format For AV1 1.0 section 4): an aggregation header, then OBU elements.
///
/// ```text
///  0 1 2 3 4 5 6 7
/// +-+-+-+-+-+-+-+-+
/// |Z|Y| W |N|-|-|-|  Z: continues an OBU; Y: continues in the next packet; N: starts a coded video sequence
/// +-+-+-+-+-+-+-+-+
/// ```
public enum AV1 {
    /// Sequence header OBU.
    public static let sequenceHeader: UInt8 = 1
    /// Frame OBU.
    public static let frame: UInt8 = 6
    /// Frame header OBU.
    public static let frameHeader: UInt8 = 3

    /// One OBU element, whole or in part.
    public struct Element: Sendable, Hashable {
        /// The OBU type; nil when the element continues an OBU whose header came before.
        public var type: UInt8?
        /// Temporal id of the OBU's extension, 0 without.
        public var temporalID: Int
        /// Spatial id of the OBU's extension, 0 without.
        public var spatialID: Int
        /// Where the OBU's bytes start, its header included.
        public var start: Int
        /// Where the OBU's payload starts, after its header (or where the continued part starts).
        public var offset: Int
        /// Bytes of it here.
        public var length: Int
        /// Whether the OBU continues in the next packet.
        public var continues: Bool
    }

    /// Walks the OBU elements of one payload.
    public struct Elements: Sendable {
        private var position = 1
        private let end: Int
        private let elementCount: Int
        private var index = 0
        private let startsWithContinuation: Bool
        private let endsWithContinuation: Bool
        /// Whether the packet is the first of a coded video sequence: a keyframe starts.
        public let startsSequence: Bool
        /// Whether the walk ended at a broken element.
        public private(set) var isMalformed = false

        /// A walk over `payload`; nil when it is empty or its first byte contradicts itself.
        public init?(_ payload: RawSpan) {
            end = payload.byteCount
            guard end > 1 else { return nil }
            let header = payload.readUInt8(0)
            startsWithContinuation = header & 0x80 != 0
            endsWithContinuation = header & 0x40 != 0
            elementCount = Int(header >> 4 & 3)
            startsSequence = header & 0x08 != 0
            // A new sequence cannot begin inside of an OBU.
            guard !(startsWithContinuation && startsSequence) else { return nil }
        }

        /// The next element; nil at the end or at a broken one.
        public mutating func next(in payload: RawSpan) -> Element? {
            guard position < end, !isMalformed, elementCount == 0 || index < elementCount else { return nil }
            var length = end - position
            if elementCount == 0 || index < elementCount - 1 {
                guard let size = LEB128.read(payload, &position, end: end), Int(size) <= end - position else {
                    isMalformed = true
                    return nil
                }
                length = Int(size)
            }
            let start = position
            position += length
            let isFirst = index == 0
            index += 1
            let continues = endsWithContinuation && position == end
            if isFirst, startsWithContinuation {
                return Element(
                    type: nil, temporalID: 0, spatialID: 0, start: start, offset: start, length: length,
                    continues: continues)
            }
            guard let element = Self.readHeader(payload, start, length, continues) else {
                isMalformed = true
                return nil
            }
            return element
        }

        private static func readHeader(
            _ payload: RawSpan, _ start: Int, _ length: Int, _ continues: Bool
        ) -> Element? {
            guard length > 0 else { return nil }
            let header = payload.readUInt8(start)
            guard header & 0x80 == 0 else { return nil }
            var offset = start + 1
            var layers: UInt8 = 0
            if header & 4 != 0 {
                guard length > 1 else { return nil }
                layers = payload.readUInt8(offset)
                offset += 1
            }
            if header & 2 != 0, LEB128.read(payload, &offset, end: start + length) == nil { return nil }
            return Element(
                type: header >> 3 & 0x0f, temporalID: Int(layers >> 5), spatialID: Int(layers >> 3 & 3),
                start: start, offset: offset, length: start + length - offset, continues: continues)
        }
    }

    /// Summarises a payload; nil when it is malformed. If there is a descriptor, the payload is not examined, because it may be encrypted end to end. Without
    /// one, only layers in OBU extensions are known, and the start of a frame is a guess.
    public static func summary(
        of payload: RawSpan, marker: Bool, descriptor: DependencyDescriptor?
    ) -> PayloadSummary? {
        if let descriptor { return payload.byteCount > 0 ? PayloadSummary(descriptor, marker: marker) : nil }
        guard var elements = Elements(payload) else { return nil }
        var summary = PayloadSummary()
        summary.endsFrame = marker
        summary.isSwitchingPoint = true
        summary.startsKeyframe = elements.startsSequence
        while let element = elements.next(in: payload) {
            switch element.type {
            case sequenceHeader:
                summary.containsParameterSets = true
                if summary.dimensions == nil {
                    summary.dimensions = SequenceParameters(payload, element.offset, element.length)?.dimensions
                }
            case frame, frameHeader:
                summary.startsFrame = true
                summary.temporalLayer = element.temporalID
                summary.spatialLayer = element.spatialID
            default: break
            }
        }
        guard !elements.isMalformed else { return nil }
        summary.isKeyframe = summary.startsKeyframe
        summary.startsFrame = summary.startsFrame || summary.startsKeyframe
        summary.startsSpatialLayer = summary.startsKeyframe
        summary.endsPicture = marker
        return summary
    }
}
