public import Primitives

/// The loudness of one audio track over the last second, in slots of 20 ms of *media* time, whatever the packet size
/// and however bursty the arrival.
///
/// ```text
///  media time   |--20 ms--|--20 ms--|--20 ms--|--20 ms--|--20 ms--|
///  10 ms        [a ][b ]                                             one slot takes the louder of a and b
///  60 ms                  [c                           ]             three slots of c, once the next packet shows it
///  none came    0 0 0, once the track is quiet for longer than the usual gap between its arrivals
/// ```
///
/// Slots of silence pushed while waiting are withdrawn when the next packet turns out to be late rather than silent: an
/// iOS broadcast delivers half a second of audio at once, and its speaker must not seem to stop two times per second.
public struct AudioLevelWindow: Sendable {
    /// 50 slots are one second, the longest interval of the speaker detection.
    static let slots = 50
    private static let slotNanoseconds: Int64 = 20_000_000
    /// No packet is longer than 120 ms (RFC 7587 section 4.2), so a longer distance is silence (DTX).
    private static let maximumPacketSlots: Int64 = 6
    /// Quiet for this long counts as silence even for steady senders; two to five packets.
    private static let minimumHold = TimeSpan.milliseconds(100)

    /// Loudness 0 (silent) to 127 of slot `newest - i`, a ring.
    private var ring = InlineArray<50, UInt8>(repeating: 0)
    private var newest = 0
    /// Media slot of the newest packet.
    private var lastSlot: Int64 = 0
    private var lastLoudness: UInt8 = 0
    /// Slots of silence pushed since the last packet.
    private var idleSlots: Int64 = 0
    /// The longest gap between arrivals in this and in the previous period of two seconds.
    private var longestGap = TimeSpan.zero
    private var longestGapBefore = TimeSpan.zero
    private var periodStart = MonotonicTime.zero
    var floor = NoiseFloor()
    /// When the last level arrived; `.zero` before the first.
    public private(set) var lastArrival = MonotonicTime.zero

    /// A window of silence.
    public init() {}

    /// Whether any level has arrived.
    public var hasLevels: Bool { lastArrival != .zero }

    /// The loudest of the last 200 ms, 0 to 127.
    public var currentLoudness: Int { (0..<10).reduce(0) { max($0, Int(loudness($1))) } }

    /// The loudness `slot` slots of 20 ms before the newest one, 0 to 127.
    @inline(__always) func loudness(_ slot: Int) -> UInt8 {
        let index = newest - slot
        return ring[index < 0 ? index + Self.slots : index]
    }

    /// Adds the level of a packet (RFC 6464: 0 is the loudest, 127 silence).
    mutating func receive(level: UInt8, timestamp: Int64, clockRate: Int64, at now: MonotonicTime) {
        let loudness = 127 - min(level, 127)
        let slot = timestamp / max(clockRate / 50, 1)
        guard hasLevels else {
            lastArrival = now
            periodStart = now
            lastSlot = slot
            lastLoudness = loudness
            push(loudness)
            return
        }
        noteGap(now - lastArrival, at: now)
        lastArrival = now
        var distance = slot &- lastSlot
        // A route change steps the timestamp: continue with the next slot. A late packet adds nothing.
        if distance < 0 && distance > -Int64(Self.slots) { return }
        if distance < 0 || distance > 500 { distance = 1 }
        lastSlot = slot
        removeAssumedSilence(keeping: distance)
        defer { lastLoudness = loudness }
        if distance == 0 {
            ring[newest] = max(ring[newest], loudness)
            return
        }
        let remaining = distance - idleSlots
        idleSlots = 0
        // The previous packet covers the slots up to this one, as far as a packet can.
        let filler = distance <= Self.maximumPacketSlots ? lastLoudness : 0
        for _ in 0..<max(0, min(remaining - 1, Int64(Self.slots))) { push(filler) }
        push(loudness)
    }

    /// Advances time: pushes silence when nothing has arrived for longer than is usual for this track.
    mutating func settle(at now: MonotonicTime) {
        guard hasLevels else { return }
        let usual = max(longestGap, longestGapBefore)
        let quiet = now - lastArrival - max(Self.minimumHold, usual + usual / 4)
        guard quiet > .zero else { return }
        let due = quiet.nanoseconds / Self.slotNanoseconds
        for _ in 0..<max(0, min(due - idleSlots, Int64(Self.slots))) { push(0) }
        idleSlots = max(idleSlots, due)
    }

    /// Clears the window, as when the track is muted.
    mutating func clear() { self = AudioLevelWindow() }

    private mutating func removeAssumedSilence(keeping distance: Int64) {
        let wrong = min(idleSlots - max(distance - 1, 0), Int64(Self.slots - 1))
        guard wrong > 0 else { return }
        newest = (newest + Self.slots - Int(wrong)) % Self.slots
        idleSlots -= wrong
    }

    private mutating func push(_ loudness: UInt8) {
        newest = newest == Self.slots - 1 ? 0 : newest + 1
        ring[newest] = loudness
        floor.note(loudness)
    }

    private mutating func noteGap(_ gap: TimeSpan, at now: MonotonicTime) {
        if now - periodStart >= .seconds(2) {
            longestGapBefore = longestGap
            longestGap = .zero
            periodStart = now
        }
        // Longer gaps are pauses and not the sender's packet interval.
        if gap <= .milliseconds(800) { longestGap = max(longestGap, gap) }
    }
}

/// The background noise of one microphone: the quietest level of the last 15 s, rising slowly.
struct NoiseFloor: Sendable {
    /// 15 s of slots, as in Jitsi's implementation.
    private static let period = 750
    /// Louder than -65 dBov is not background: a steady tone or music without pauses is activity.
    private static let highest: UInt8 = 62

    private(set) var level: UInt8 = 0
    private var candidate: UInt8 = 0
    private var candidateAge = 0

    mutating func note(_ loudness: UInt8) {
        guard loudness > 0 else { return }
        if level == 0 || loudness < level {
            level = min(loudness, Self.highest)
            candidate = 0
            candidateAge = 0
            return
        }
        candidate = candidateAge == 0 ? loudness : min(candidate, loudness)
        candidateAge += 1
        guard candidateAge >= Self.period else { return }
        // Half the way up: within a few units of the paper's geometric mean.
        level = min(UInt8((Int(level) + Int(candidate)) / 2), Self.highest)
        candidateAge = 0
    }
}
