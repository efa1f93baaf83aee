import PayloadFormats
public import Primitives

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

extension Subscription {
    /// When `plan` must be called again even without new packets.
    public var heldUntil: MonotonicTime { held.isHolding ? held.since + HeldPacket.patience : .distantFuture }

    /// Whether the held packet ends its picture, judged by what follows: nothing, or another picture. A missing next packet leaves it
    /// open, because it may be repaired.
    func heldEndsPicture(in layer: UnsafeMutablePointer<ReceiveLayer>) -> Bool {
        endsPicture(numbering.tail.sourceSequence, numbering.tail.sourceTimestamp, in: layer)
    }

    /// The same for any packet.
    func endsPicture(_ sequence: Int64, _ timestamp: Int64, in layer: UnsafeMutablePointer<ReceiveLayer>) -> Bool {
        var next = sequence + 1
        while next <= layer.pointee.sequences.highest, layer.pointee.sequences.contains(next) {
            if let record = layer.pointee.history.record(next) { return record.pointee.timestamp != timestamp }
            next += 1
        }
        return next > layer.pointee.sequences.highest
    }

    /// Withdraws the number of the held packet: it is not sent, and the stream continues without a gap.
    mutating func abandonHeld() {
        guard held.isHolding else { return }
        numbering.returnNumber(held.release().sequence)
    }

    /// Releases the held packet, with the marker if it ends its picture.
    mutating func releaseHeld(endsPicture: Bool, at now: MonotonicTime, into list: inout WorkList<SentPacket>) {
        var sent = held.release()
        if endsPicture {
            sent.flags.insert(.marker)
            numbering.completeFrame()
        } else if joinsLayers {
            sent.mark.join(.next)
        }
        append(sent, at: now, into: &list)
    }
}
