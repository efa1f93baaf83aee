/// Writes dependency descriptors (AV1 RTP 1.0 appendix A.8) of one pattern: for each spatial layer a template of keyframes and one of each
/// temporal layer; each frame names the frames that it refers to. There are no chains.
struct DescriptorWriter {
    let pattern: LayerPattern
    let width: Int
    let height: Int

    /// Templates of one spatial layer.
    private var templates: Int { pattern.temporalLayers + 1 }
    private var targets: Int { pattern.spatialLayers * pattern.temporalLayers }

    /// The extension's value for a packet of `frame`.
    func descriptor(of frame: LayerPattern.Frame, isFirst: Bool, isLast: Bool) -> [UInt8] {
        var bits = Bits()
        bits.append(isFirst ? 1 : 0, 1)
        bits.append(isLast ? 1 : 0, 1)
        bits.append(frame.spatial * templates + (frame.isKey ? 0 : 1 + frame.temporal), 6)
        bits.append(Int(frame.number & 0xffff), 16)
        let hasStructure = isFirst && frame.isKey && frame.spatial == 0
        bits.append(hasStructure ? 1 : 0, 1)
        // No mask, no custom indications, custom references, no custom chains.
        bits.append(0b0010, 4)
        if hasStructure { appendStructure(to: &bits) }
        if frame.refersDown { bits.append(1 << 4 | 0, 6) }
        if let distance = frame.distance { bits.append(2 << 8 | (distance * pattern.spatialLayers - 1), 10) }
        bits.append(0, 2)
        return bits.bytes
    }

    private func appendStructure(to bits: inout Bits) {
        bits.append(0, 6)
        bits.append(targets - 1, 5)
        for template in 0..<(pattern.spatialLayers * templates) {
            let isLastOfLayer = template % templates == templates - 1
            // The next template: of the same layer, of the next temporal, of the next spatial one; none.
            let isFirstOfLayer = template % templates == 0
            let isLast = template == pattern.spatialLayers * templates - 1
            bits.append(isLast ? 3 : isLastOfLayer ? 2 : isFirstOfLayer ? 0 : 1, 2)
        }
        for spatial in 0..<pattern.spatialLayers {
            appendIndications(spatial: spatial, temporal: 0, isKey: true, to: &bits)
            for temporal in 0..<pattern.temporalLayers {
                appendIndications(spatial: spatial, temporal: temporal, isKey: false, to: &bits)
            }
        }
        bits.append(0, pattern.spatialLayers * templates)
        // ns(n) of 0 has as many bits as n has after its highest.
        bits.append(0, Int.bitWidth - 1 - (targets + 1).leadingZeroBitCount)
        bits.append(1, 1)
        for below in (0..<pattern.spatialLayers).reversed() {
            bits.append((width >> below) - 1, 16)
            bits.append((height >> below) - 1, 16)
        }
    }

    /// What a frame is to each decode target: 0 not part of it, 1 discardable, 2 switch, 3 required.
    private func appendIndications(spatial: Int, temporal: Int, isKey: Bool, to bits: inout Bits) {
        for target in 0..<targets {
            let targetSpatial = target / pattern.temporalLayers, targetTemporal = target % pattern.temporalLayers
            let isBelow = spatial < targetSpatial && (isKey || !pattern.refersUpInKeyframesOnly)
            if temporal > targetTemporal || !(spatial == targetSpatial || isBelow) {
                bits.append(0, 2)
            } else if isBelow {
                bits.append(3, 2)
            } else {
                bits.append(temporal > 0 && temporal == targetTemporal ? 1 : 2, 2)
            }
        }
    }
}

/// Bits, most significant first.
private struct Bits {
    private(set) var bytes: [UInt8] = []
    private var count = 0

    mutating func append(_ value: Int, _ length: Int) {
        for bit in (0..<length).reversed() {
            if count & 7 == 0 { bytes.append(0) }
            if value >> bit & 1 != 0 { bytes[count >> 3] |= 0x80 >> UInt8(count & 7) }
            count += 1
        }
    }
}
