public import Primitives

/// Extends the 16-bit sequence numbers of one SSRC, detects duplicates, and notices restarts
/// (RFC 3550 appendix A.1, with the limits below instead of its 3,000 and 100).
///
/// The stream is authenticated, so a jump is never garbage: it is accepted at once where that is possible, because the
/// first packet after a pause must not wait for the second.
public struct SequenceTracker: ~Copyable {
    /// The meaning of a packet's number.
    public enum Verdict: Hashable, Sendable {
        /// The next number.
        case next(Int64)
        /// Ahead of the next: the numbers from `missing` to this one have not arrived yet.
        case ahead(Int64, missing: Int64)
        /// Below the highest, but never seen before.
        case late(Int64)
        /// Numbering restarted; everything between the last packet and this one was never sent or is lost for good.
        case restarted(Int64)
        /// Seen before.
        case duplicate
        /// Too far back to know whether it was seen.
        case tooOld
    }

    /// Larger forward jumps are restarts: at 5,000 packets/s this is 0.4 s, beyond which repair is hopeless.
    static let maximumGap: Int64 = 2000
    /// Numbers remembered to detect duplicates; a power of two. 1,024 packets are a second of 9 Mbit/s, and repairs arrive
    /// within a second.
    static let window: Int64 = 1024
    /// A stream that paused this long may continue with any number. Longer than any path's reordering.
    static let pause = TimeSpan.milliseconds(300)
    /// After this long even a number inside the window is new: the sequence wrapped while nothing arrived.
    static let longPause = TimeSpan.seconds(2)

    /// The first number of this numbering; loss is counted from it.
    public private(set) var first: Int64 = 0
    /// The highest number; `first - 1` before the first packet.
    public private(set) var highest: Int64 = -1
    /// Whether any packet has arrived.
    public private(set) var hasStarted = false
    private var lastArrival = MonotonicTime.zero
    /// A number far back; the next packet confirms a restart if it has this number.
    private var suspect: UInt16?
    private var sourceChanged = false
    private let seen: UnsafeMutablePointer<UInt64>

    public init() {
        seen = .allocate(capacity: Int(Self.window / 64))
        seen.initialize(repeating: 0, count: Int(Self.window / 64))
    }

    deinit { seen.deallocate() }

    /// Processes the number of a packet that arrived on the stream's own SSRC.
    public mutating func receive(_ number: UInt16, at now: MonotonicTime) -> Verdict {
        defer { lastArrival = now }
        guard hasStarted else {
            hasStarted = true
            // One full cycle up, so that packets from just before the first are not negative.
            return start(at: 0x10000 + Int64(number))
        }
        let distance = Int64(Int16(bitPattern: number &- UInt16(truncatingIfNeeded: highest)))
        if sourceChanged || distance > Self.maximumGap { return restart(number) }
        if distance > 0 { return advance(by: distance) }
        let idle = now - lastArrival
        if idle >= Self.longPause { return restart(number) }
        if distance > -Self.window { return mark(highest + distance) }
        if idle >= Self.pause || suspect == number { return restart(number) }
        suspect = number &+ 1
        return .tooOld
    }

    /// Processes the number of a repaired packet: it may fill a gap but never move the stream forward by a jump.
    public mutating func receiveRepaired(_ number: UInt16) -> Verdict {
        guard hasStarted else { return .tooOld }
        let distance = Int64(Int16(bitPattern: number &- UInt16(truncatingIfNeeded: highest)))
        guard distance <= Self.window, distance > -Self.window else { return .tooOld }
        return distance > 0 ? advance(by: distance) : mark(highest + distance)
    }

    /// Another source continues the same layer: its first packet is a restart.
    public mutating func changeSource() { sourceChanged = hasStarted }

    /// Whether `sequence` was received; false for numbers outside the window.
    public func contains(_ sequence: Int64) -> Bool {
        guard sequence <= highest, sequence > highest - Self.window else { return false }
        return seen[Self.word(sequence)] & Self.bit(sequence) != 0
    }
}

// MARK: - The window

extension SequenceTracker {
    private mutating func start(at sequence: Int64) -> Verdict {
        first = sequence
        highest = sequence
        seen.update(repeating: 0, count: Int(Self.window / 64))
        remember(sequence)
        suspect = nil
        sourceChanged = false
        return .next(sequence)
    }

    /// The smallest extended number above all others whose low bits are `number`.
    private mutating func restart(_ number: UInt16) -> Verdict {
        var next = (highest & ~0xffff) | Int64(number)
        if next <= highest { next += 0x10000 }
        _ = start(at: next)
        return .restarted(next)
    }

    private mutating func advance(by distance: Int64) -> Verdict {
        let previous = highest
        highest += distance
        if distance >= Self.window {
            seen.update(repeating: 0, count: Int(Self.window / 64))
        } else if distance > 1 {
            for skipped in (previous + 1)..<highest { forget(skipped) }
        }
        remember(highest)
        suspect = nil
        return distance == 1 ? .next(highest) : .ahead(highest, missing: previous + 1)
    }

    private mutating func mark(_ sequence: Int64) -> Verdict {
        guard seen[Self.word(sequence)] & Self.bit(sequence) == 0 else { return .duplicate }
        remember(sequence)
        return .late(sequence)
    }

    // Separate read and write: the compiler's thread sanitizer breaks on `|=` through a pointer that lies in a noncopyable value
    // (Swift 6.3.1: "Invalid bitcast").
    @inline(__always) private func remember(_ sequence: Int64) {
        let word = Self.word(sequence)
        seen[word] = seen[word] | Self.bit(sequence)
    }

    @inline(__always) private func forget(_ sequence: Int64) {
        let word = Self.word(sequence)
        seen[word] = seen[word] & ~Self.bit(sequence)
    }

    @inline(__always) private static func word(_ sequence: Int64) -> Int { Int((sequence & (window - 1)) >> 6) }
    @inline(__always) private static func bit(_ sequence: Int64) -> UInt64 { 1 << UInt64(sequence & 63) }
}
