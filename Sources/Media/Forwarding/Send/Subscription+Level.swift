import Primitives

// Packets of one length leave in one call of the kernel (UDP_SEGMENT), which is the largest saving there is. A packetizer splits a
// picture "about equally", so that its packets differ by a byte; and a header extension that only some of them carry makes a few more.

extension Subscription {
    /// The most padding of one packet: four elements of header extension more or less. 16 of 1,100 bytes are 1.5 % of a video
    /// packet at the very worst; a system call saved is worth two microseconds.
    public static let maximumPadding = 16

    /// Gives packets that differ by at most `maximumPadding` bytes from their neighbours padding to be equal to the longest.
    ///
    /// `items` are the subscription's packets of one turn as planned; `write` carries the padding out. A packet that is not like its
    /// neighbours begins another run. How many packets were padded.
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

    /// The length of a planned packet before padding and protection; nil where only writing tells.
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
