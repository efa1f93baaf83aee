import Primitives

extension H264 {
    /// Summarises a payload; nil when it is malformed. Layers come from the descriptor if there is one.
    public static func summary(
        of payload: RawSpan, marker: Bool, descriptor: DependencyDescriptor?
    ) -> PayloadSummary? {
        guard var units = Units(payload) else { return nil }
        var summary = PayloadSummary()
        summary.endsFrame = marker
        summary.endsPicture = marker
        summary.isSwitchingPoint = true
        var isReferred = false
        var sawRefresh = false
        var sawSequence = false
        while let unit = units.next(in: payload) {
            if unit.referenceIDC != 0 { isReferred = true }
            switch unit.type {
            case sequenceParameterSet:
                sawSequence = sawSequence || unit.isStart
                summary.containsParameterSets = true
                summary.startsFrame = summary.startsFrame || unit.isStart
                if unit.isWhole, let set = SequenceParameterSet(payload, unit) { summary.dimensions = set.dimensions }
            case pictureParameterSet:
                summary.containsParameterSets = true
                summary.startsFrame = summary.startsFrame || unit.isStart
            case supplementalInformation, accessUnitDelimiter:
                summary.startsFrame = summary.startsFrame || unit.isStart
            case slice, 2, instantaneousRefresh:
                let startsPicture = unit.isStart && isFirstSlice(unit, in: payload)
                summary.startsFrame = summary.startsFrame || startsPicture
                if unit.type == instantaneousRefresh {
                    summary.isKeyframe = true
                    sawRefresh = sawRefresh || startsPicture
                }
            default: break
            }
        }
        summary.startsKeyframe = sawSequence || sawRefresh
        summary.startsSpatialLayer = summary.startsKeyframe
        summary.isDiscardable = !isReferred
        if let descriptor { summary.apply(descriptor) }
        return summary
    }

    /// Whether first_mb_in_slice is 0: it is the first code of the slice header, and 0 is a single one bit.
    private static func isFirstSlice(_ unit: Unit, in payload: RawSpan) -> Bool {
        unit.dataOffset < payload.byteCount && payload.readUInt8(unit.dataOffset) & 0x80 != 0
    }
}
