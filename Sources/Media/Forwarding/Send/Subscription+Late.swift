import MediaControl
import PayloadFormats
import Primitives

// Packets that come late, because the publisher's network lost them and they were repaired: what was decided about their picture meanwhile.

extension Subscription {
    /// A picture has seldom more packets than this on either side of one that is missing; those further away are not looked at.
    private static var reach: Int64 { 16 }

    /// Whether a packet that comes late belongs to a picture or a layer that was left out: a part of it must not follow then, as the
    /// receiver would wait for the rest.
    ///
    /// While it was missing nobody knew whose it was, so a number was left for it. `caps` held for its picture.
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
                // What was sent of a layer is completed. A neighbour that came late itself says nothing.
                guard let place = ring.place(numbering.packet(other, in: range).sequence) else { continue }
                if place.pointee.flags.contains(.filler) { return true }
                if neighbour.pointee.summary.spatialLayer == summary.spatialLayer { return false }
                // The picture was ended with a layer below. Where that has no marker its own end may be missing, too: the caps decide.
                if place.pointee.flags.contains(.marker) { return true }
                isBegun = true
            }
        }
        return summary.spatialLayer > Int(caps.spatial) || !isBegun && summary.temporalLayer > Int(caps.temporal)
    }

    /// The highest layers that were forwarded of the picture of a packet that comes late.
    func caps(
        of record: UnsafePointer<PacketRecord>, _ layer: UnsafeMutablePointer<ReceiveLayer>,
        in range: UnsafeMutablePointer<NumberRange>
    ) -> LayerCaps {
        let caps = range.pointee.caps
        // A frame may have brought others although it is not its first packet that came first.
        guard selector.active.map({ Int($0) }) == layer.pointee.index else { return caps }
        return selector.caps(at: record.pointee.timestamp, else: caps)
    }

    /// Ends the picture or goes over to its next layer, where a packet that comes late ends a layer. The subscriber may not get the layers above,
    /// or the publisher have left them out.
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
