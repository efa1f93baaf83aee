public import Primitives

/// The last bytes of every simulated payload, by which a receiver can see which track it belongs to, how long it took, and
/// whether it is complete.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |          "MT"                 |     index     |     count     |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                     track                             | layer |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                          frame                                |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |              virtual time of sending in nanoseconds           |
/// |                                                               |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
public struct MediaTrace: Sendable, Hashable {
    /// Bytes at the end of a payload.
    public static let length = 20
    private static let magic: UInt16 = 0x4d54

    /// Which packet of its frame, and how many the frame has.
    public var index: UInt8
    public var count: UInt8
    /// Its origin: track and layer.
    public var origin: Origin
    /// Frames of one layer count up by one.
    public var frame: UInt32
    /// When the packet was first sent; a retransmission keeps it.
    public var time: MonotonicTime

    /// Track and simulcast layer in one word.
    public struct Origin: Sendable, Hashable {
        let rawValue: UInt32

        /// Layer `layer` of the track.
        public init(track: UInt64, layer: Int) { rawValue = UInt32(truncatingIfNeeded: track) << 4 | UInt32(layer) }

        init(rawValue: UInt32) { self.rawValue = rawValue }

        /// The track's number.
        public var track: UInt64 { UInt64(rawValue >> 4) }
        /// The layer, in the publisher's order.
        public var layer: Int { Int(rawValue & 15) }
    }

    /// A trace of these parts.
    public init(origin: Origin, frame: UInt32, index: Int, count: Int, time: MonotonicTime) {
        self.index = UInt8(truncatingIfNeeded: index)
        self.count = UInt8(truncatingIfNeeded: count)
        self.origin = origin
        self.frame = frame
        self.time = time
    }

    /// The trace at the end of `payload`; nil for a packet that the server made itself.
    public init?(endOf payload: RawSpan) {
        let start = payload.byteCount - Self.length
        guard start >= 0, payload.readUInt16(start) == Self.magic else { return nil }
        index = payload.readUInt8(start + 2)
        count = payload.readUInt8(start + 3)
        origin = Origin(rawValue: payload.readUInt32(start + 4))
        frame = payload.readUInt32(start + 8)
        time = MonotonicTime(nanoseconds: Int64(bitPattern: payload.readUInt64(start + 12)))
    }

    /// Makes the payload `length` bytes long, or longer if the trace does not fit, with the trace at its end.
    func finish(_ payload: inout [UInt8], length: Int) {
        let start = max(payload.count, length - Self.length)
        payload.append(contentsOf: repeatElement(0x5a, count: start + Self.length - payload.count))
        payload.withUnsafeMutableBytes { bytes in
            bytes.write(Self.magic, at: start)
            bytes.write(index, at: start + 2)
            bytes.write(count, at: start + 3)
            bytes.write(origin.rawValue, at: start + 4)
            bytes.write(frame, at: start + 8)
            bytes.write(UInt64(bitPattern: time.nanoseconds), at: start + 12)
        }
    }
}
