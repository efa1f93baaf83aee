import Primitives

// Packets of equal length leave in one system call (UDP_SEGMENT), which is the largest saving available. A packetizer splits a
// frame "about equally", so that its packets differ by a byte; and a header extension on only some of them adds a few more.

extension Subscription {
    /// Maximum padding of one packet: a difference of four header extension elements. 16 of 1,100 bytes are at worst 1.5 % of a video
    /// packet; a saved system call is worth two microseconds.
    public static let maximumPadding = 16

    /// Pads packets that differ by at most `maximumPadding` bytes from their neighbours to the length of the longest.
    ///
    /// `items` are the subscription's packets of one turn as planned; `write` applies the padding. A packet unlike its
    /// neighbours begins another run. Returns the number of padded packets.
    public func level(_ items: UnsafeMutableBufferPointer<SentPacket>, of track: PublishedTrack) -> Int {
        var padded = 0
        var start = 0
        while start < items.count {
            guard let first = clearLength(of: items[start], in: track) else {
                start &+= 1
                continue
            }
            var longest = first, shortest = first, end = start &+ 1
            while end < items.count, let length = clearLength(of: items[end], in: track) {
                let newLongest = max(longest, length), newShortest = min(shortest, length)
                guard newLongest &- newShortest <= Self.maximumPadding else { break }
                (longest, shortest) = (newLongest, newShortest)
                end &+= 1
            }
            if shortest < longest {
                for index in start..<end {
                    guard let length = clearLength(of: items[index], in: track), length < longest else { continue }
                    items[index].padding = UInt8(truncatingIfNeeded: longest &- length)
                    padded &+= 1
                }
            }
            start = end
        }
        return padded
    }

    /// The length of a planned packet before padding and protection; nil if only writing determines it.
    @inline(__always)
    func clearLength(of planned: SentPacket, in track: PublishedTrack) -> Int? {
        guard !planned.isOwn,
            let record = Self.record(of: planned, in: track.layer(Int(planned.layer)))
        else { return nil }
        var sent = planned
        if section.sendsMID { sent.flags.insert(.mid) }
        let renderer = section.renderer(for: record.pointee.format)
        guard renderer.mapping.isMapped else { return nil }
        return renderer.length(of: sent, record: record)
    }
}
