import Primitives

/// Reads the dependency descriptors of one stream; keeps the last structure, without which no descriptor can be read.
///
/// Reading allocates only where a packet carries a structure (the first of a keyframe).
public struct DependencyDescriptorReader: Sendable {
    /// The structure in force; nil before the first keyframe.
    public private(set) var structure: DependencyStructure?
    /// The decode targets that the sender signals as active; all until it signals others.
    public private(set) var activeDecodeTargets: UInt32 = 0
    /// The highest spatial layer of the structure in force.
    public private(set) var highestSpatialLayer = 0
    /// The highest temporal layer of the structure in force.
    public private(set) var highestTemporalLayer = 0
    /// The highest layers of each decode target of the structure in force, stored here so that reading them needs no access to the structure's arrays.
    private var targetLayers = InlineArray<32, UInt8>(repeating: 0)

    /// A reader that has seen nothing.
    public init() {}

    /// Reads the extension's value; nil when it is malformed or its structure has not arrived. `appliesMask`: false for a packet that is older than the one
    /// whose mask of active decode targets is in force; that mask stays.
    public mutating func read(_ value: RawSpan, appliesMask: Bool = true) -> DependencyDescriptor? {
        guard let (descriptor, newStructure) = parse(value) else { return nil }
        let inForce = activeDecodeTargets
        // Makes all targets of the structure active.
        if let newStructure { adopt(newStructure) }
        if !appliesMask {
            activeDecodeTargets &= inForce
        } else if let mask = descriptor.activeDecodeTargets {
            activeDecodeTargets = mask
        }
        return descriptor
    }

    /// Reads `value` without changing any state; nil when it is malformed or its structure has not arrived.
    public func peek(_ value: RawSpan) -> DependencyDescriptor? { parse(value)?.0 }

    private func parse(_ value: RawSpan) -> (DependencyDescriptor, DependencyStructure?)? {
        guard value.byteCount >= 3 else { return nil }
        let first = value.readUInt8(0)
        var descriptor = DependencyDescriptor()
        descriptor.isFirstPacketInFrame = first & 0x80 != 0
        descriptor.isLastPacketInFrame = first & 0x40 != 0
        descriptor.templateID = Int(first & 0x3f)
        descriptor.frameNumber = value.readUInt16(1)
        var bits = BitReader(offset: 3, length: value.byteCount - 3)
        var custom = CustomFields()
        var newStructure: DependencyStructure?
        if value.byteCount > 3 {
            let hasStructure = bits.bit(value)
            let hasMask = bits.bit(value)
            custom.hasIndications = bits.bit(value)
            custom.hasReferences = bits.bit(value)
            custom.hasChains = bits.bit(value)
            if hasStructure {
                guard let read = DependencyStructure(&bits, value) else { return nil }
                newStructure = read
            }
            descriptor.maskPosition = bits.position
            if hasMask {
                guard let count = newStructure?.decodeTargetCount ?? structure?.decodeTargetCount else { return nil }
                descriptor.activeDecodeTargets = bits.bits(count, value)
            }
        }
        let isValid =
            if let newStructure {
                Self.define(&descriptor, newStructure, custom, &bits, value)
            } else if structure != nil {
                Self.define(&descriptor, structure!, custom, &bits, value)
            } else {
                false
            }
        guard isValid, !bits.isExhausted else { return nil }
        descriptor.bitCount = bits.position
        if let newStructure {
            descriptor.hasStructure = true
            descriptor.structureLayers = UInt8(newStructure.spatialLayerCount)
            descriptor.structureDimensions = newStructure.resolutions.last
        }
        return (descriptor, newStructure)
    }

    private mutating func adopt(_ new: DependencyStructure) {
        activeDecodeTargets = .max >> UInt32(32 - new.decodeTargetCount)
        highestSpatialLayer = new.templates.map(\.spatialLayer).max() ?? 0
        highestTemporalLayer = new.templates.map(\.temporalLayer).max() ?? 0
        for target in 0..<new.decodeTargetCount {
            targetLayers[target] = UInt8(new.targetSpatialLayers[target] << 4 | new.targetTemporalLayers[target])
        }
        structure = new
    }

    /// The active decode targets of a frame with the structure in force, and those of them within the layers up to `spatial` and `temporal`.
    public func targets(
        of descriptor: DependencyDescriptor, upToSpatialLayer spatial: UInt8, temporalLayer temporal: UInt8
    ) -> (active: UInt32, within: UInt32) {
        // A structure without a mask activates all targets, whatever arrived after it.
        let unmasked = descriptor.hasStructure ? .max >> UInt32(32 - descriptor.decodeTargetCount) : activeDecodeTargets
        let active = descriptor.activeDecodeTargets ?? unmasked
        var within: UInt32 = 0
        for target in 0..<descriptor.decodeTargetCount
        where targetLayers[target] >> 4 <= spatial && targetLayers[target] & 15 <= temporal {
            within |= 1 << UInt32(target)
        }
        return (active, active & within)
    }

    private struct CustomFields {
        var hasIndications = false
        var hasReferences = false
        var hasChains = false
    }

    /// Fills in the template, then the values that the packet overrides.
    private static func define(
        _ descriptor: inout DependencyDescriptor, _ structure: borrowing DependencyStructure, _ custom: CustomFields,
        _ bits: inout BitReader, _ value: RawSpan
    ) -> Bool {
        let index = (descriptor.templateID + 64 - structure.templateIDOffset) & 63
        guard index < structure.templates.count else { return false }
        descriptor.spatialLayer = structure.templates[index].spatialLayer
        descriptor.temporalLayer = structure.templates[index].temporalLayer
        descriptor.decodeTargetCount = structure.decodeTargetCount
        descriptor.ownTarget = structure.target(
            spatialLayer: descriptor.spatialLayer, temporalLayer: descriptor.temporalLayer)
        if let own = descriptor.ownTarget {
            descriptor.hasIndependentLayer = structure.independentTargets >> UInt32(own) & 1 != 0
        }
        if descriptor.spatialLayer < structure.resolutions.count {
            descriptor.dimensions = structure.resolutions[descriptor.spatialLayer]
        }
        if custom.hasIndications {
            for target in 0..<structure.decodeTargetCount {
                descriptor.decodeTargetIndications |= UInt64(bits.bits(2, value)) << (2 * UInt64(target))
            }
        } else {
            descriptor.decodeTargetIndications = structure.templates[index].decodeTargetIndications
        }
        if custom.hasReferences {
            guard readReferences(&descriptor, &bits, value) else { return false }
        } else {
            descriptor.referenceCount = structure.templates[index].references.count
            for reference in 0..<descriptor.referenceCount {
                descriptor.references[reference] = structure.templates[index].references[reference]
            }
        }
        if custom.hasChains { bits.skip(8 * structure.chainCount, value) }
        return true
    }

    private static func readReferences(
        _ descriptor: inout DependencyDescriptor, _ bits: inout BitReader, _ value: RawSpan
    ) -> Bool {
        while true {
            let size = Int(bits.bits(2, value))
            if size == 0 { return true }
            guard descriptor.referenceCount < DependencyDescriptor.maximumReferences else { return false }
            descriptor.references[descriptor.referenceCount] = UInt16(bits.bits(4 * size, value)) + 1
            descriptor.referenceCount += 1
        }
    }
}
