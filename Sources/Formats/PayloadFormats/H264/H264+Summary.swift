import Primitives

extension H264 {
    /// Summarises a payload; nil when it is malformed. If there is a descriptor, only that decides, and no payload is malformed.
    public static func summary(
        of payload: RawSpan, marker: Bool, descriptor: DependencyDescriptor?
    ) -> PayloadSummary? {
        if let descriptor { return summary(of: payload, marker: marker, by: descriptor) }
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
        return summary
    }

    /// The summary from the descriptor. The payload may be encrypted end to end, so it is examined for only one thing, which encrypted bytes do not show by
    /// chance: parameter sets in an aggregation whose lengths add up, at the start of a keyframe.
    private static func summary(
        of payload: RawSpan, marker: Bool, by descriptor: DependencyDescriptor
    ) -> PayloadSummary? {
        guard payload.byteCount > 0 else { return nil }
        var summary = PayloadSummary(descriptor, marker: marker)
        if summary.startsKeyframe, let set = aggregatedSequenceSet(in: payload) {
            summary.containsParameterSets = true
            summary.dimensions = set.dimensions
        }
        return summary
    }

    /// The sequence parameter set of an aggregation that holds a picture parameter set, too.
    private static func aggregatedSequenceSet(in payload: RawSpan) -> SequenceParameterSet? {
        guard payload.readUInt8(0) & 0x1f == aggregation, var units = Units(payload) else { return nil }
        var sequenceSet: SequenceParameterSet?
        var hasPictureSet = false
        while let unit = units.next(in: payload) {
            if unit.type == sequenceParameterSet { sequenceSet = SequenceParameterSet(payload, unit) }
            if unit.type == pictureParameterSet { hasPictureSet = true }
        }
        return hasPictureSet ? sequenceSet : nil
    }

    /// Whether first_mb_in_slice is 0: it is the first code of the slice header, and 0 is a single one bit.
    private static func isFirstSlice(_ unit: Unit, in payload: RawSpan) -> Bool {
        unit.dataOffset < payload.byteCount && payload.readUInt8(unit.dataOffset) & 0x80 != 0
    }
}
