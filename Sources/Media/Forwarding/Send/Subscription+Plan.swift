import MediaControl
import PayloadFormats
public import Primitives

// What is forwarded, and under which number. One walk over the packets of a turn for each subscription.

extension Subscription {
    /// Decides about the packets of this turn and appends what is to be written to `list`.
    ///
    /// May be called with no new packets when a held packet's time is over.
    public mutating func plan(_ track: PublishedTrack, at now: MonotonicTime, into list: inout WorkList<SentPacket>)
        -> Signals
    {
        guard isBound, !isPaused else { return [] }
        if isHeldBack {
            finishFrame(track, at: now, into: &list)
            guard awaitsPackets, track.arrivals.contains(where: { !$0.isGap }) else { return [] }
            // Once: where that decides nothing, the next look does.
            awaitsPackets = false
            return .wantsDecision
        }
        let before = list.count
        var signals: Signals = []
        if kind == .video {
            selector.look(at: track, now: now)
            if selector.seesMore {
                selector.seesMore = false
                signals.insert(.seesMore)
            }
            if held.isDue(at: now), selector.active >= 0 {
                let ends = heldEndsPicture(in: track.layer(Int(selector.active)))
                releaseHeld(endsPicture: ends, at: now, into: &list)
            }
            if selector.mayReplay { replay(track, at: now, into: &list) }
            for arrival in track.arrivals { signals.formUnion(takeVideo(arrival, of: track, at: now, into: &list)) }
            if selector.target >= 0, selector.needsKeyframe, !isRefused { signals.insert(.wantsKeyframe) }
        } else {
            for arrival in track.arrivals { signals.formUnion(takeAudio(arrival, of: track, at: now, into: &list)) }
        }
        if list.count > before, !hasStarted {
            hasStarted = true
            signals.insert(.started)
        }
        return signals
    }

    /// Lets the frame that is on its way end, and nothing after it.
    private mutating func finishFrame(
        _ track: PublishedTrack, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        guard selector.active >= 0 else { return }
        for arrival in track.arrivals where Int8(arrival.layer) == selector.active && !tail.isFrameComplete {
            forward(arrival, of: track.layer(Int(arrival.layer)), at: now, into: &list)
        }
        if tail.isFrameComplete || now - tail.arrival >= LayerSelector.patience { stop(track) }
    }

    /// The layer to be asked for a keyframe.
    public var wantedLayer: Int { max(0, Int(selector.target)) }

    // MARK: - Audio

    @inline(__always)
    private mutating func takeAudio(
        _ arrival: Arrival, of track: PublishedTrack, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) -> Signals {
        let layer = track.layer(Int(arrival.layer))
        if selector.active >= 0 {
            forward(arrival, of: layer, at: now, into: &list)
            return []
        }
        guard !arrival.isGap, let record = layer.pointee.history.record(arrival.sequence) else { return [] }
        guard formats[record.pointee.format].takes(record.pointee.flags) else { return refuse() }
        begin(layer, from: arrival.sequence, at: now, into: &list)
        forward(arrival, of: layer, at: now, into: &list)
        return []
    }

    /// The track's format is none of the subscriber's; told once a binding.
    private mutating func refuse() -> Signals {
        isRefused = true
        guard !toldNoCommonCodec else { return [] }
        toldNoCommonCodec = true
        return .noCommonCodec
    }

    // MARK: - Video

    @inline(__always)
    private mutating func takeVideo(
        _ arrival: Arrival, of track: PublishedTrack, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) -> Signals {
        let layer = track.layer(Int(arrival.layer))
        if Int8(arrival.layer) == selector.active {
            if selector.pending >= 0, endsPatience(arrival, of: layer, at: now),
                completeSwitch(of: track, at: now, into: &list)
            {
                return []
            }
            forward(arrival, of: layer, at: now, into: &list)
            guard tail.isFrameComplete else { return [] }
            if selector.pending >= 0 {
                completeSwitch(of: track, at: now, into: &list)
            } else if leftVideo.isEnding {
                if selector.target == selector.active { leftVideo.goOn() } else { stop(track) }
            }
            return []
        }
        guard !arrival.isGap, let record = layer.pointee.history.record(arrival.sequence) else { return [] }
        guard Int8(arrival.layer) == selector.target else {
            // A repaired packet of the layer that was left still has its number.
            forwardLate(arrival.sequence, of: layer, record: record, at: now, into: &list)
            return []
        }
        guard formats[record.pointee.format].isMapped else { return refuse() }
        isRefused = false
        if selector.pending == selector.target {
            if now - selector.pendingSince >= LayerSelector.patience { completeSwitch(of: track, at: now, into: &list) }
            return []
        }
        guard let start = keyframeStart(of: layer, arrival: arrival, record: record, at: now) else {
            forwardLate(arrival.sequence, of: layer, record: record, at: now, into: &list)
            return []
        }
        prepare(start, at: now)
        if selector.active < 0 || tail.isFrameComplete { completeSwitch(of: track, at: now, into: &list) }
        return []
    }

    /// Begins with a young keyframe from the history, where there is one.
    private mutating func replay(_ track: PublishedTrack, at now: MonotonicTime, into list: inout WorkList<SentPacket>)
    {
        guard selector.target >= 0 else { return }
        selector.mayReplay = false
        guard selector.target != selector.active, selector.pending < 0 else { return }
        let layer = track.layer(Int(selector.target))
        let newest = Arrival(sequence: layer.pointee.history.highest, layer: UInt8(selector.target), isGap: false)
        guard let record = layer.pointee.history.record(newest.sequence),
            let start = keyframeStart(of: layer, arrival: newest, record: record, at: now)
        else { return }
        prepare(start, at: now)
        if selector.active < 0 || tail.isFrameComplete { completeSwitch(of: track, at: now, into: &list) }
    }

    /// A keyframe to go over to is there.
    private mutating func prepare(_ start: Int64, at now: MonotonicTime) {
        selector.pending = selector.target
        selector.pendingStart = start
        selector.pendingSince = now
    }

    /// Where forwarding of a waited-for layer can begin; nil while it cannot.
    private func keyframeStart(
        of layer: UnsafeMutablePointer<ReceiveLayer>, arrival: Arrival, record: UnsafePointer<PacketRecord>,
        at now: MonotonicTime
    ) -> Int64? {
        guard let keyframe = layer.pointee.lastKeyframe, keyframe.timestamp <= record.pointee.timestamp,
            now - keyframe.arrival <= selector.replayLimit,
            let start = firstDecodable(of: keyframe, in: layer)
        else { return nil }
        // What the viewer has seen of this track is not shown again, be it in another layer or after a pause.
        if selector.active >= 0 || (!tail.isEmpty && tail.epoch == epoch) {
            guard tail.arrival - keyframe.arrival <= LayerSelector.patience else { return nil }
            if tail.layer == layer.pointee.index, start <= tail.sourceSequence { return nil }
        }
        // All that has come since must be there, or the receiver begins with a hole.
        guard arrival.sequence >= start else { return nil }
        for sequence in start...arrival.sequence where !layer.pointee.sequences.contains(sequence) { return nil }
        return start
    }

    /// The first packet of a keyframe that a decoder can begin with; delimiters before the parameter sets are of no use.
    private func firstDecodable(of keyframe: KeyframePosition, in layer: UnsafeMutablePointer<ReceiveLayer>) -> Int64? {
        var sequence = keyframe.firstSequence
        while let record = layer.pointee.history.record(sequence), record.pointee.timestamp == keyframe.timestamp {
            let mapping = formats[record.pointee.format]
            guard mapping.isMapped else { return nil }
            if record.pointee.summary.startsKeyframe {
                // An IDR without parameter sets is of no use before the sets have been seen.
                let lacksSets = mapping.codec == .h264 && !record.pointee.summary.containsParameterSets
                return lacksSets && !layer.pointee.parameterSets.isComplete ? nil : sequence
            }
            sequence += 1
        }
        return nil
    }

    /// Whether the active layer's frame is over, or will not be waited for any longer, when `arrival` comes.
    private func endsPatience(_ arrival: Arrival, of layer: UnsafeMutablePointer<ReceiveLayer>, at now: MonotonicTime)
        -> Bool
    {
        if now - selector.pendingSince >= LayerSelector.patience { return true }
        guard arrival.sequence > ranges.current.pointee.last, !arrival.isGap else { return false }
        guard let record = layer.pointee.history.record(arrival.sequence) else { return false }
        return record.pointee.timestamp != tail.sourceTimestamp
    }

    /// Goes over to the pending layer: everything of it from the keyframe on that has come so far. False where that is not there any more, and
    /// another keyframe must come.
    @discardableResult
    private mutating func completeSwitch(
        of track: PublishedTrack, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) -> Bool {
        let layer = track.layer(Int(selector.pending))
        let start = selector.pendingStart
        selector.pending = -1
        // Numbers that began anew since may be any way ahead.
        guard layer.pointee.history.record(start) != nil,
            layer.pointee.history.highest - start < SequenceTracker.window
        else { return false }
        if held.isHolding { releaseHeld(endsPicture: true, at: now, into: &list) }
        if selector.active >= 0 || leftVideo.isEnding { totals.switches += 1 }
        if leftVideo.isEnding || isSmaller(layer.pointee.index, in: track) { leftVideo.leave(at: highest + 1) }
        if selector.active >= 0 { rememberNumbers(of: track.layer(Int(selector.active))) }
        begin(layer, from: start, at: now, into: &list)
        for sequence in start...layer.pointee.history.highest {
            // Numbers that were used for padding are not stored; the next stored packet closes up.
            guard layer.pointee.history.record(sequence) != nil else {
                if layer.pointee.sequences.contains(sequence) { closeGap(sequence) }
                continue
            }
            let arrival = Arrival(sequence: sequence, layer: UInt8(layer.pointee.index), isGap: false)
            forward(arrival, of: layer, at: now, into: &list)
        }
        return true
    }
}
