public import Primitives

/// The last packet of a spatial layer without a marker, held until it is known whether its picture goes on.
///
/// When an encoder drops the upper spatial layers of a picture, the picture has no marker at all, and libwebrtc's receivers then
/// wait until the next keyframe. So the last packet that may be the last of its picture waits for the next one, or 10 ms.
struct HeldPacket {
    private(set) var packet = SentPacket()
    private(set) var since = MonotonicTime.zero
    private(set) var isHolding = false

    /// Layers of one picture leave the encoder within this time.
    static let patience = TimeInterval.milliseconds(10)

    mutating func hold(_ packet: SentPacket, at now: MonotonicTime) {
        self.packet = packet
        since = now
        isHolding = true
    }

    /// The held packet, which is held no more.
    mutating func take() -> SentPacket {
        isHolding = false
        return packet
    }

    func isDue(at now: MonotonicTime) -> Bool { isHolding && now - since >= Self.patience }
}

extension Subscription {
    /// When `plan` must be called again although nothing came.
    public var heldUntil: MonotonicTime { held.isHolding ? held.since + HeldPacket.patience : .distantFuture }

    /// Lets the held packet go, with the marker where its picture ends with it.
    mutating func releaseHeld(endsPicture: Bool, at now: MonotonicTime, into list: inout WorkList<SentPacket>) {
        var sent = held.take()
        if endsPicture {
            sent.flags.insert(.marker)
            tail.isFrameComplete = true
        }
        append(sent, at: now, into: &list)
    }
}
