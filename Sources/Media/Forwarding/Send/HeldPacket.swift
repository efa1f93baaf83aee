import PayloadFormats
public import Primitives

/// The last packet of a spatial layer without a marker, held until it is known whether its picture goes on.
///
/// When the upper spatial layers of a picture do not come, the picture has no marker at all, and libwebrtc's receivers then
/// wait until the next keyframe. So the last packet that may be the last of its picture waits for the next one. Nothing is shown later
/// for it: a picture that goes on is shown when its last layer is there.
struct HeldPacket {
    private(set) var packet = SentPacket()
    private(set) var since = MonotonicTime.zero
    private(set) var isHolding = false

    /// Layers of one picture come within this time: Chromium's top layer was seen 12 to 30 ms behind the one below (it is encoded meanwhile),
    /// and its pacer lets bursts go 40 ms apart. A marker too early shows the small picture, then the large one: it flickers.
    static let patience = TimeInterval.milliseconds(100)

    mutating func hold(_ packet: SentPacket, at now: MonotonicTime) {
        self.packet = packet
        since = now
        isHolding = true
    }

    /// Whether this is the number of the held packet, which is planned and not sent.
    func isHolding(_ sequence: UInt32) -> Bool { isHolding && packet.sequence == sequence }

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

    /// Whether the picture of the held packet ends with it, by what came behind it: nothing, or another picture. Where the next packet is missing
    /// nobody can tell, and it may be repaired.
    func heldEndsPicture(in layer: UnsafeMutablePointer<ReceiveLayer>) -> Bool {
        endsPicture(numbering.tail.sourceSequence, numbering.tail.sourceTimestamp, in: layer)
    }

    /// The same of any packet.
    func endsPicture(_ sequence: Int64, _ timestamp: Int64, in layer: UnsafeMutablePointer<ReceiveLayer>) -> Bool {
        var next = sequence + 1
        while next <= layer.pointee.sequences.highest, layer.pointee.sequences.contains(next) {
            if let record = layer.pointee.history.record(next) { return record.pointee.timestamp != timestamp }
            next += 1
        }
        return next > layer.pointee.sequences.highest
    }

    /// Takes the number of the held packet back: it is not sent, and the stream goes on without a hole.
    mutating func abandonHeld() {
        guard held.isHolding else { return }
        numbering.takeBack(held.take().sequence)
    }

    /// Lets the held packet go, with the marker where its picture ends with it.
    mutating func releaseHeld(endsPicture: Bool, at now: MonotonicTime, into list: inout WorkList<SentPacket>) {
        var sent = held.take()
        if endsPicture {
            sent.flags.insert(.marker)
            numbering.completeFrame()
        } else if joinsLayers {
            sent.mark.join(.next)
        }
        append(sent, at: now, into: &list)
    }
}
