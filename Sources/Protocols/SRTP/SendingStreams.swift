internal import Primitives

/// One SSRC that is sent, and the packet indices that it has used.
struct SendingStream {
    let ssrc: UInt32
    private var packets = PacketWindow()

    init(ssrc: UInt32) { self.ssrc = ssrc }

    /// The index of a packet with this sequence number, which counts as used from now on; -1 when it already is, or is too old to
    /// tell.
    @inline(__always) mutating func index(_ sequence: UInt16) -> Int64 {
        let index = packets.index(of: sequence)
        guard packets.isFresh(index) else { return -1 }
        packets.use(index)
        return index
    }
}

/// The streams of one sender by SSRC. A peer that subscribes to a grid has hundreds, so a list alone would be too slow.
struct SendingStreams: ~Copyable {
    /// In order of creation, except that gaps are filled from the end.
    private var streams: UnsafeMutablePointer<SendingStream>
    private var capacity = 2
    private(set) var count = 0
    /// Indices into `streams`.
    private var places = FlatTable<UInt32>(capacity: 2)

    init() { streams = .allocate(capacity: 2) }

    deinit { streams.deallocate() }

    /// The stream with this SSRC, created when it is new; valid until the next call.
    @inline(__always) mutating func stream(_ ssrc: UInt32) -> UnsafeMutablePointer<SendingStream> {
        if let place = places[ssrc] { return streams + place }
        return insert(ssrc)
    }

    /// Prefetches the table and the heads of the first streams.
    @inline(__always) func prefetch() {
        places.prefetch(bytes: 128)
        Prefetch.lines(UnsafeRawPointer(streams), min(count, 4) &* MemoryLayout<SendingStream>.stride)
    }

    private mutating func insert(_ ssrc: UInt32) -> UnsafeMutablePointer<SendingStream> {
        if count == capacity { grow() }
        (streams + count).initialize(to: SendingStream(ssrc: ssrc))
        places.set(ssrc, to: count)
        count += 1
        return streams + (count - 1)
    }

    mutating func remove(_ ssrc: UInt32) {
        guard let place = places.remove(ssrc) else { return }
        count -= 1
        guard place < count else { return }
        streams[place] = streams[count]
        places.set(streams[place].ssrc, to: place)
    }

    private mutating func grow() {
        let grown = UnsafeMutablePointer<SendingStream>.allocate(capacity: capacity * 2)
        grown.moveInitialize(from: streams, count: count)
        streams.deallocate()
        streams = grown
        capacity *= 2
    }
}
