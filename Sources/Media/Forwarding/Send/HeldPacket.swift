import Primitives

/// The last packet of a spatial layer without a marker, held until it is known whether its picture continues.
///
/// When the upper spatial layers of a picture (RFC 9628: all layer frames of one time) do not arrive, the picture has no marker, and libwebrtc's receivers then
/// wait until the next keyframe. So a packet that may be the last of its picture waits for the next one. That delays nothing visible:
/// a picture that continues is shown only when its last layer has arrived.
struct HeldPacket {
    /// Planned, but not sent.
    let packet: SentPacket
    let since: MonotonicTime

    /// Layers of one picture arrive within this time: Chromium's top layer was seen 12 to 30 ms after the one below (it is encoded meanwhile),
    /// and its pacer sends bursts 40 ms apart. A marker too early shows the small layer, then the large one: the video flickers.
    static let patience = TimeSpan.milliseconds(100)

    /// Until when it waits.
    var deadline: MonotonicTime { since + Self.patience }

    func isDue(at now: MonotonicTime) -> Bool { now - since >= Self.patience }
}
