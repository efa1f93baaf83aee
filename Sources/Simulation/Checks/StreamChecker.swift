public import MediaControl
import PayloadFormats
public import Primitives
import RTP

/// Holds one SSRC, as its subscriber receives it, to what must always be true (G1, E4, E7).
///
/// What must be true of two packets is looked at as soon as both are there, in whichever order they came; so it also holds
/// for packets that were repaired.
public struct StreamChecker: Sendable {
    /// Packets seen, repairs included, doubles not.
    public private(set) var packets = 0
    /// Packets seen a second time.
    public private(set) var duplicates = 0
    /// What went wrong; at most a few sentences.
    public private(set) var faults: [String] = []
    /// The track and layer shown, each time they changed.
    public private(set) var origins: [MediaTrace.Origin] = []
    /// The lowest and the highest number seen, extended.
    public private(set) var first: Int64?
    public private(set) var last: Int64?
    /// Numbers between the first and the last that never came.
    public var missing: Int {
        guard let first, let last else { return 0 }
        return Int(last - first) + 1 - packets
    }
    /// Tracks whose packets may come here; anything else is a fault.
    public var allowedTracks: Set<UInt64> = []
    /// Media time may differ from sending time by this much between neighbours; nil: it is not looked at (A5).
    public var paceTolerance: TimeInterval? = .milliseconds(150)

    private static let maximumFaults = 6
    private let kind: MediaKind
    private var unwrapper = SequenceUnwrapper()
    /// The packets that are remembered, a second or two of them: a power of two.
    private var facts: [PacketFacts?]

    /// A stream of this kind that has not begun.
    public init(kind: MediaKind) {
        self.kind = kind
        facts = [PacketFacts?](repeating: nil, count: kind == .video ? 512 : 128)
    }

    /// Takes one clear packet; whether it was new, with its extended number.
    mutating func take(_ packet: PacketFacts) -> (number: Int64, isNew: Bool) {
        let number = unwrapper.unwrap(packet.sequenceNumber)
        let slot = Int(number) & (facts.count - 1)
        if let seen = facts[slot], seen.number == number {
            duplicates += 1
            return (number, false)
        }
        if let last, number + Int64(facts.count) <= last { return (number, false) }
        packets += 1
        if first == nil { checkStart(packet) }
        var new = packet
        new.number = number
        facts[slot] = new
        first = min(first ?? number, number)
        last = max(last ?? number, number)
        checkOrigin(packet)
        if let before = fact(number - 1) { check(before, new) }
        if let after = fact(number + 1) { check(new, after) }
        return (number, true)
    }

    private func fact(_ number: Int64) -> PacketFacts? {
        guard let fact = facts[Int(number) & (facts.count - 1)], fact.number == number else { return nil }
        return fact
    }

    private mutating func checkStart(_ packet: PacketFacts) {
        guard kind == .video, !packet.startsKeyframe else { return }
        fault("the stream does not start with a keyframe (E4)")
    }

    private mutating func checkOrigin(_ packet: PacketFacts) {
        guard let origin = packet.trace?.origin else {
            // Only parameter sets are of the server's own making (E5).
            if !packet.isOwn { fault("packet \(packet.sequenceNumber) is nobody's") }
            return
        }
        if !allowedTracks.contains(origin.track) { fault("packet of track \(origin.track), which is not shown here") }
        if origins.last != origin { origins.append(origin) }
    }

    /// `b` follows `a` on the wire.
    private mutating func check(_ a: PacketFacts, _ b: PacketFacts) {
        let step = Int32(bitPattern: b.timestamp &- a.timestamp)
        if step < 0 { fault("timestamp goes back by \(-step) at \(b.number)") }
        checkPace(a, b, step)
        guard kind == .video else { return checkSoundOrder(a, b) }
        if (step != 0) != a.marker { fault("timestamp and marker disagree at \(b.number)") }
        checkPictureNumbers(a, b)
        checkFrames(a, b)
    }

    private mutating func checkPace(_ a: PacketFacts, _ b: PacketFacts, _ step: Int32) {
        guard let paceTolerance, let x = a.trace, let y = b.trace else { return }
        let media = Int64(step) * 1_000_000 / (kind == .video ? 90 : 48)
        let error = media - (y.time - x.time).nanoseconds
        if abs(error) > paceTolerance.nanoseconds {
            fault("media time is off by \(error / 1_000_000) ms at \(b.number)")
        }
    }

    private mutating func checkSoundOrder(_ a: PacketFacts, _ b: PacketFacts) {
        guard let x = a.trace, let y = b.trace, x.origin == y.origin, y.frame <= x.frame else { return }
        fault("sound \(y.frame) follows \(x.frame)")
    }

    private mutating func checkPictureNumbers(_ a: PacketFacts, _ b: PacketFacts) {
        guard let x = a.pictureID, let y = b.pictureID else { return }
        let jump = (y &- x) & 0x7fff
        if jump != (a.marker ? 1 : 0) { fault("picture id goes from \(x) to \(y) at \(b.number)") }
        guard let v = a.tl0PictureIndex, let w = b.tl0PictureIndex else { return }
        let expected: UInt8 = a.marker && b.temporalLayer == 0 ? 1 : 0
        if w &- v != expected { fault("TL0PICIDX goes from \(v) to \(w) at \(b.number)") }
    }

    /// A frame is never cut (E7), and pictures of one layer follow each other without a gap; anything else starts with a keyframe.
    private mutating func checkFrames(_ a: PacketFacts, _ b: PacketFacts) {
        guard let x = a.trace, let y = b.trace else { return }
        if x.origin == y.origin, x.frame == y.frame {
            if y.index != x.index &+ 1 { fault("part \(y.index) follows part \(x.index) of frame \(x.frame)") }
            return
        }
        if x.index != x.count &- 1 { fault("frame \(x.frame) of layer \(x.origin.layer) is cut at \(b.number)") }
        if y.index != 0 { fault("frame \(y.frame) of layer \(y.origin.layer) begins in the middle at \(b.number)") }
        if x.origin == y.origin, y.frame == x.frame &+ 1 { return }
        if !b.startsKeyframe { fault("frame \(y.frame) follows frame \(x.frame) without a keyframe at \(b.number)") }
    }

    private mutating func fault(_ sentence: String) {
        if faults.count < Self.maximumFaults { faults.append(sentence) }
    }
}
