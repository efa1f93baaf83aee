import Primitives

/// The template structure that a keyframe's dependency descriptor carries (AV1 RTP 1.0 appendix A.8.2).
public struct DependencyStructure: Sendable, Hashable {
    /// What frames of one kind have in common.
    public struct Template: Sendable, Hashable {
        /// Spatial layer.
        public internal(set) var spatialLayer: Int
        /// Temporal layer.
        public internal(set) var temporalLayer: Int
        /// Two bits a decode target.
        public internal(set) var decodeTargetIndications: UInt64 = 0
        /// How far back the references are.
        public internal(set) var references: [UInt16] = []
    }

    /// Added to the index of a template to get its id, modulo 64.
    public internal(set) var templateIDOffset = 0
    /// The templates, 1 to 64.
    public internal(set) var templates: [Template] = []
    /// Number of decode targets, 1 to 32.
    public internal(set) var decodeTargetCount = 0
    /// Highest spatial layer of each decode target.
    public internal(set) var targetSpatialLayers: [Int] = []
    /// Highest temporal layer of each decode target.
    public internal(set) var targetTemporalLayers: [Int] = []
    /// A bit for each decode target, from the lowest: set if every frame of its highest layers is discardable in it. A later frame that referred to it would
    /// belong to the same target, so none refers to another.
    private(set) var independentTargets: UInt32 = 0
    /// Number of chains, 0 to `decodeTargetCount`.
    public internal(set) var chainCount = 0
    /// The sizes of the spatial layers from the lowest; empty if not signalled.
    public internal(set) var resolutions: [FrameDimensions] = []

    /// Number of spatial layers.
    public var spatialLayerCount: Int { (templates.last?.spatialLayer ?? 0) + 1 }

    /// The decode target whose highest layers are these.
    public func target(spatialLayer: Int, temporalLayer: Int) -> Int? {
        for target in 0..<decodeTargetCount
        where targetSpatialLayers[target] == spatialLayer && targetTemporalLayers[target] == temporalLayer {
            return target
        }
        return nil
    }

    /// A structure of nothing.
    init() {}

    /// Reads a structure; nil when it is cut off or contradicts itself.
    init?(_ bits: inout BitReader, _ bytes: RawSpan) {
        templateIDOffset = Int(bits.bits(6, bytes))
        decodeTargetCount = Int(bits.bits(5, bytes)) + 1
        guard readLayers(&bits, bytes) else { return nil }
        for index in templates.indices {
            for target in 0..<decodeTargetCount {
                templates[index].decodeTargetIndications |= UInt64(bits.bits(2, bytes)) << (2 * UInt64(target))
            }
        }
        for index in templates.indices {
            while bits.bit(bytes) {
                guard templates[index].references.count < DependencyDescriptor.maximumReferences else { return nil }
                templates[index].references.append(UInt16(bits.bits(4, bytes)) + 1)
            }
        }
        guard !bits.isExhausted, readChains(&bits, bytes) else { return nil }
        findTargetLayers()
        findIndependentTargets()
        if bits.bit(bytes) {
            for _ in 0..<spatialLayerCount {
                let width = Int(bits.bits(16, bytes)) + 1
                resolutions.append(FrameDimensions(width: width, height: Int(bits.bits(16, bytes)) + 1))
            }
        }
        if bits.isExhausted { return nil }
    }

    private mutating func readLayers(_ bits: inout BitReader, _ bytes: RawSpan) -> Bool {
        var spatialLayer = 0
        var temporalLayer = 0
        while true {
            guard templates.count < 64, !bits.isExhausted else { return false }
            templates.append(Template(spatialLayer: spatialLayer, temporalLayer: temporalLayer))
            switch bits.bits(2, bytes) {
            case 0: break
            case 1: temporalLayer += 1
            case 2:
                temporalLayer = 0
                spatialLayer += 1
            default: return true
            }
            // Ids have 3 and 2 bits in AV1.
            guard temporalLayer < 8, spatialLayer < 4 else { return false }
        }
    }

    /// Which chain protects which target, and how far back its frames are, is skipped: nothing here follows a chain.
    private mutating func readChains(_ bits: inout BitReader, _ bytes: RawSpan) -> Bool {
        chainCount = Int(bits.nonSymmetric(UInt32(decodeTargetCount) + 1, bytes))
        guard chainCount > 0 else { return true }
        guard chainCount <= 32 else { return false }
        for _ in 0..<decodeTargetCount { _ = bits.nonSymmetric(UInt32(chainCount), bytes) }
        bits.skip(4 * chainCount * templates.count, bytes)
        return !bits.isExhausted
    }

    private mutating func findTargetLayers() {
        targetSpatialLayers = Array(repeating: 0, count: decodeTargetCount)
        targetTemporalLayers = targetSpatialLayers
        for template in templates {
            for target in 0..<decodeTargetCount
            where template.decodeTargetIndications >> (2 * UInt64(target)) & 3 != 0 {
                targetSpatialLayers[target] = max(targetSpatialLayers[target], template.spatialLayer)
                targetTemporalLayers[target] = max(targetTemporalLayers[target], template.temporalLayer)
            }
        }
    }

    private mutating func findIndependentTargets() {
        independentTargets = .max >> UInt32(32 - decodeTargetCount)
        for template in templates {
            guard let own = target(spatialLayer: template.spatialLayer, temporalLayer: template.temporalLayer) else {
                continue
            }
            // Switch and required have the high bit.
            let isNeeded = template.decodeTargetIndications >> (2 * UInt64(own)) & 2 != 0
            if isNeeded { independentTargets &= ~(1 << UInt32(own)) }
        }
    }
}
