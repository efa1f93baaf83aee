import MediaControl
import PayloadFormats
import Primitives

// AV1's spatial layers for a subscriber that negotiated no dependency descriptor: one frame per picture, see `AV1Joining`.

extension Subscription {
    /// The subscriber cannot distinguish AV1's layers.
    @inline(__always) var joinsLayers: Bool {
        numbering.tail.codec == .av1 && section.wire.extensions[.dependencyDescriptor] == 0
    }

    /// Joins a packet that begins a layer to the layer below.
    func joinToBefore(
        _ packet: inout SentPacket, _ sequence: Int64, _ record: UnsafePointer<PacketRecord>,
        of layer: UnsafeMutablePointer<ReceiveLayer>
    ) {
        guard record.pointee.summary.startsFrame, record.pointee.summary.spatialLayer > 0,
            continuesPicture(sequence, record, of: layer)
        else { return }
        packet.mark.join(.before)
    }

    /// Whether the packet before `sequence` is of the same picture and did not end it. If it is missing, that is likely.
    private func continuesPicture(
        _ sequence: Int64, _ record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>
    ) -> Bool {
        var before = sequence - 1
        while layer.pointee.sequences.contains(before) {
            if let neighbour = layer.pointee.history.record(before) {
                guard neighbour.pointee.timestamp == record.pointee.timestamp,
                    let range = numbering.range(layer: layer.pointee.index, source: before)
                else { return false }
                let place = ring.place(numbering.packet(before, in: range).sequence)
                return !(place?.pointee.flags.contains(.marker) ?? false)
            }
            before -= 1
        }
        return true
    }
}
