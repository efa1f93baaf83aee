import MediaControl
import PayloadFormats
import Primitives

/// The mask of active decode targets in a dependency descriptor, for a subscriber that gets some layers only.
///
/// A receiver that is not told waits for frames of the others, by their chains (AV1 RTP 1.0 appendix A.4). Every picture of the lowest layers
/// tells it, a keyframe's too, whose structure means all of them; so no packet's loss matters for long.
///
/// ```text
/// SentPacket's byte   |1| - |temporal|spatial|      7: no limit
/// ```
struct ToldTargets {
    /// In the byte: there is something to tell.
    static let flag: UInt8 = 0x80
    /// The byte for these layers.
    static func byte(_ caps: LayerCaps) -> UInt8 { flag | min(caps.temporal, 7) << 3 | min(caps.spatial, 7) }
    /// The byte that lifts all limits.
    static let all = byte(LayerCaps())

    private let descriptor: DependencyDescriptor
    private let mask: UInt32
    /// Bytes of the descriptor with its mask.
    let length: Int

    /// nil where the descriptor cannot be read, or says the same without a mask.
    init?(
        _ byte: UInt8, _ record: UnsafePointer<PacketRecord>, packet: UnsafeRawBufferPointer,
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
        where structure.targetSpatialLayers[target] <= Int(byte & 7)
            && structure.targetTemporalLayers[target] <= Int(byte >> 3 & 7)
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
    /// Lets the receiver know how the packet's layer hangs together with others: by its descriptor, or where it has none by joining them.
    @inline(__always)
    mutating func tellLayers(
        in sent: inout SentPacket, _ sequence: Int64, _ record: UnsafePointer<PacketRecord>,
        of layer: UnsafeMutablePointer<ReceiveLayer>
    ) {
        if wire.extensions[.dependencyDescriptor] != 0 {
            tellTargets(in: &sent, record)
        } else if tail.codec == .av1 {
            joinToBefore(&sent, sequence, record, of: layer)
        }
    }

    /// Lets the first packet of a picture of the lowest layers tell which decode targets there are.
    private mutating func tellTargets(in sent: inout SentPacket, _ record: UnsafePointer<PacketRecord>) {
        let summary = record.pointee.summary
        guard tail.codec != .vp8, summary.startsFrame, summary.spatialLayer == 0, summary.temporalLayer == 0 else {
            return
        }
        let byte = ToldTargets.byte(selector.caps)
        if byte != ToldTargets.all {
            sent.keyIndexDelta = byte
            selector.hasToldTargets = true
        } else if selector.hasToldTargets {
            // A keyframe's structure says the same.
            if summary.isKeyframe { selector.hasToldTargets = false } else { sent.keyIndexDelta = byte }
        }
    }
}
