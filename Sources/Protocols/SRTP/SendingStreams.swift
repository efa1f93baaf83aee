internal import Primitives

/// One SSRC that is sent, and the packet indices that it has used.
struct SendingStream {
    let ssrc: UInt32
    private var packets = PacketWindow()

    init(ssrc: UInt32) { self.ssrc = ssrc }

    /// The index of a packet with this sequence number, which counts as used from now on; -1 when it already is, or is too old to
    /// tell.
    @inline(__always) mutating func take(_ sequence: UInt16) -> Int64 {
        let index = packets.index(of: sequence)
        guard packets.isFresh(index) else { return -1 }
        packets.use(index)
        return index
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
