import Primitives

/// The H.264 payload format (RFC 6184): single NAL units, STAP-A and FU-A, which is all of packetization modes 0 and 1.
///
/// ```text
/// +---------------+   single: the NAL unit itself
/// |F|NRI|  Type   |   STAP-A (24): then 16-bit size and NAL unit, repeated
/// +---------------+   FU-A (28): then |S|E|R| Type | and a part of a NAL unit
/// ```
public enum H264 {
    /// A slice of another picture than an IDR picture.
    public static let slice: UInt8 = 1
    /// A slice of an IDR picture.
    public static let instantaneousRefresh: UInt8 = 5
    /// Supplemental enhancement information.
    public static let supplementalInformation: UInt8 = 6
    /// Sequence parameter set.
    public static let sequenceParameterSet: UInt8 = 7
    /// Picture parameter set.
    public static let pictureParameterSet: UInt8 = 8
    /// Access unit delimiter.
    public static let accessUnitDelimiter: UInt8 = 9
    static let aggregation: UInt8 = 24
    static let fragment: UInt8 = 28

    /// A NAL unit, or a part of one, in a payload.
    public struct Unit: Sendable, Hashable {
        /// NAL unit type, 1 to 23.
        public var type: UInt8
        /// nal_ref_idc: 0 when no other picture refers to it.
        public var referenceIDC: UInt8
        /// Where its bytes start: at the NAL unit header or, in a fragment, after the fragment's headers.
        public var offset: Int
        /// Bytes of it in this payload.
        public var length: Int
        /// Whether the first byte of the unit is here.
        public var isStart: Bool
        /// Whether the last byte of the unit is here.
        public var isEnd: Bool
        /// Where the data after the NAL unit header starts.
        var dataOffset: Int
        /// Whether the unit is complete, as a parameter set must be to be cached.
        public var isWhole: Bool { isStart && isEnd }
    }

    /// Walks the NAL units of one payload.
    public struct Units: Sendable {
        private var position: Int
        private let end: Int
        private let kind: Kind

        private enum Kind { case single, aggregation, fragment }

        /// A walk over `payload`; nil when it is empty, of a forbidden type, or cut off anywhere.
        public init?(_ payload: RawSpan) {
            end = payload.byteCount
            guard end > 0 else { return nil }
            switch payload.readUInt8(0) & 0x1f {
            case 1...23:
                kind = .single
                position = 0
            case H264.aggregation:
                kind = .aggregation
                position = 1
                guard Self.isWellFormedAggregation(payload) else { return nil }
            case H264.fragment:
                kind = .fragment
                position = 0
                // Both ends in one fragment are forbidden (section 5.8).
                guard end > 2, payload.readUInt8(1) & 0xc0 != 0xc0, (1...23).contains(payload.readUInt8(1) & 0x1f)
                else { return nil }
            default: return nil
            }
        }

        private static func isWellFormedAggregation(_ payload: RawSpan) -> Bool {
            var position = 1
            guard payload.byteCount > 3 else { return false }
            while position < payload.byteCount {
                guard position + 2 <= payload.byteCount else { return false }
                let length = Int(payload.readUInt16(position))
                guard length > 0, position + 2 + length <= payload.byteCount else { return false }
                guard (1...23).contains(payload.readUInt8(position + 2) & 0x1f) else { return false }
                position += 2 + length
            }
            return true
        }

        /// The next NAL unit; nil at the end.
        public mutating func next(in payload: RawSpan) -> Unit? {
            guard position < end else { return nil }
            switch kind {
            case .single:
                position = end
                return Self.whole(payload, offset: 0, length: end)
            case .aggregation:
                let length = Int(payload.readUInt16(position))
                let offset = position + 2
                position = offset + length
                return Self.whole(payload, offset: offset, length: length)
            case .fragment:
                position = end
                let flags = payload.readUInt8(1)
                return Unit(
                    type: flags & 0x1f, referenceIDC: payload.readUInt8(0) >> 5 & 3, offset: 2, length: end - 2,
                    isStart: flags & 0x80 != 0, isEnd: flags & 0x40 != 0, dataOffset: 2)
            }
        }

        private static func whole(_ payload: RawSpan, offset: Int, length: Int) -> Unit {
            let header = payload.readUInt8(offset)
            return Unit(
                type: header & 0x1f, referenceIDC: header >> 5 & 3, offset: offset, length: length, isStart: true,
                isEnd: true, dataOffset: offset + 1)
        }
    }
}
