/// Maps the numbers of one section of the publisher's stream to output numbers.
///
/// Within a range every delta is constant; a new range begins with a layer switch, a dropped packet or frame, or a jump.
struct NumberRange {
    /// First and highest source sequence number that the range covers so far.
    var first: Int64 = 0
    var last: Int64 = -1
    /// Output = source - this.
    var sequenceDelta: Int64 = 0
    var deltas = NumberDeltas()
    var keyIndexDelta: UInt8 = 0
    var layer: UInt8 = 0
    /// The highest spatial and temporal layers that were forwarded.
    var caps = LayerCaps()

    /// The output number of `source`.
    @inline(__always) func output(_ source: Int64) -> Int64 { source &- sequenceDelta }
}

/// What is added to the numbers in a publisher's packet.
struct NumberDeltas: Sendable {
    var timestamp: UInt32 = 0
    /// To the VP8 or VP9 picture id.
    var picture: UInt16 = 0
    /// To the frame number of the dependency descriptor.
    var frame: UInt16 = 0
    /// To TL0PICIDX.
    var temporalZero: UInt8 = 0
}

/// The highest layers inside a stream that are forwarded; `.max`: all. In two bytes instead of `LayerPoint`'s two words, because every range of numbers has
/// one.
struct LayerCaps: Equatable {
    var spatial: UInt8 = .max
    var temporal: UInt8 = .max
}

/// The last few ranges of a subscription, so that a late packet (repaired uplink loss, reordering) still gets the
/// number reserved for it.
struct NumberRanges: ~Copyable {
    private let ranges: UnsafeMutablePointer<NumberRange>
    private let mask: Int
    /// Ranges ever begun; 0 before the first.
    private(set) var count = 0

    /// `capacity` is a power of two. 32 for video: one for each frame whose upper layers are dropped, for the second in which a
    /// late packet is still worth sending; 4 for audio, which only has jumps.
    init(capacity: Int) {
        ranges = .allocate(capacity: capacity)
        ranges.initialize(repeating: NumberRange(), count: capacity)
        mask = capacity - 1
    }

    deinit { ranges.deallocate() }

    var memoryBytes: Int { (mask + 1) * MemoryLayout<NumberRange>.stride }

    /// The range that new packets belong to; only after the first `begin`.
    @inline(__always) var current: UnsafeMutablePointer<NumberRange> { ranges + ((count &- 1) & mask) }

    mutating func begin(_ range: NumberRange) {
        ranges[count & mask] = range
        count += 1
    }

    /// Forgets everything: another track is bound.
    mutating func removeAll() { count = 0 }

    /// The range that reserved a number for `source` of `layer`.
    func find(layer: UInt8, source: Int64) -> UnsafeMutablePointer<NumberRange>? {
        var index = count - 1
        let oldest = max(0, count - mask - 1)
        while index >= oldest {
            let range = ranges + (index & mask)
            if range.pointee.layer == layer && source >= range.pointee.first && source <= range.pointee.last {
                return range
            }
            index -= 1
        }
        return nil
    }
}
