import MediaControl
import PayloadFormats
import Primitives

// Late packets, which the publisher's network lost and which were repaired: they follow what was decided about their picture meanwhile.

extension Subscription {
    /// A picture seldom has more packets than this on either side of a missing one; packets further away are not checked.
    private static var reach: Int64 { 16 }

    /// Whether a late packet belongs to a picture or a layer that was dropped: then a part of it must not follow, because the
    /// receiver would wait for the rest.
    ///
    /// While it was missing its picture was unknown, so a number was reserved for it. `caps` applied to its picture.
    func wasLeftOut(
        _ sequence: Int64, _ record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>,
        caps: LayerCaps
    ) -> Bool {
        let summary = record.pointee.summary
        guard summary.temporalLayer > 0 || summary.spatialLayer > 0 else { return false }
        var isBegun = false
        for distance in 1...Self.reach {
            for other in [sequence - distance, sequence + distance] {
                // Higher spatial layers have caps of their own.
                guard let neighbour = layer.pointee.history.record(other),
                    neighbour.pointee.timestamp == record.pointee.timestamp,
                    neighbour.pointee.summary.spatialLayer <= summary.spatialLayer
                else { continue }
                guard let range = numbering.range(layer: layer.pointee.index, source: other) else { return true }
                // A layer that was partly sent is completed. A neighbour that was late itself proves nothing.
                guard let place = ring.place(numbering.packet(other, in: range).sequence) else { continue }
                if place.pointee.flags.contains(.filler) { return true }
                if neighbour.pointee.summary.spatialLayer == summary.spatialLayer { return false }
                // The picture was ended with a layer below. Without a marker there, that layer's own end may be missing, too: the caps decide.
                if place.pointee.flags.contains(.marker) { return true }
                isBegun = true
            }
        }
        return summary.spatialLayer > Int(caps.spatial) || !isBegun && summary.temporalLayer > Int(caps.temporal)
    }

    /// The highest layers forwarded for the picture of a late packet.
    func caps(
        of record: UnsafePointer<PacketRecord>, _ layer: UnsafeMutablePointer<ReceiveLayer>,
        in range: UnsafeMutablePointer<NumberRange>
    ) -> LayerCaps {
        let caps = range.pointee.caps
        // A frame may have changed the layers even if its first packet did not arrive first.
        guard selector.active.map({ Int($0) }) == layer.pointee.index else { return caps }
        return selector.caps(at: record.pointee.timestamp, else: caps)
    }

    /// Ends the picture or continues with its next layer, if a late packet ends a layer. The subscriber may not get the layers above,
    /// or the publisher may have dropped them.
    func endLayer(
        in sent: inout SentPacket, _ sequence: Int64, _ record: UnsafePointer<PacketRecord>,
        of layer: UnsafeMutablePointer<ReceiveLayer>, caps: LayerCaps
    ) {
        guard numbering.tail.codec == .vp9 || numbering.tail.codec == .av1 else { return }
        if record.pointee.summary.hasDescriptor, joinsLayers { joinToBefore(&sent, sequence, record, of: layer) }
        guard record.pointee.summary.endsFrame, !record.pointee.hasMarker else { return }
        if record.pointee.summary.spatialLayer >= Int(caps.spatial)
            || endsPicture(sequence, record.pointee.timestamp, in: layer)
        {
            sent.flags.insert(.marker)
        } else if joinsLayers {
            sent.mark.join(.next)
        }
    }
}
