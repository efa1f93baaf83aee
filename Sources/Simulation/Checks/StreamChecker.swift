public import MediaControl
import PayloadFormats
public import Primitives
import RTP

/// Checks that what must always be true holds for one SSRC, as its subscriber receives it.
///
/// It sees every packet as the server sends it, before the link does anything to it. What must be true of two packets is checked
/// as soon as both have been sent, in whichever order; so the checks include packets that were repaired.
public struct StreamChecker: Sendable {
    /// Numbers sent, whether at once or as a repair.
    public private(set) var packets = 0
    /// Packets sent once more.
    public private(set) var repeats = 0
    /// Frames that end in the middle, before a keyframe: the rest was lost on the way from the publisher when the layer was left,
    /// or the view was paused within them. Without loss or pause there must be none.
    public private(set) var framesCut = 0
    /// Violations; at most a few sentences.
    public private(set) var faults: [String] = []
    /// The track and layer shown, each time they changed.
    public private(set) var origins: [MediaTrace.Origin] = []
    /// The lowest and the highest number seen, extended.
    public private(set) var first: Int64?
    public private(set) var last: Int64?
    /// Numbers between the first and the last that were never sent: finally lost on the way from the publisher.
    public var missing: Int {
        guard let first, let last else { return 0 }
        return Int(last - first) + 1 - packets
    }
    /// Tracks whose packets may be sent here; anything else is a fault.
    public var allowedTracks: Set<UInt64> = []
    /// Frames of higher temporal layers may be omitted.
    public var allowsThinning = false
    /// Media time may differ from sending time by this much between neighbours; nil: timestamps may
    /// jump.
    public var paceTolerance: TimeSpan? = .milliseconds(150)

    private static let maximumFaults = 6
    private let kind: MediaKind
    private var unwrapper = SequenceUnwrapper()
    private var mayStartAnywhere = false
    /// Something other than padding was sent.
    private var hasBegun = false
    /// The remembered packets, a second or two of them: a power of two.
    private var facts: [PacketFacts?]

    /// A stream of this kind that has not begun.
    public init(kind: MediaKind) {
        self.kind = kind
        facts = [PacketFacts?](repeating: nil, count: kind == .video ? 512 : 128)
    }

    /// A packet could not be read, because the client has no keys yet: what follows may begin anywhere.
    mutating func missed() { mayStartAnywhere = true }

    /// Takes one clear packet.
    mutating func check(_ packet: PacketFacts) {
        let number = unwrapper.unwrap(packet.sequenceNumber)
        let slot = Int(number) & (facts.count - 1)
        if let seen = facts[slot], seen.number == number {
            repeats += 1
            return
        }
        if let last, number + Int64(facts.count) <= last { return }
        packets += 1
        if !hasBegun, !packet.isFiller {
            checkStart(packet)
            hasBegun = true
        }
        var new = packet
        new.number = number
        facts[slot] = new
        first = min(first ?? number, number)
        last = max(last ?? number, number)
        checkOrigin(packet)
        if let before = fact(number - 1) { check(before, new) }
        if let after = fact(number + 1) { check(new, after) }
    }

    private func fact(_ number: Int64) -> PacketFacts? {
        guard let fact = facts[Int(number) & (facts.count - 1)], fact.number == number else { return nil }
        return fact
    }

    private mutating func checkStart(_ packet: PacketFacts) {
        guard kind == .video, !packet.startsKeyframe, !mayStartAnywhere else { return }
        fault("the stream does not start with a keyframe")
    }

    private mutating func checkOrigin(_ packet: PacketFacts) {
        guard let origin = packet.trace?.origin else {
            // The server itself makes only parameter sets.
            if !packet.isOwn { fault("packet \(packet.sequenceNumber) is nobody's") }
            return
        }
        if !allowedTracks.contains(origin.track) { fault("packet of track \(origin.track), which is not shown here") }
        if origins.last != origin { origins.append(origin) }
    }

    /// `b` follows `a` on the wire.
    private mutating func check(_ a: PacketFacts, _ b: PacketFacts) {
        // Padding has neither a time nor a frame for receivers.
        guard !a.isFiller, !b.isFiller else { return }
        let step = Int32(bitPattern: b.timestamp &- a.timestamp)
        if let paceTolerance { checkPace(a, b, step, paceTolerance) }
        guard kind == .video else { return checkAudioOrder(a, b) }
        if step == 0, a.marker { fault("a frame goes on behind its marker at \(b.number): \(a), then \(b)") }
        checkPictureNumbers(a, b, isNewFrame: step != 0)
        checkSpatialLayers(a, b, isNewFrame: step != 0)
        checkFrames(a, b)
    }

    private mutating func checkPace(_ a: PacketFacts, _ b: PacketFacts, _ step: Int32, _ tolerance: TimeSpan) {
        if step < 0 { fault("timestamp goes back by \(-Int64(step)) at \(b.number)") }
        guard let x = a.trace, let y = b.trace else { return }
        let media = Int64(step) * 1_000_000 / (kind == .video ? 90 : 48)
        let error = media - (y.time - x.time).nanoseconds
        guard abs(error) > tolerance.nanoseconds else { return }
        fault("media time is off by \(error / 1_000_000) ms at \(b.number): \(a), then \(b)")
    }

    private mutating func checkAudioOrder(_ a: PacketFacts, _ b: PacketFacts) {
        guard let x = a.trace, let y = b.trace, x.origin == y.origin, y.frame <= x.frame else { return }
        fault("audio packet \(y.frame) follows \(x.frame)")
    }

    private mutating func checkPictureNumbers(_ a: PacketFacts, _ b: PacketFacts, isNewFrame: Bool) {
        guard let x = a.pictureID, let y = b.pictureID else { return }
        let jump = (y &- x) & 0x7fff
        // If frames refer to others by distance, omitted frames keep their numbers.
        let isThinned = allowsThinning && isNewFrame && b.references != nil && (1..<0x100).contains(jump)
        if jump != (isNewFrame ? 1 : 0), !isThinned {
            fault("picture id goes from \(x) to \(y) at \(b.number): \(a), \(b)")
        }
        guard let v = a.tl0PictureIndex, let w = b.tl0PictureIndex else { return }
        let expected: UInt8 = isNewFrame && b.temporalLayer == 0 ? 1 : 0
        if w &- v != expected { fault("TL0PICIDX goes from \(v) to \(w) at \(b.number)") }
    }

    /// A spatial layer needs all lower ones.
    private mutating func checkSpatialLayers(_ a: PacketFacts, _ b: PacketFacts, isNewFrame: Bool) {
        guard isNewFrame else {
            if b.spatialLayer > a.spatialLayer + 1 { fault("spatial layer \(b.spatialLayer) on \(a.spatialLayer)") }
            return
        }
        if b.spatialLayer > 0 { fault("a frame begins with spatial layer \(b.spatialLayer) at \(b.number)") }
    }

    /// Frames of one layer follow each other without a gap; anything else starts with a keyframe, and only that may follow a
    /// frame that was abandoned.
    private mutating func checkFrames(_ a: PacketFacts, _ b: PacketFacts) {
        guard let x = a.trace else { return }
        guard let y = b.trace else {
            if x.index != x.count &- 1 { framesCut += 1 }
            return
        }
        if x.origin == y.origin, x.frame == y.frame {
            if y.index != x.index &+ 1 { fault("\(b) follows \(a) at \(b.number)") }
            return
        }
        if y.index != 0 { fault("\(b) begins in the middle at \(b.number), after \(a)") }
        if b.startsKeyframe {
            if x.index != x.count &- 1 { framesCut += 1 }
            return
        }
        if x.index != x.count &- 1 { fault("\(a) is cut at \(b.number) by \(b)") }
        let isThinned = allowsThinning && x.origin == y.origin && y.frame > x.frame
        if x.origin != y.origin || (y.frame != x.frame &+ 1 && !isThinned) {
            fault("\(b) follows \(a) without a keyframe at \(b.number)")
        }
    }

    private mutating func fault(_ sentence: String) {
        if faults.count < Self.maximumFaults { faults.append(sentence) }
    }
}
