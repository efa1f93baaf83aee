import MediaControl
import Primitives
import RTP

// How planned packets become bytes in a section; rendering does not change the section. `mutating`: it is read in place, see `Subscription`.

extension SendSection {
    /// The stored packet behind a number of the output.
    @inline(__always)
    static func record(of sent: SentPacket.Forwarded, in layer: UnsafeMutablePointer<ReceiveLayer>) -> UnsafePointer<
        PacketRecord
    >? {
        // The nearest number to the newest one that has these low bits.
        let behind = Int32(bitPattern: UInt32(truncatingIfNeeded: layer.pointee.history.highest) &- sent.source)
        return layer.pointee.history.record(layer.pointee.history.highest &- Int64(behind))
    }

    /// Renders `sent`; nil when its track's history has lost the packet. `payload`: the publisher's bytes in it.
    @inline(__always)
    mutating func render(
        _ sent: SentPacket, of track: PublishedTrack, repeatedAs rtxSequence: UInt16?,
        into slot: UnsafeMutableRawBufferPointer
    ) -> (length: Int, payload: Int)? {
        precondition(slot.count >= Subscription.maximumLength, "slot too small for any packet")
        guard let forwarded = sent.forwarded else {
            return renderGenerated(sent, of: track, repeatedAs: rtxSequence, into: slot).map { ($0, 0) }
        }
        let layer = track.layer(Int(sent.layer))
        guard let record = Self.record(of: forwarded, in: layer) else { return nil }
        let renderer = self.renderer(for: record.pointee.format)
        guard renderer.mapping.isMapped else { return nil }
        let packet = layer.pointee.history.packet(record)
        let length = renderer.write(
            sent, forwarded, record: record, packet: packet, of: layer, repeatedAs: rtxSequence,
            into: slot.baseAddress!)
        return (length, packet.count &- Int(record.pointee.payloadOffset))
    }

    /// Renders a packet that the server generates: parameter sets, which need their track, or padding; nil for any other.
    mutating func renderGenerated(
        _ sent: SentPacket, of track: PublishedTrack?, repeatedAs rtxSequence: UInt16?,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        switch sent.content {
        case .none, .forwarded: return nil
        case .padding(let generated):
            return header(of: generated, in: sent, repeatedAs: rtxSequence, into: slot).flatMap {
                RTPPatch.pad(slot, length: $0, by: max(1, Int(sent.padding)))
            }
        case .parameterSets(let generated, _):
            guard let offset = header(of: generated, in: sent, repeatedAs: rtxSequence, into: slot) else { return nil }
            let room = UnsafeMutableRawBufferPointer(rebasing: slot[offset...])
            let sets = track?.layer(Int(sent.layer)).pointee.parameterSets.writeSTAPA(into: room)
            return sets.map { offset + $0 }
        }
    }

    /// Writes the part before the payload of a generated packet; returns where the payload begins, or nil if its format is not negotiated.
    private mutating func header(
        of generated: SentPacket.Generated, in sent: SentPacket, repeatedAs rtxSequence: UInt16?,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let renderer = self.renderer(for: generated.format)
        guard renderer.mapping.isMapped, let base = slot.baseAddress else { return nil }
        renderer.writeHeader(sent, timestamp: generated.timestamp, marker: false, repeatedAs: rtxSequence, into: base)
        var writer = ExtensionBlockWriter(slot: base, isTwoByte: wire.hasLargeIDs)
        renderer.writeOwn(sent, with: &writer)
        let offset = writer.finish()
        guard rtxSequence != nil else { return offset }
        base.storeBytes(of: UInt16(truncatingIfNeeded: sent.sequence).bigEndian, toByteOffset: offset, as: UInt16.self)
        return offset + RTPLayout.originalSequence
    }

    // MARK: - Equal lengths

    // Packets of equal length leave in one system call (UDP_SEGMENT), which is the largest saving available. A packetizer splits a
    // frame "about equally", so that its packets differ by a byte; and a header extension on only some of them adds a few more.

    /// Maximum padding of one packet: a difference of four header extension elements. 16 of 1,100 bytes are at worst 1.5 % of a video
    /// packet; a saved system call is worth two microseconds.
    static let maximumPadding = 16

    /// Pads packets that differ by at most `maximumPadding` bytes from their neighbours to the length of the longest.
    ///
    /// `items` are the subscription's packets of one turn as planned; `write` applies the padding. A packet unlike its
    /// neighbours begins another run. Returns the number of padded packets.
    mutating func level(_ items: UnsafeMutableBufferPointer<SentPacket>, of track: PublishedTrack) -> Int {
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
    private mutating func clearLength(of planned: SentPacket, in track: PublishedTrack) -> Int? {
        guard let forwarded = planned.forwarded,
            let record = Self.record(of: forwarded, in: track.layer(Int(planned.layer)))
        else { return nil }
        var sent = planned
        if sendsMID { sent.flags.insert(.mid) }
        let renderer = self.renderer(for: record.pointee.format)
        guard renderer.mapping.isMapped else { return nil }
        return renderer.length(of: sent, forwarded, record: record)
    }
}
