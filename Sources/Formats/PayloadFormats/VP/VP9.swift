import Primitives

/// The VP9 payload descriptor (RFC 9628 section 4.2).
///
/// ```text
///       0 1 2 3 4 5 6 7
///      +-+-+-+-+-+-+-+-+
///      |I|P|L|F|B|E|V|Z|  P: refers to earlier pictures; B, E: start and end of a layer frame
///      +-+-+-+-+-+-+-+-+
/// I:   |M| PICTURE ID  |  7 bits, or 15 with M
///      +-+-+-+-+-+-+-+-+
/// L:   | TID |U| SID |D|  U: may switch up here; D: refers to the spatial layer below
///      +-+-+-+-+-+-+-+-+
///      |   TL0PICIDX   |  not in flexible mode
///      +-+-+-+-+-+-+-+-+
/// P,F: | P_DIFF      |N|  up to three times
///      +-+-+-+-+-+-+-+-+
/// V:   | SS            |
/// ```
public enum VP9 {
    /// Summarises a payload; nil when it is shorter than its descriptor says or has no data. Layers always come from the payload; frame number and indications
    /// from `descriptor` if there is one.
    public static func summary(
        of payload: RawSpan, marker: Bool, descriptor: DependencyDescriptor? = nil
    ) -> PayloadSummary? {
        let count = payload.byteCount
        guard count > 0 else { return nil }
        let first = payload.readUInt8(0)
        let isPredicted = first & 0x40 != 0
        let numbers = FrameNumbers(vp9: payload)
        guard numbers.end >= 0 else { return nil }
        var summary = PayloadSummary()
        summary.note(numbers)
        summary.isFlexible = first & 0x10 != 0
        summary.isSwitchingPoint = true
        if numbers.layerOffset >= 0 {
            let byte = payload.readUInt8(numbers.layerOffset)
            summary.temporalLayer = Int(byte >> 5)
            summary.isSwitchingPoint = byte & 0x10 != 0
            summary.spatialLayer = Int(byte >> 1 & 7)
            summary.usesLowerSpatialLayer = byte & 1 != 0
        }
        guard let (offset, structure) = data(of: payload, behind: numbers) else { return nil }
        if let structure {
            summary.containsParameterSets = true
            summary.dimensions = structure.highestDimensions
            summary.spatialLayers = UInt8(structure.spatialLayers)
        }
        if let descriptor { summary.note(descriptor) }
        summary.startsFrame = first & 0x08 != 0
        summary.endsFrame = first & 0x04 != 0
        summary.endsPicture = marker
        summary.startsSpatialLayer = !isPredicted
        summary.isSwitchingPoint = summary.isSwitchingPoint || !isPredicted
        // A higher layer that refers to no earlier picture may also join a running stream: it is no keyframe of its own.
        summary.isKeyframe = !isPredicted && summary.spatialLayer == 0
        summary.startsKeyframe = summary.isKeyframe && summary.startsFrame
        if summary.startsKeyframe, summary.dimensions == nil {
            summary.dimensions = dimensions(ofKeyframe: payload, at: offset)
        }
        return summary
    }

    /// The length of the descriptor, which precedes the frame's data; nil when the payload is shorter than its descriptor says or has no data.
    public static func descriptorLength(of payload: RawSpan) -> Int? {
        let numbers = FrameNumbers(vp9: payload)
        return numbers.end >= 0 ? data(of: payload, behind: numbers)?.offset : nil
    }

    /// Where the frame's data is, after the frame numbers, references and structure.
    @inline(__always) private static func data(
        of payload: RawSpan, behind numbers: FrameNumbers
    ) -> (offset: Int, structure: ScalabilityStructure?)? {
        let first = payload.readUInt8(0)
        var offset = numbers.end
        let hasReferences = first & 0x50 == 0x50  // P and F
        if hasReferences, !skipReferences(payload, &offset) { return nil }
        var structure: ScalabilityStructure?
        if first & 0x02 != 0 {
            structure = ScalabilityStructure(payload, at: offset)
            guard let structure else { return nil }
            offset += structure.length
        }
        return offset < payload.byteCount ? (offset, structure) : nil
    }

    private static func skipReferences(_ payload: RawSpan, _ offset: inout Int) -> Bool {
        for _ in 0..<3 {
            guard offset < payload.byteCount else { return false }
            let byte = payload.readUInt8(offset)
            offset += 1
            if byte & 1 == 0 { return true }
        }
        return false  // A fourth reference is forbidden.
    }

    /// The profile, 0 to 3, in the uncompressed header at `offset` (VP9 bitstream specification section 6.2).
    public static func profile(of payload: RawSpan, at offset: Int) -> UInt8 {
        guard offset < payload.byteCount else { return 0 }
        let byte = payload.readUInt8(offset)
        return byte >> 5 & 1 | byte >> 3 & 2
    }

    /// Size in the uncompressed header of a keyframe (VP9 bitstream specification section 6.2).
    public static func dimensions(ofKeyframe payload: RawSpan, at offset: Int) -> FrameDimensions? {
        var bits = BitReader(offset: offset, length: payload.byteCount - offset)
        guard bits.bits(2, payload) == 2 else { return nil }
        let profile = bits.bits(1, payload) | bits.bits(1, payload) << 1
        if profile == 3 { bits.skip(1, payload) }
        // show_existing_frame, frame_type (0: key), show_frame, error_resilient_mode, then the sync code.
        guard !bits.bit(payload), !bits.bit(payload) else { return nil }
        bits.skip(2, payload)
        guard bits.bits(24, payload) == 0x498342 else { return nil }
        bits.skipVP9Colors(payload, profile: profile)
        let width = Int(bits.bits(16, payload)) + 1
        let height = Int(bits.bits(16, payload)) + 1
        return bits.isExhausted ? nil : FrameDimensions(width: width, height: height)
    }
}

extension VP9 {
    /// The scalability structure (RFC 9628 section 4.2.1): spatial layers and, without flexible mode, the pattern of
    /// temporal layers.
    ///
    /// ```text
    ///      +-+-+-+-+-+-+-+-+
    /// V:   | N_S |Y|G|-|-|-|
    /// Y:   | WIDTH, HEIGHT |  N_S + 1 times, 16 bits each
    /// G:   |      N_G      |
    /// N_G: | T   |U| R |-|-|  then R times P_DIFF
    ///      +-+-+-+-+-+-+-+-+
    /// ```
    public struct ScalabilityStructure: Sendable {
        /// Number of spatial layers, 1 to 8.
        public let spatialLayers: Int
        /// Bytes that it takes.
        public let length: Int
        /// Sizes from the lowest layer, where `hasDimensions`.
        public private(set) var dimensions = InlineArray<8, FrameDimensions>(repeating: .init(width: 0, height: 0))
        /// Whether sizes are signalled.
        public let hasDimensions: Bool

        /// Size of the highest layer.
        public var highestDimensions: FrameDimensions? { hasDimensions ? dimensions[spatialLayers - 1] : nil }

        /// Reads the structure at `start`; nil when it is cut off.
        public init?(_ payload: RawSpan, at start: Int) {
            let count = payload.byteCount
            guard start < count else { return nil }
            let first = payload.readUInt8(start)
            spatialLayers = Int(first >> 5) + 1
            hasDimensions = first & 0x10 != 0
            var offset = start + 1
            if hasDimensions {
                guard offset + 4 * spatialLayers <= count else { return nil }
                for layer in 0..<spatialLayers {
                    dimensions[layer].width = Int(payload.readUInt16(offset))
                    dimensions[layer].height = Int(payload.readUInt16(offset + 2))
                    offset += 4
                }
            }
            if first & 0x08 != 0 {
                guard offset < count else { return nil }
                let frames = Int(payload.readUInt8(offset))
                offset += 1
                for _ in 0..<frames {
                    guard offset < count else { return nil }
                    offset += 1 + Int(payload.readUInt8(offset) >> 2 & 3)
                }
                guard offset <= count else { return nil }
            }
            length = offset - start
        }
    }
}
