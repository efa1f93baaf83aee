public import MediaControl
public import PayloadFormats
public import Primitives

/// Location of one forwardable header extension in a stored packet.
public struct ExtensionLocation: Sendable, Hashable {
    /// Its meaning on the publisher's m-section.
    public var meaning: HeaderExtension
    /// Length of its value in bytes.
    public var length: UInt8
    /// Offset of its value from the start of the packet.
    public var offset: UInt16

    public init(meaning: HeaderExtension, length: UInt8, offset: UInt16) {
        self.meaning = meaning
        self.length = length
        self.offset = offset
    }
}

/// The header extensions of one packet that are forwarded, in packet order.
///
/// mid, rid, repaired-rid, transport-wide sequence and abs-send-time are not among them: they belong to one hop, and the
/// sending side writes its own.
public struct ExtensionLocations: Sendable {
    /// A packet with more keeps the first 8: eleven extensions can be forwarded at all, and no client was seen with more
    /// than six on one packet.
    public static let capacity = 8

    private var locations = InlineArray<8, ExtensionLocation>(
        repeating: ExtensionLocation(meaning: .mid, length: 0, offset: 0))
    /// Number of locations.
    public private(set) var count = 0

    public init() {}

    /// The location at `index` < `count`.
    @inline(__always) public subscript(index: Int) -> ExtensionLocation { locations[index] }

    /// The location of `meaning`, if the packet has it.
    @inline(__always) public subscript(meaning: HeaderExtension) -> ExtensionLocation? {
        for index in 0..<count where locations[index].meaning == meaning { return locations[index] }
        return nil
    }

    @inline(__always) mutating func append(_ location: ExtensionLocation) {
        guard count < Self.capacity else { return }
        locations[count] = location
        count &+= 1
    }

    /// Moves every location by `delta` bytes, as when a packet's header moves.
    @inline(__always) mutating func shift(by delta: Int) {
        for index in 0..<count {
            locations[index].offset = UInt16(truncatingIfNeeded: Int(locations[index].offset) &+ delta)
        }
    }
}

/// What the router remembers of one received packet: plain data, parsed once, read by every subscriber.
public struct PacketRecord: Sendable {
    /// Boolean properties.
    public struct Flags: OptionSet, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }
        /// The marker bit.
        public static let marker = Self(rawValue: 1)
        /// Arrived as a retransmission.
        public static let repaired = Self(rawValue: 2)
        /// Sequence numbers between the stream's last packet and this one were never used: leave no gap in the output.
        public static let discontinuity = Self(rawValue: 4)
        /// The timestamp is unrelated to earlier ones (another source under the same layer): continue by arrival time.
        public static let newTimeline = Self(rawValue: 8)
        /// RFC 6464 voice activity bit.
        public static let voiceActivity = Self(rawValue: 16)
        /// The payload does not match its format, so it is encrypted end to end: forward it whole or not at all.
        public static let opaque = Self(rawValue: 32)
    }

    /// Extended sequence number; its low 16 bits are those on the wire.
    public var sequence: Int64
    /// Extended RTP timestamp; its low 32 bits are those on the wire.
    public var timestamp: Int64
    /// Time of arrival.
    public var arrival: MonotonicTime
    /// Its position in the history's stream of bytes; see `PacketHistory`.
    var position: Int64
    /// Bytes stored: header and payload, without padding.
    public var length: UInt16
    /// Offset of the payload.
    public var payloadOffset: UInt16
    /// The publisher's payload type (the original one for a retransmission).
    public var payloadType: UInt8
    public var flags: Flags
    /// RFC 6464 level in -dBov, 0 (loud) to 127 (silent); 255 where the packet has none.
    public var audioLevel: UInt8
    /// Index into the track description's `formats`.
    public var format: UInt8
    /// Header extensions to forward.
    public var extensions: ExtensionLocations
    /// What the payload reveals about its frame.
    public var summary: PayloadSummary

    /// Length of the payload in bytes.
    @inline(__always) public var payloadLength: Int { Int(length) &- Int(payloadOffset) }
    @inline(__always) public var hasMarker: Bool { flags.contains(.marker) }
}
