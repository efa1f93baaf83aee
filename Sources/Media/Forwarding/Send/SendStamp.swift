public import Primitives
import RTP

/// The fields of a packet that depend on the time and the transport of its sending.
public struct SendStamp: Sendable {
    /// abs-send-time: 6.18 fixed point seconds, 24 bits.
    public var sendTime: UInt32
    public var transportSequence: UInt16

    public init(at now: MonotonicTime, transportSequence: UInt16) {
        self.init(sendTime: Self.sendTime(at: now), transportSequence: transportSequence)
    }

    /// `sendTime` as computed once per turn.
    @inlinable public init(sendTime: UInt32, transportSequence: UInt16) {
        self.sendTime = sendTime
        self.transportSequence = transportSequence
    }

    /// The value of abs-send-time at `now`.
    public static func sendTime(at now: MonotonicTime) -> UInt32 {
        UInt32(truncatingIfNeeded: NTPTime.fixedPoint(.nanoseconds(now.nanoseconds)) >> 14) & 0xff_ffff
    }
}
