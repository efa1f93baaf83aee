internal import Primitives

/// One SSRC that is sent, the packet indices that it has used, and, after the first retransmission, the tags of its last packets.
struct SendingStream {
    let ssrc: UInt32
    /// By the low bits of the packet's index. Most streams are repaired through RTX and have none. Placed ahead of the window, because each packet reads it
    /// together with the window's newest index.
    private var tags: UnsafeMutablePointer<SentTag>?
    private var packets = PacketWindow()

    /// More than a second of audio, and about a round trip of video: the packets that receivers request again.
    private static let tagCount = 256

    init(ssrc: UInt32) { self.ssrc = ssrc }

    /// The index of a packet with this sequence number, which counts as used from now on; `isFresh`: it is known not to have been before.
    @inline(__always) mutating func index(_ sequence: UInt16) -> (index: Int64, isFresh: Bool) {
        let index = packets.index(of: sequence)
        guard packets.isFresh(index) else { return (index, false) }
        packets.use(index)
        return (index, true)
    }

    /// Whether the tag is known with which the packet of a used index was sent. Tags are kept from the first call on.
    mutating func mayRepeat(_ index: Int64) -> Bool {
        guard let tags else {
            let tags = UnsafeMutablePointer<SentTag>.allocate(capacity: Self.tagCount)
            tags.initialize(repeating: SentTag(), count: Self.tagCount)
            self.tags = tags
            return false
        }
        return tags[Int(index) & (Self.tagCount - 1)].index == index
    }

    /// Whether a packet that was encrypted with this tag may leave: a fresh one may, any other only with the tag of its first transmission.
    @inline(__always) mutating func admits(_ tag: UnsafeRawPointer, of index: Int64, isFresh: Bool) -> Bool {
        guard let tags else { return isFresh }
        let place = tags + (Int(index) & (Self.tagCount - 1))
        let new = SentTag(index: index, tag)
        guard isFresh else { return place.pointee == new }
        place.pointee = new
        return true
    }

    /// The stream is removed.
    func freeTags() { tags?.deallocate() }
}

/// The tag of a packet that was sent. Two packets with one index and one tag are the same: anyone who could find different ones could forge packets.
private struct SentTag: Equatable {
    var index = Int64.min
    private var high: UInt64 = 0
    private var low: UInt64 = 0

    init() {}

    @inline(__always) init(index: Int64, _ tag: UnsafeRawPointer) {
        self.index = index
        high = tag.loadUnaligned(as: UInt64.self)
        low = tag.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
    }
}

/// The streams of one sender by SSRC. A peer that subscribes to a grid has hundreds, so a list without an index would be too slow.
struct SendingStreams: ~Copyable {
    /// In order of creation, except that gaps are filled from the end.
    private var streams: UnsafeMutablePointer<SendingStream>
    private var capacity = 2
    private(set) var count = 0
    /// Indices into `streams`.
    private var places = FlatTable<UInt32>(capacity: 2)

    init() { streams = .allocate(capacity: 2) }

    deinit {
        for place in 0..<count { streams[place].freeTags() }
        streams.deallocate()
    }

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
        streams[place].freeTags()
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
