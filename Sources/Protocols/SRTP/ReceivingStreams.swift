internal import Primitives

/// What one SSRC of a peer has sent: which packets, and which reports.
struct ReceivingStream {
    var packets = PacketWindow()
    /// The newest report's index, and which of the 64 up to it arrived; bit n is n before the newest.
    private var newestReport: UInt32 = 0
    private var reports: UInt64 = 0
    /// When it was released, as a count; 0 while it is in use.
    var released: UInt64 = 0
    /// When its last report arrived, as a count.
    fileprivate(set) var lastReport: UInt64 = 0

    /// Only reports have arrived from it.
    var onlyReports: Bool { packets.newest < 0 }

    /// Whether a report with this index is known not to have arrived before.
    @inline(__always) func isFresh(report index: UInt32) -> Bool {
        guard reports != 0, index <= newestReport else { return true }
        let back = newestReport &- index
        return back < 64 && reports & (1 << UInt64(back)) == 0
    }

    /// Marks a fresh report as received.
    @inline(__always) fileprivate mutating func use(report index: UInt32) {
        guard reports != 0, index <= newestReport else {
            let step = reports == 0 ? 64 : index &- newestReport
            reports = (step < 64 ? reports << UInt64(step) : 0) | 1
            newestReport = index
            return
        }
        reports |= 1 << UInt64(newestReport &- index)
    }
}

/// The streams of one peer by SSRC. There are few, so a linear search beats a table; and they are bounded, because a peer can choose any number of
/// SSRCs.
struct ReceivingStreams: ~Copyable {
    private var ssrcs: UnsafeMutablePointer<UInt32>
    private var streams: UnsafeMutablePointer<ReceivingStream>
    private var capacity = 2
    private var count = 0
    private var releases: UInt64 = 0
    private var releasedCount = 0
    private var reports: UInt64 = 0

    init() {
        ssrcs = .allocate(capacity: 2)
        streams = .allocate(capacity: 2)
    }

    deinit {
        ssrcs.deallocate()
        streams.deallocate()
    }

    /// The stream of an SSRC from which an authentic packet arrived; valid until the next `add`.
    @inline(__always) func find(_ ssrc: UInt32) -> UnsafeMutablePointer<ReceivingStream>? {
        for index in 0..<count where ssrcs[index] == ssrc { return streams + index }
        return nil
    }

    /// Whether another SSRC may be added.
    @inline(__always) var hasRoom: Bool { count < SRTPSession.maximumReceivingStreams || replaceable != nil }

    /// The stream that is removed when there is no room: the first of those that were released; otherwise, of those that have sent only reports, the one that
    /// has been silent for longest. Firefox reports under another SSRC in each section, and sections are never used again, so a long call uses any number of
    /// SSRCs.
    private var replaceable: Int? {
        if releasedCount > 0 {
            return (0..<count).filter { streams[$0].released > 0 }.min { streams[$0].released < streams[$1].released }
        }
        return (0..<count).filter { streams[$0].onlyReports }.min { streams[$0].lastReport < streams[$1].lastReport }
    }

    /// Adds an SSRC after an authentic packet of it: packets from unknown sources must not evict streams. If there is no room, `replaceable` is removed.
    mutating func add(_ ssrc: UInt32) -> UnsafeMutablePointer<ReceivingStream> {
        var index = count
        if count == SRTPSession.maximumReceivingStreams {
            index = replaceable ?? 0
            if streams[index].released > 0 { releasedCount -= 1 }
        } else {
            if count == capacity { grow() }
            count += 1
        }
        ssrcs[index] = ssrc
        (streams + index).initialize(to: ReceivingStream())
        return streams + index
    }

    /// Marks a fresh report of a stream as received.
    @inline(__always) mutating func use(report index: UInt32, of stream: UnsafeMutablePointer<ReceivingStream>) {
        reports &+= 1
        stream.pointee.lastReport = reports
        stream.pointee.use(report: index)
    }

    /// Lets an SSRC be removed when room is needed. Its window stays until then, so that old packets cannot be replayed.
    mutating func release(_ ssrc: UInt32) {
        guard let stream = find(ssrc), stream.pointee.released == 0 else { return }
        releases += 1
        stream.pointee.released = releases
        releasedCount += 1
    }

    /// Reverts `release`.
    mutating func retain(_ ssrc: UInt32) {
        guard let stream = find(ssrc), stream.pointee.released > 0 else { return }
        stream.pointee.released = 0
        releasedCount -= 1
    }

    /// Prefetches the heads of the first streams.
    @inline(__always) func prefetch() {
        Prefetch.lines(ssrcs, 64)
        Prefetch.lines(streams, min(count, 2) &* MemoryLayout<ReceivingStream>.stride)
    }

    private mutating func grow() {
        let places = capacity * 2
        let moreSSRCs = UnsafeMutablePointer<UInt32>.allocate(capacity: places)
        let moreStreams = UnsafeMutablePointer<ReceivingStream>.allocate(capacity: places)
        moreSSRCs.moveInitialize(from: ssrcs, count: count)
        moreStreams.moveInitialize(from: streams, count: count)
        ssrcs.deallocate()
        streams.deallocate()
        ssrcs = moreSSRCs
        streams = moreStreams
        capacity = places
    }
}
