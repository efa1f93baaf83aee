public import Primitives

// Values of the fixed-size extensions. Each reads from an element of a packet and writes to a slot, at the offset of an element
// whose header is written. A value of another length is ignored.

/// Loudness of the packet's audio (RFC 6464).
public struct AudioLevel: Sendable, Hashable {
    /// Bytes of the value.
    public static let length = 1
    /// Level in -dBov: 0 is the loudest, 127 silence.
    public var level: UInt8
    /// Whether the sender heard voice.
    public var isVoice: Bool

    /// A value of these parts.
    public init(level: UInt8, isVoice: Bool) {
        self.level = level
        self.isVoice = isVoice
    }

    /// Reads the value; the two-byte form may carry a padding byte (RFC 6464 section 3).
    @inlinable public init?(_ element: RTPHeaderExtensions.Element, in packet: RawSpan) {
        guard element.length == 1 || element.length == 2 else { return nil }
        let byte = packet.readUInt8(element.offset)
        self.init(level: byte & 0x7f, isVoice: byte & 0x80 != 0)
    }

    /// Writes the value.
    @inlinable public func write(to packet: UnsafeMutableRawBufferPointer, at offset: Int) {
        packet[offset] = (isVoice ? 0x80 : 0) | (level & 0x7f)
    }
}

/// Coordination of video orientation (3GPP TS 26.114 section 7.4.5): how the receiver turns the frame.
public struct VideoOrientation: Sendable, Hashable {
    /// Bytes of the value.
    public static let length = 1
    /// Clockwise turn that the receiver applies: 0, 90, 180 or 270 degrees.
    public var rotation: Int
    /// Whether the frame is mirrored horizontally.
    public var isFlipped: Bool
    /// Whether it comes from the back camera.
    public var isBackCamera: Bool

    /// A value of these parts.
    public init(rotation: Int, isFlipped: Bool = false, isBackCamera: Bool = false) {
        self.rotation = rotation
        self.isFlipped = isFlipped
        self.isBackCamera = isBackCamera
    }

    /// Reads the value.
    @inlinable public init?(_ element: RTPHeaderExtensions.Element, in packet: RawSpan) {
        guard element.length == 1 else { return nil }
        let byte = packet.readUInt8(element.offset)
        self.init(rotation: Int(byte & 3) * 90, isFlipped: byte & 4 != 0, isBackCamera: byte & 8 != 0)
    }

    /// Writes the value.
    @inlinable public func write(to packet: UnsafeMutableRawBufferPointer, at offset: Int) {
        let turns = UInt8(truncatingIfNeeded: rotation / 90) & 3
        packet[offset] = turns | (isFlipped ? 4 : 0) | (isBackCamera ? 8 : 0)
    }
}

/// When the packet left its sender (abs-send-time): 24 bits of seconds in 6.18 fixed point, wrapping each 64 s.
public struct AbsoluteSendTime: Sendable, Hashable {
    /// Bytes of the value.
    public static let length = 3
    /// The 24 bits.
    public var value: UInt32

    /// A value of these parts.
    public init(value: UInt32) { self.value = value & 0xff_ffff }

    /// The value for a moment on any clock.
    @inlinable public init(_ time: MonotonicTime) {
        let nanoseconds = UInt64(bitPattern: time.nanoseconds) % 64_000_000_000
        value = UInt32(truncatingIfNeeded: (nanoseconds << 18) / 1_000_000_000) & 0xff_ffff
    }

    /// Reads the value.
    @inlinable public init?(_ element: RTPHeaderExtensions.Element, in packet: RawSpan) {
        guard element.length == 3 else { return nil }
        value = packet.readUInt24(element.offset)
    }

    /// Writes the value.
    @inlinable public func write(to packet: UnsafeMutableRawBufferPointer, at offset: Int) {
        packet[offset] = UInt8(truncatingIfNeeded: value >> 16)
        packet.write(UInt16(truncatingIfNeeded: value), at: offset + 1)
    }

    /// How much later this was sent than `earlier`, taking the shorter way round the wrap.
    public func interval(since earlier: AbsoluteSendTime) -> TimeSpan {
        let ticks = Int64(Int32(bitPattern: (value &- earlier.value) << 8) >> 8)
        return TimeSpan(nanoseconds: (ticks * 1_000_000_000) >> 18)
    }
}

/// Transport-wide sequence number (draft-holmer-rmcat-transport-wide-cc-extensions-01; version 2 has a request word).
public struct TransportSequenceNumber: Sendable, Hashable {
    /// Bytes of the value in version 1.
    public static let length = 2
    /// The number; counts all packets of a transport.
    public var value: UInt16

    /// A value of these parts.
    public init(_ value: UInt16) { self.value = value }

    /// Reads the value; version 2's feedback request is ignored.
    @inlinable public init?(_ element: RTPHeaderExtensions.Element, in packet: RawSpan) {
        guard element.length == 2 || element.length == 4 else { return nil }
        value = packet.readUInt16(element.offset)
    }

    /// Writes the value.
    @inlinable public func write(to packet: UnsafeMutableRawBufferPointer, at offset: Int) {
        packet.write(value, at: offset)
    }
}
