public import Primitives

// Values of the fixed-size extensions. Each reads from an element of a packet and writes to a slot, at the offset of an element
// whose header is written. A value of another length is no value.

/// Loudness of the packet's sound (RFC 6464).
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
    public func interval(since earlier: AbsoluteSendTime) -> TimeInterval {
        let ticks = Int64(Int32(bitPattern: (value &- earlier.value) << 8) >> 8)
        return TimeInterval(nanoseconds: (ticks * 1_000_000_000) >> 18)
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

    /// Reads the value; version 2's feedback request is left alone.
    @inlinable public init?(_ element: RTPHeaderExtensions.Element, in packet: RawSpan) {
        guard element.length == 2 || element.length == 4 else { return nil }
        value = packet.readUInt16(element.offset)
    }

    /// Writes the value.
    @inlinable public func write(to packet: UnsafeMutableRawBufferPointer, at offset: Int) {
        packet.write(value, at: offset)
    }
}

/// Bounds that the sender sets on the receiver's playout delay, in steps of 10 ms.
public struct PlayoutDelay: Sendable, Hashable {
    /// Bytes of the value.
    public static let length = 3
    /// Shortest delay in 10 ms, 0 to 4095.
    public var minimum: UInt16
    /// Longest delay in 10 ms, 0 to 4095.
    public var maximum: UInt16

    /// A value of these parts.
    public init(minimum: UInt16, maximum: UInt16) {
        self.minimum = minimum & 0xfff
        self.maximum = maximum & 0xfff
    }

    /// Reads the value.
    @inlinable public init?(_ element: RTPHeaderExtensions.Element, in packet: RawSpan) {
        guard element.length == 3 else { return nil }
        let bits = packet.readUInt24(element.offset)
        self.init(minimum: UInt16(truncatingIfNeeded: bits >> 12), maximum: UInt16(truncatingIfNeeded: bits))
    }

    /// Writes the value.
    @inlinable public func write(to packet: UnsafeMutableRawBufferPointer, at offset: Int) {
        packet[offset] = UInt8(truncatingIfNeeded: minimum >> 4)
        packet[offset + 1] = UInt8(truncatingIfNeeded: minimum << 4 | maximum >> 8)
        packet[offset + 2] = UInt8(truncatingIfNeeded: maximum)
    }
}

/// When the video frame or the audio was captured (abs-capture-time), on the clock of the first sender.
public struct AbsoluteCaptureTime: Sendable, Hashable {
    /// Capture time as a 64-bit NTP timestamp (32.32 fixed point).
    public var timestamp: UInt64
    /// Offset from the capturer's clock to the sender's, 32.32 fixed point; nil when not told.
    public var clockOffset: Int64?

    /// A value of these parts.
    public init(timestamp: UInt64, clockOffset: Int64? = nil) {
        self.timestamp = timestamp
        self.clockOffset = clockOffset
    }

    /// Bytes of the value.
    public var length: Int { clockOffset == nil ? 8 : 16 }

    /// Reads the value.
    public init?(_ element: RTPHeaderExtensions.Element, in packet: RawSpan) {
        guard element.length == 8 || element.length == 16 else { return nil }
        timestamp = packet.readUInt64(element.offset)
        clockOffset = element.length == 16 ? Int64(bitPattern: packet.readUInt64(element.offset + 8)) : nil
    }

    /// Writes the value.
    public func write(to packet: UnsafeMutableRawBufferPointer, at offset: Int) {
        packet.write(timestamp, at: offset)
        if let clockOffset { packet.write(UInt64(bitPattern: clockOffset), at: offset + 8) }
    }
}

/// What the video shows (video-content-type): screens are treated for clarity.
public struct VideoContentType: Sendable, Hashable {
    /// Bytes of the value.
    public static let length = 1
    /// The byte as sent; bit 0 says screen.
    public var value: UInt8

    /// A value of these parts.
    public init(value: UInt8) { self.value = value }

    /// Whether it is a screen.
    @inlinable public var isScreen: Bool { value & 1 != 0 }

    /// Reads the value.
    @inlinable public init?(_ element: RTPHeaderExtensions.Element, in packet: RawSpan) {
        guard element.length == 1 else { return nil }
        value = packet.readUInt8(element.offset)
    }

    /// Writes the value.
    @inlinable public func write(to packet: UnsafeMutableRawBufferPointer, at offset: Int) { packet[offset] = value }
}
