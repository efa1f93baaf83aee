internal import Primitives

/// The packet indices that one SSRC has used: its newest, and which of the 1,024 before it.
struct SendingStream {
    let ssrc: UInt32
    /// The newest 48-bit index (ROC and sequence number, RFC 3711 section 3.3.1); -1 before the first packet.
    private var newest: Int64 = -1
    /// Bit n of the window is index n modulo 1,024.
    private var used = InlineArray<16, UInt64>(repeating: 0)

    init(ssrc: UInt32) { self.ssrc = ssrc }

    /// The index of a packet with this sequence number, which counts as used from now on; -1 when it already is, or is too old to
    /// tell.
    @inline(__always) mutating func take(_ sequence: UInt16) -> Int64 {
        guard newest >= 0 else {
            newest = Int64(sequence)
            mark(newest)
            return newest
        }
        let step = Int64(Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: newest)))
        let index = newest &+ step
        if step > 0 {
            if step == 1 {
                unmark(index)
            } else if step >= Int64(SRTPSender.window) {
                used = InlineArray(repeating: 0)
            } else {
                for skipped in (newest &+ 1)...index { unmark(skipped) }
            }
            newest = index
        } else if index < 0 || step <= -Int64(SRTPSender.window) || isMarked(index) {
            return -1
        }
        mark(index)
        return index
    }

    @inline(__always) private func isMarked(_ index: Int64) -> Bool {
        used[Int(index >> 6) & 15] & (1 << UInt64(index & 63)) != 0
    }

    @inline(__always) private mutating func mark(_ index: Int64) {
        used[Int(index >> 6) & 15] |= 1 << UInt64(index & 63)
    }

    @inline(__always) private mutating func unmark(_ index: Int64) {
        used[Int(index >> 6) & 15] &= ~(1 << UInt64(index & 63))
    }
}

/// The streams of one sender by SSRC. A peer that watches a grid has hundreds, so it is a table and not a list.
struct SendingStreams: ~Copyable {
    private static let empty: UInt16 = .max
    /// In the order in which they came, then whatever moved into a gap.
    private var streams: UnsafeMutablePointer<SendingStream>
    private var capacity = 2
    private(set) var count = 0
    /// Open addressing: places in `streams`, twice as many buckets as places.
    private var buckets: UnsafeMutablePointer<UInt16>

    init() {
        streams = .allocate(capacity: 2)
        buckets = .allocate(capacity: 4)
        buckets.initialize(repeating: Self.empty, count: 4)
    }

    deinit {
        streams.deallocate()
        buckets.deallocate()
    }

    private var mask: Int { capacity &* 2 &- 1 }

    /// Knuth's multiplicative hash; SSRCs are random or count up.
    @inline(__always) private func bucket(_ ssrc: UInt32) -> Int {
        Int(truncatingIfNeeded: (UInt64(ssrc) &* 0x9e37_79b9_7f4a_7c15) >> 40) & mask
    }

    /// The stream with this SSRC, made when it is new; valid until the next call.
    @inline(__always) mutating func stream(_ ssrc: UInt32) -> UnsafeMutablePointer<SendingStream> {
        var position = bucket(ssrc)
        while buckets[position] != Self.empty {
            let stream = streams + Int(buckets[position])
            if stream.pointee.ssrc == ssrc { return stream }
            position = (position &+ 1) & mask
        }
        return insert(ssrc)
    }

    /// Asks for the table and for the heads of the first streams.
    @inline(__always) func prefetch() {
        Prefetch.lines(UnsafeRawPointer(buckets), min(capacity &* 4, 128))
        Prefetch.lines(UnsafeRawPointer(streams), min(count, 4) &* MemoryLayout<SendingStream>.stride)
    }

    private mutating func insert(_ ssrc: UInt32) -> UnsafeMutablePointer<SendingStream> {
        if count == capacity { grow() }
        (streams + count).initialize(to: SendingStream(ssrc: ssrc))
        count += 1
        place(count - 1)
        return streams + (count - 1)
    }

    mutating func remove(_ ssrc: UInt32) {
        guard let index = (0..<count).first(where: { streams[$0].ssrc == ssrc }) else { return }
        count -= 1
        streams[index] = streams[count]
        rebuild()
    }

    private mutating func grow() {
        let grown = UnsafeMutablePointer<SendingStream>.allocate(capacity: capacity * 2)
        grown.moveInitialize(from: streams, count: count)
        streams.deallocate()
        streams = grown
        capacity *= 2
        buckets.deallocate()
        buckets = .allocate(capacity: capacity * 2)
        rebuild()
    }

    private func rebuild() {
        buckets.initialize(repeating: Self.empty, count: capacity * 2)
        for index in 0..<count { place(index) }
    }

    private func place(_ index: Int) {
        var position = bucket(streams[index].ssrc)
        while buckets[position] != Self.empty { position = (position + 1) & mask }
        buckets[position] = UInt16(index)
    }
}
