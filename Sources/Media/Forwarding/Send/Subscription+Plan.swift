import MediaControl
import PayloadFormats
public import Primitives

// Which packets are forwarded, and under which numbers. One walk over the packets of a turn for each subscription.

extension Subscription {
    /// Decides about the packets of this turn and appends the packets to write to `list`.
    ///
    /// May be called without new packets when a held packet is due.
    public mutating func plan(_ track: PublishedTrack, at now: MonotonicTime, into list: inout WorkList<SentPacket>)
        -> Signals
    {
        guard isBound, !isPaused else { return [] }
        if isHeldBack {
            finishFrame(track, at: now, into: &list)
            guard hold == .untilPackets, track.arrivals.contains(where: { !$0.isGap }) else { return [] }
            // Only once: if this leads to no decision, the next regular one does.
            hold = .byBandwidth
            return .wantsDecision
        }
        let before = list.count
        var signals: Signals = []
        if kind == .video {
            selector.look(at: track, now: now)
            if selector.consumeFoundLayer() { signals.insert(.foundLayer) }
            if held.isDue(at: now), let active = selector.active {
                let ends = heldEndsPicture(in: track.layer(Int(active)))
                releaseHeld(endsPicture: ends, at: now, into: &list)
            }
            replay(track, at: now, into: &list)
            for arrival in track.arrivals { signals.formUnion(planVideo(arrival, of: track, at: now, into: &list)) }
            if selector.target != nil, selector.needsKeyframe, formatMatch != .refused {
                signals.insert(.wantsKeyframe)
            }
        } else {
            for arrival in track.arrivals { signals.formUnion(planAudio(arrival, of: track, at: now, into: &list)) }
        }
        if list.count > before, !hasStarted {
            hasStarted = true
            signals.insert(.started)
        }
        return signals
    }

    /// Forwards the rest of the current frame, and nothing after it.
    private mutating func finishFrame(
        _ track: PublishedTrack, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        guard let active = selector.active else { return }
        for arrival in track.arrivals where arrival.layer == active && !numbering.tail.isFrameComplete {
            forward(arrival, of: track.layer(Int(arrival.layer)), at: now, into: &list)
        }
        if numbering.tail.isFrameComplete || now - numbering.tail.arrival >= LayerSelector.patience { stop(track) }
    }

    /// The layer to request a keyframe from.
    public var wantedLayer: Int { Int(selector.target ?? 0) }

    // MARK: - Audio

    @inline(__always)
    private mutating func planAudio(
        _ arrival: Arrival, of track: PublishedTrack, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) -> Signals {
        let layer = track.layer(Int(arrival.layer))
        if selector.active != nil {
            forward(arrival, of: layer, at: now, into: &list)
            return []
        }
        guard !arrival.isGap, let record = layer.pointee.history.record(arrival.sequence) else { return [] }
        guard section[record.pointee.format].takes(record.pointee.flags) else { return refuse() }
        let start = firstAudible(before: arrival.sequence, of: track)
        begin(layer, from: start, at: now, into: &list)
        for sequence in start...arrival.sequence where layer.pointee.history.record(sequence) != nil {
            forward(Arrival(sequence: sequence, layer: arrival.layer, isGap: false), of: layer, at: now, into: &list)
        }
        return []
    }

    /// Where to begin: at the first word of a microphone that was withheld until it began, but with nothing that was sent before.
    private func firstAudible(before sequence: Int64, of track: PublishedTrack) -> Int64 {
        guard let speech = track.speechStart, speech < sequence else { return sequence }
        return numbering.hasSentOfBinding ? min(max(speech, numbering.tail.sourceSequence + 1), sequence) : speech
    }

    /// The subscriber accepts none of the track's formats; reported once per binding.
    private mutating func refuse() -> Signals {
        defer { formatMatch = .refused }
        return formatMatch == .accepted ? .noCommonCodec : []
    }

    // MARK: - Video

    @inline(__always)
    private mutating func planVideo(
        _ arrival: Arrival, of track: PublishedTrack, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) -> Signals {
        let layer = track.layer(Int(arrival.layer))
        if arrival.layer == selector.active {
            if let pending = selector.pending, endsPatience(of: pending, arrival, of: layer, at: now),
                completeSwitch(of: track, at: now, into: &list)
            {
                return []
            }
            forward(arrival, of: layer, at: now, into: &list)
            guard numbering.tail.isFrameComplete else { return [] }
            if selector.pending != nil {
                completeSwitch(of: track, at: now, into: &list)
            } else if abandonedVideo.isEnding {
                if selector.target == selector.active { abandonedVideo.cancelEnding() } else { stop(track) }
            }
            return []
        }
        guard !arrival.isGap, let record = layer.pointee.history.record(arrival.sequence) else { return [] }
        guard arrival.layer == selector.target else {
            // A repaired packet of the former layer still has its number.
            forwardLate(arrival.sequence, of: layer, record: record, at: now, into: &list)
            return []
        }
        guard section[record.pointee.format].isMapped else { return refuse() }
        if formatMatch == .refused { formatMatch = .acceptedAgain }
        if let pending = selector.pending, pending.layer == selector.target {
            if now - pending.since >= LayerSelector.patience { completeSwitch(of: track, at: now, into: &list) }
            return []
        }
        guard let start = keyframeStart(of: layer, arrival: arrival, record: record, at: now) else {
            forwardLate(arrival.sequence, of: layer, record: record, at: now, into: &list)
            return []
        }
        selector.prepare(start, at: now)
        if selector.active == nil || numbering.tail.isFrameComplete { completeSwitch(of: track, at: now, into: &list) }
        return []
    }

    /// Starts with a recent keyframe from the history, if there is one.
    private mutating func replay(_ track: PublishedTrack, at now: MonotonicTime, into list: inout WorkList<SentPacket>)
    {
        guard let target = selector.consumeReplay() else { return }
        let layer = track.layer(Int(target))
        let newest = Arrival(sequence: layer.pointee.history.highest, layer: target, isGap: false)
        guard let record = layer.pointee.history.record(newest.sequence),
            let start = keyframeStart(of: layer, arrival: newest, record: record, at: now)
        else { return }
        selector.prepare(start, at: now)
        if selector.active == nil || numbering.tail.isFrameComplete { completeSwitch(of: track, at: now, into: &list) }
    }

    /// Where forwarding of an awaited layer can start; nil while it cannot.
    private func keyframeStart(
        of layer: UnsafeMutablePointer<ReceiveLayer>, arrival: Arrival, record: UnsafePointer<PacketRecord>,
        at now: MonotonicTime
    ) -> Int64? {
        guard let keyframe = layer.pointee.lastKeyframe, keyframe.timestamp <= record.pointee.timestamp,
            now - keyframe.arrival <= selector.replayLimit,
            let start = firstDecodable(of: keyframe, in: layer)
        else { return nil }
        // Frames of this track that the subscriber has seen are not sent again, neither in another layer nor after a pause.
        if selector.active != nil || numbering.hasSentOfBinding {
            guard numbering.tail.arrival - keyframe.arrival <= LayerSelector.patience else { return nil }
            if numbering.tail.layer == layer.pointee.index, start <= numbering.tail.sourceSequence { return nil }
        }
        // All packets since must have arrived, or the receiver would start with a gap.
        guard arrival.sequence >= start else { return nil }
        for sequence in start...arrival.sequence where !layer.pointee.sequences.contains(sequence) { return nil }
        return start
    }

    /// The first packet of a keyframe that a decoder can start with; delimiters before the parameter sets are skipped.
    private func firstDecodable(of keyframe: KeyframePosition, in layer: UnsafeMutablePointer<ReceiveLayer>) -> Int64? {
        var sequence = keyframe.firstSequence
        while let record = layer.pointee.history.record(sequence), record.pointee.timestamp == keyframe.timestamp {
            let mapping = section[record.pointee.format]
            guard mapping.isMapped else { return nil }
            if record.pointee.summary.startsKeyframe {
                // An IDR without parameter sets is useless before the sets have arrived.
                let lacksSets = mapping.codec == .h264 && !record.pointee.summary.containsParameterSets
                return lacksSets && !layer.pointee.parameterSets.isComplete ? nil : sequence
            }
            sequence += 1
        }
        return nil
    }

    /// Whether the active layer's frame has ended, or is no longer waited for, when `arrival` is processed.
    private func endsPatience(
        of pending: LayerSelector.PendingSwitch, _ arrival: Arrival, of layer: UnsafeMutablePointer<ReceiveLayer>,
        at now: MonotonicTime
    ) -> Bool {
        if now - pending.since >= LayerSelector.patience { return true }
        guard !numbering.isLate(arrival.sequence), !arrival.isGap else { return false }
        guard let record = layer.pointee.history.record(arrival.sequence) else { return false }
        return record.pointee.timestamp != numbering.tail.sourceTimestamp
    }

    /// Switches to the pending layer: forwards all its packets from the keyframe on. False if the keyframe was overwritten, so that
    /// another one is needed.
    @discardableResult
    private mutating func completeSwitch(
        of track: PublishedTrack, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) -> Bool {
        guard let pending = selector.consumePending() else { return false }
        let layer = track.layer(Int(pending.layer))
        let start = pending.start
        // Numbers restarted since then may be any distance ahead.
        guard layer.pointee.history.record(start) != nil,
            layer.pointee.history.highest - start < SequenceTracker.window
        else { return false }
        if held.isHolding { releaseHeld(endsPicture: true, at: now, into: &list) }
        if selector.active != nil || abandonedVideo.isEnding { totals.switches += 1 }
        if abandonedVideo.isEnding || isSmaller(layer.pointee.index, in: track) {
            abandonedVideo.abandon(at: numbering.highest + 1)
        }
        if let active = selector.active { numbering.remember(track.layer(Int(active))) }
        begin(layer, from: start, at: now, into: &list)
        for sequence in start...layer.pointee.history.highest {
            // Numbers used for padding are not stored; the next stored packet closes up.
            guard layer.pointee.history.record(sequence) != nil else {
                if layer.pointee.sequences.contains(sequence) { numbering.closeGap(sequence) }
                continue
            }
            let arrival = Arrival(sequence: sequence, layer: UInt8(layer.pointee.index), isGap: false)
            forward(arrival, of: layer, at: now, into: &list)
        }
        return true
    }
}
