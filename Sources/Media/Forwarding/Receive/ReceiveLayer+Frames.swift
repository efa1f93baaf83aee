internal import MediaControl
internal import PayloadFormats
internal import Primitives

/// Frames, keyframes and frame size of one layer.
extension ReceiveLayer {
    /// Counts the frame that a packet belongs to, once.
    mutating func noteFrame(_ record: PacketRecord, at now: MonotonicTime) {
        let distance = record.timestamp &- countedFrame
        // Packets of an older frame are late; a step far back is a new timeline.
        guard countedFrame == .min || distance > 0 || distance < -900_000 else { return }
        countedFrame = record.timestamp
        frameCount &+= 1
        frames.frame(at: now)
        rates.frame(record, at: now)
    }

    /// Records where a keyframe lies.
    mutating func noteKeyframe(_ record: PacketRecord) {
        guard record.summary.isKeyframe || record.summary.startsKeyframe else {
            // A late earlier packet of the keyframe, or its parameter sets, begin it.
            if let last = lastKeyframe, last.timestamp == record.timestamp, record.sequence < last.firstSequence {
                let first = firstSequence(of: record)
                lastKeyframe?.firstSequence = first
            }
            return
        }
        if let last = lastKeyframe, last.timestamp == record.timestamp {
            if record.sequence < last.firstSequence {
                let first = firstSequence(of: record)
                lastKeyframe?.firstSequence = first
            }
            return
        }
        if let last = lastKeyframe, record.sequence < last.firstSequence { return }
        guard record.sequence > droppedUpTo else { return }
        let first = firstSequence(of: record)
        lastKeyframe = KeyframePosition(firstSequence: first, timestamp: record.timestamp, arrival: record.arrival)
        totals.keyframes &+= 1
        keyframes.keyframeStarted()
        nacks.forget(below: first)
    }

    /// The first packet with the timestamp of `record`: parameter sets precede the frame under the same timestamp.
    private func firstSequence(of record: PacketRecord) -> Int64 {
        var first = record.sequence
        while let before = history.record(first - 1), before.pointee.timestamp == record.timestamp { first -= 1 }
        return first
    }

    /// Stores the frame size and the layers that a keyframe announces; true when they changed.
    mutating func noteDimensions(_ dimensions: FrameDimensions?, spatialLayers told: UInt8) -> Bool {
        let isOther = told > 0 && Int(told) != spatialLayers
        if isOther {
            spatialLayers = Int(told)
            mostSpatialLayers = max(mostSpatialLayers, spatialLayers)
        }
        return noteDimensions(dimensions) || isOther && width > 0
    }

    private mutating func noteDimensions(_ dimensions: FrameDimensions?) -> Bool {
        guard let dimensions, dimensions.width != width || dimensions.height != height else { return false }
        width = dimensions.width
        height = dimensions.height
        return true
    }
}
