import Primitives

/// The last packet of a spatial layer without a marker, held until it is known whether its picture continues.
///
/// When the upper spatial layers of a picture (all frames of one time) do not arrive, the picture has no marker, and libwebrtc's receivers then
/// wait until the next keyframe. So a packet that may be the last of its picture waits for the next one. That delays nothing visible:
/// a picture that continues is shown only when its last layer has arrived.
struct HeldPacket {
    private(set) var packet = SentPacket()
    private(set) var since = MonotonicTime.zero
    private(set) var isHolding = false

    /// Layers of one picture arrive within this time: Chromium's top layer was seen 12 to 30 ms after the one below (it is encoded meanwhile),
    /// and its pacer sends bursts 40 ms apart. A marker too early shows the small picture, then the large one: it flickers.
    static let patience = TimeInterval.milliseconds(100)

    mutating func hold(_ packet: SentPacket, at now: MonotonicTime) {
        self.packet = packet
        since = now
        isHolding = true
    }

    /// Whether this is the number of the held packet, which is planned but not sent.
    func isHolding(_ sequence: UInt32) -> Bool { isHolding && packet.sequence == sequence }

    /// Returns the held packet and no longer holds it.
    mutating func release() -> SentPacket {
        isHolding = false
        return packet
    }

    func isDue(at now: MonotonicTime) -> Bool { isHolding && now - since >= Self.patience }
}
