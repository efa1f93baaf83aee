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
        let start = Int(place.offset)
        let value = packet.bytes.extracting(start..<(start + Int(place.length)))
        guard let descriptor = layer.pointee.descriptor(of: record.pointee.sequence, value) else { return nil }
        let (active, within) = layer.pointee.descriptors.targets(
            of: descriptor, upToSpatialLayer: caps.spatial, temporalLayer: caps.temporal)
        if descriptor.hasStructure, within == active { return nil }
        self.descriptor = descriptor
        mask = within
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
