import MediaControl
import PayloadFormats
import Primitives

/// The mask of active decode targets in a dependency descriptor, for a subscriber that gets only some layers.
///
/// Without the mask a receiver waits for frames of the other layers, by their chains (AV1 RTP 1.0 appendix A.4). Every frame of the lowest layers
/// carries it, including keyframes, whose structure would activate all layers; so no single packet loss matters for long.
struct AnnouncedTargets {
    private let descriptor: DependencyDescriptor
    private let mask: UInt32
    /// Bytes of the descriptor with its mask.
    let length: Int

    /// nil if the descriptor cannot be read, or means the same without a mask.
    init?(
        _ caps: LayerCaps, _ record: UnsafePointer<PacketRecord>, packet: UnsafeRawBufferPointer,
        of layer: UnsafeMutablePointer<ReceiveLayer>
    ) {
        guard let place = record.pointee.extensions[.dependencyDescriptor] else { return nil }
        var reader = layer.pointee.descriptors
        let start = Int(place.offset)
        guard let descriptor = reader.read(packet.bytes.extracting(start..<(start + Int(place.length)))),
            let structure = reader.structure
        else { return nil }
        var mask: UInt32 = 0
        for target in 0..<structure.decodeTargetCount
        where structure.targetSpatialLayers[target] <= Int(caps.spatial)
            && structure.targetTemporalLayers[target] <= Int(caps.temporal)
        {
            mask |= 1 << UInt32(target)
        }
        mask &= reader.activeDecodeTargets
        if descriptor.hasStructure, mask == reader.activeDecodeTargets { return nil }
        self.descriptor = descriptor
        self.mask = mask
        length = DependencyDescriptorRewriter.length(of: descriptor, settingMask: true)
    }

    /// Writes the descriptor at `place` of `packet` with its mask.
    func write(_ packet: UnsafeRawBufferPointer, _ place: ExtensionLocation, to value: UnsafeMutableRawBufferPointer) {
        let start = Int(place.offset)
        _ = DependencyDescriptorRewriter.write(
            packet.bytes.extracting(start..<(start + Int(place.length))), descriptor, activeDecodeTargets: mask,
            to: value, at: 0)
    }
}

extension Subscription {
    /// Marks how the packet's layer depends on others: in its descriptor, or without one by joining the layers.
    @inline(__always)
    mutating func markLayers(
        in sent: inout SentPacket, _ sequence: Int64, _ record: UnsafePointer<PacketRecord>,
        of layer: UnsafeMutablePointer<ReceiveLayer>
    ) {
        if section.wire.extensions[.dependencyDescriptor] != 0 {
            announceTargets(in: &sent, record)
        } else if numbering.tail.codec == .av1 {
            joinToBefore(&sent, sequence, record, of: layer)
        }
    }

    /// Lets the first packet of a frame of the lowest layers announce the available decode targets.
    private mutating func announceTargets(in sent: inout SentPacket, _ record: UnsafePointer<PacketRecord>) {
        let summary = record.pointee.summary
        guard numbering.tail.codec != .vp8, summary.startsFrame, summary.spatialLayer == 0, summary.temporalLayer == 0
        else {
            return
        }
        if let mark = selector.announcement(atKeyframe: summary.isKeyframe) { sent.mark = mark }
    }
}
