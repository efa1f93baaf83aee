public import MediaControl
public import PayloadFormats
internal import Primitives

/// Reads the payloads of one layer, as far as forwarding needs it, and keeps what later packets refer to.
struct PayloadReader {
    /// H.264 parameter sets in force.
    private(set) var parameterSets = ParameterSetCache()
    /// Reads the layer's dependency descriptors (AV1 and SVC); holds the template structure in force.
    private(set) var descriptors = DependencyDescriptorReader()
    /// Packets from here on arrived when the structure and the active targets in `descriptors` were in force.
    private(set) var targetsSince: Int64 = .min
    /// The newest packet that carried a structure, and the newest that carried a mask or a structure: those in an older packet, repaired later, are no longer
    /// in force.
    private var structureSince: Int64 = .min
    private var maskSince: Int64 = .min
    /// The descriptor that was requested last: all subscribers who get some of the layers request the same one.
    private var asked: (sequence: Int64, descriptor: DependencyDescriptor)?
    /// RED whose blocks are not Opus has arrived, so it is encrypted end to end, and any block that looks like RED does so by chance.
    private var carriesOpaqueRED = false

    /// What packet `sequence` reveals about its frame; nil when it is malformed. Stores parameter sets on the way. `highest`: of all packets received.
    ///
    /// With a dependency descriptor the payload of H.264 and AV1 decides nothing: it may be encrypted end to end.
    mutating func summarize(
        _ sequence: Int64, highest: Int64, _ codec: Codec, _ payload: UnsafeRawBufferPointer, _ marker: Bool,
        _ extensions: ReceivedExtensions, _ packet: UnsafeRawBufferPointer
    ) -> PayloadSummary? {
        var descriptor: DependencyDescriptor?
        if extensions.dependencyDescriptor.length > 0 {
            let start = extensions.dependencyDescriptor.offset
            let active = descriptors.activeDecodeTargets
            let value = packet.bytes.extracting(start..<(start + extensions.dependencyDescriptor.length))
            descriptor = read(sequence, value)
            if descriptor == nil, codec == .h264 || codec == .av1 {
                return PayloadSummary(mandatoryFieldsOf: value, marker: marker)
            }
            if let descriptor,
                descriptor.hasStructure && sequence == structureSince || descriptors.activeDecodeTargets != active
            {
                // All other packets arrived before this one, and may have been forwarded already.
                targetsSince = sequence == highest ? sequence : highest + 1
                asked = nil
            }
        }
        guard var summary = codec.payloadCodec.summary(of: payload.bytes, marker: marker, descriptor: descriptor) else {
            return nil
        }
        guard codec == .h264 else { return summary }
        if summary.containsParameterSets {
            keepParameterSets(payload)
        } else if summary.startsKeyframe {
            // No parameter set of this stream was ever seen, so it is encrypted, and its keyframes contain theirs.
            summary.containsParameterSets = descriptor != nil && !parameterSets.isComplete
            if summary.dimensions == nil { summary.dimensions = parameterSets.dimensions }
        }
        return summary
    }

    /// Stores the parameter sets of a description, for a stream that may carry none. Those in its packets replace them.
    mutating func learn(_ sets: [[UInt8]]) {
        for set in sets { set.withUnsafeBytes { keepParameterSets($0) } }
    }

    private mutating func read(_ sequence: Int64, _ value: RawSpan) -> DependencyDescriptor? {
        guard sequence >= structureSince else { return descriptors.peek(value) }
        guard let descriptor = descriptors.read(value, appliesMask: sequence >= maskSince) else { return nil }
        if descriptor.hasStructure { structureSince = sequence }
        if descriptor.hasStructure || descriptor.activeDecodeTargets != nil { maskSince = max(maskSince, sequence) }
        return descriptor
    }

    /// The dependency descriptor `value` of packet `sequence`, which has arrived; nil when it is malformed.
    mutating func descriptor(of sequence: Int64, _ value: RawSpan) -> DependencyDescriptor? {
        if let asked, asked.sequence == sequence { return asked.descriptor }
        guard let descriptor = descriptors.peek(value) else { return nil }
        asked = (sequence, descriptor)
        return descriptor
    }

    /// Whether RED that arrives is encrypted end to end; `isOpus`: of its primary block.
    mutating func isOpaqueRED(isOpus: Bool) -> Bool {
        carriesOpaqueRED = carriesOpaqueRED || !isOpus
        return carriesOpaqueRED
    }

    private mutating func keepParameterSets(_ payload: UnsafeRawBufferPointer) {
        let bytes = payload.bytes
        guard var units = H264.Units(bytes) else { return }
        while let unit = units.next(in: bytes) {
            // Fragmented sets would be larger than a packet; no encoder produces them.
            guard unit.isWhole, unit.length > 1 else { continue }
            let raw = UnsafeRawBufferPointer(rebasing: payload[unit.offset..<(unit.offset + unit.length)])
            if unit.type == H264.sequenceParameterSet {
                guard let set = SequenceParameterSet(bytes, unit) else { continue }
                parameterSets.insert(raw, isSequence: true, id: UInt32(set.id))
            } else if let id = H264.pictureParameterSetID(bytes, unit) {
                parameterSets.insert(raw, isSequence: false, id: id)
            }
        }
    }
}

extension Codec {
    /// The payload format of the codec.
    public var payloadCodec: PayloadCodec {
        switch self {
        case .opus: .opus
        case .red: .red
        case .vp8: .vp8
        case .vp9: .vp9
        case .h264: .h264
        case .av1: .av1
        case .otherAudio: .otherAudio
        }
    }
}
