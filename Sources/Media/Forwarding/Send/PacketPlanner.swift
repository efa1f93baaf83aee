import MediaControl
import PayloadFormats
import Primitives

/// Which packets of the bound track are forwarded to one subscriber: of which layer, from which keyframe on, and without which layers inside it. It walks once
/// over the packets of a turn; `OutputStream` numbers them.
///
/// ```text
/// no layer ──── keyframe of the target ────> active ──── keyframe of another target: pending ──── the frame ends ────> active
///     ^                                         │                                            └── or its patience ──┘
///     └──── paused, muted, held, larger video ended, format refused ────┘
/// ```
struct PacketPlanner: ~Copyable {
    private let kind: MediaKind
    private(set) var selector: LayerSelector
    /// The video that the last switch down left.
    private(set) var abandonedVideo = AbandonedVideo()
    private var formatMatch = FormatMatch.accepted
    /// How often another layer took over.
    private(set) var switches: UInt64 = 0

    init(_ kind: MediaKind, preference: LayerPreference) {
        self.kind = kind
        selector = LayerSelector(preference: preference)
    }

    // MARK: - What changes the choice

    /// Another track is bound.
    mutating func bind() {
        formatsChanged()
        abandonedVideo = AbandonedVideo()
        selector.reset()
    }

    /// No track is bound any more.
    mutating func unbind() { selector.reset() }

    /// Formats were negotiated: a refused one may be accepted now.
    mutating func formatsChanged() { formatMatch = .accepted }

    /// Stops forwarding until the next keyframe.
    mutating func stop(_ track: PublishedTrack, in output: inout OutputStream) {
        output.leave(activeLayer(of: track))
        selector.stop()
    }

    /// Sets another preference.
    mutating func setPreference(_ preference: LayerPreference) { selector.setPreference(preference) }

    /// No layer is started before `setBound`.
    mutating func awaitBound() { selector.awaitBound() }

    /// Sets what bandwidth allows.
    mutating func setBound(_ bound: LayerBound, of track: PublishedTrack, at now: MonotonicTime) {
        switch bound {
        case .unlimited, .nothing, .undecided: selector.setBound(nil)
        case .present: selector.setBound(nil, known: track.measuredLayers(at: now))
        case .upTo(let layer): selector.setBound(layer)
        }
    }

    /// Ends a video larger than the target after its current frame.
    mutating func endLarger(_ track: PublishedTrack, in output: inout OutputStream) {
        guard case .awaited(let target) = selector.next, isSmaller(Int(target), in: track) else { return }
        abandonedVideo.beginEnding()
        if output.numbering.tail.isFrameComplete { stop(track, in: &output) }
    }

    /// Checks the known layers; true when a keyframe is needed for the preference.
    mutating func look(at track: PublishedTrack, now: MonotonicTime) -> Bool {
        selector.look(at: track, now: now)
        return selector.needsKeyframe
    }

    /// The receiver lacks the packet with the output number `number`. `isGone`: it was sent, but is no longer stored.
    mutating func noteMissing(_ number: Int64, isGone: Bool) { selector.noteMissing(number, isGone: isGone) }

    /// Whether a keyframe repairs better than retransmissions, reported once; see `KeyframeRepair`.
    mutating func consumeRepair() -> Bool { selector.consumeRepair() }

    private func activeLayer(of track: PublishedTrack) -> UnsafeMutablePointer<ReceiveLayer>? {
        selector.active.map { track.layer(Int($0)) }
    }

    /// Whether a simulcast layer is a smaller video than the one being forwarded.
    private func isSmaller(_ layer: Int, in track: PublishedTrack) -> Bool {
        guard track.layerCount > 1, let active = selector.active else { return false }
        return track.rank(ofLayer: layer) < track.rank(ofLayer: Int(active))
    }

    // MARK: - The packets of a turn

    /// Decides about the packets of this turn and appends those to write to `list`.
    @inline(__always)
    mutating func plan(
        _ track: PublishedTrack, in section: inout SendSection, to output: inout OutputStream,
        at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) -> Subscription.Signals {
        var signals: Subscription.Signals = []
        guard kind == .video else {
            for arrival in track.arrivals {
                signals.formUnion(planAudio(arrival, of: track, in: &section, to: &output, at: now, into: &list))
            }
            return signals
        }
        selector.look(at: track, now: now)
        if selector.consumeFoundLayer() { signals.insert(.foundLayer) }
        if output.isHeldDue(at: now), let active = activeLayer(of: track) {
            output.releaseHeld(of: active, in: &section, at: now, into: &list)
        }
        if let target = selector.consumeReplay() {
            replay(target, of: track, in: &section, to: &output, at: now, into: &list)
        }
        for arrival in track.arrivals {
            signals.formUnion(planVideo(arrival, of: track, in: &section, to: &output, at: now, into: &list))
        }
        if selector.needsKeyframe, formatMatch != .refused { signals.insert(.wantsKeyframe) }
        return signals
    }

    /// Forwards the rest of the current frame, and nothing after it.
    mutating func finishFrame(
        _ track: PublishedTrack, in section: inout SendSection, to output: inout OutputStream,
        at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        guard let active = selector.active else { return }
        for arrival in track.arrivals where arrival.layer == active && !output.numbering.tail.isFrameComplete {
            forward(arrival, of: track.layer(Int(active)), in: &section, to: &output, at: now, into: &list)
        }
        if output.numbering.tail.isFrameComplete || now - output.numbering.tail.arrival >= LayerSelector.patience {
            stop(track, in: &output)
        }
    }

    // MARK: - Audio

    @inline(__always)
    private mutating func planAudio(
        _ arrival: Arrival, of track: PublishedTrack, in section: inout SendSection,
        to output: inout OutputStream, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) -> Subscription.Signals {
        let layer = track.layer(Int(arrival.layer))
        if selector.active != nil {
            forward(arrival, of: layer, in: &section, to: &output, at: now, into: &list)
            return []
        }
        guard !arrival.isGap, let record = layer.pointee.history.record(arrival.sequence) else { return [] }
        guard section[record.pointee.format].accepts(record.pointee.flags) else { return refuse() }
        let start = firstAudible(before: arrival.sequence, of: track, in: output)
        begin(layer, from: start, in: &section, to: &output, at: now, into: &list)
        for sequence in start...arrival.sequence where layer.pointee.history.record(sequence) != nil {
            let stored = Arrival(sequence: sequence, layer: arrival.layer, isGap: false)
            forward(stored, of: layer, in: &section, to: &output, at: now, into: &list)
        }
        return []
    }

    /// Where to begin: at the first word of a microphone that was withheld before, but with nothing that was sent already.
    private func firstAudible(before sequence: Int64, of track: PublishedTrack, in output: borrowing OutputStream)
        -> Int64
    {
        guard let speech = track.speechStart, speech < sequence else { return sequence }
        guard output.numbering.hasSentOfBinding else { return speech }
        return min(max(speech, output.numbering.tail.sourceSequence + 1), sequence)
    }

    /// The subscriber accepts none of the track's formats; reported once per binding.
    private mutating func refuse() -> Subscription.Signals {
        defer { formatMatch = .refused }
        return formatMatch == .accepted ? .noCommonCodec : []
    }

    // MARK: - Video

    @inline(__always)
    private mutating func planVideo(
        _ arrival: Arrival, of track: PublishedTrack, in section: inout SendSection,
        to output: inout OutputStream, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) -> Subscription.Signals {
        let layer = track.layer(Int(arrival.layer))
        if arrival.layer == selector.active {
            if case .prepared(let pending) = selector.next,
                endsPatience(of: pending, arrival, of: layer, in: output, at: now),
                completeSwitch(of: track, in: &section, to: &output, at: now, into: &list)
            {
                return []
            }
            forward(arrival, of: layer, in: &section, to: &output, at: now, into: &list)
            guard output.numbering.tail.isFrameComplete else { return [] }
            if case .prepared = selector.next {
                completeSwitch(of: track, in: &section, to: &output, at: now, into: &list)
            } else if abandonedVideo.isEnding {
                if case .same = selector.next {
                    abandonedVideo.cancelEnding()
                } else {
                    stop(track, in: &output)
                }
            }
            return []
        }
        guard !arrival.isGap, let record = layer.pointee.history.record(arrival.sequence) else { return [] }
        guard arrival.layer == selector.next.layer else {
            // A repaired packet of the former layer still has its number.
            forwardLate(arrival.sequence, record, of: layer, in: &section, to: &output, at: now, into: &list)
            return []
        }
        guard section[record.pointee.format].isMapped else { return refuse() }
        if formatMatch == .refused { formatMatch = .acceptedAgain }
        if case .prepared(let pending) = selector.next {
            if now - pending.since >= LayerSelector.patience {
                completeSwitch(of: track, in: &section, to: &output, at: now, into: &list)
            }
            return []
        }
        guard let start = keyframeStart(of: layer, arrival.sequence, record, in: &section, output, at: now) else {
            forwardLate(arrival.sequence, record, of: layer, in: &section, to: &output, at: now, into: &list)
            return []
        }
        prepare(start, of: track, in: &section, to: &output, at: now, into: &list)
        return []
    }

    /// Starts with a recent keyframe of `target` from the history, if there is one.
    private mutating func replay(
        _ target: UInt8, of track: PublishedTrack, in section: inout SendSection,
        to output: inout OutputStream, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        let layer = track.layer(Int(target))
        let newest = layer.pointee.history.highest
        guard let record = layer.pointee.history.record(newest),
            let start = keyframeStart(of: layer, newest, record, in: &section, output, at: now)
        else { return }
        prepare(start, of: track, in: &section, to: &output, at: now, into: &list)
    }

    /// Where forwarding of an awaited layer can start, whose packet `newest` has arrived; nil while it cannot.
    private func keyframeStart(
        of layer: UnsafeMutablePointer<ReceiveLayer>, _ newest: Int64, _ record: UnsafePointer<PacketRecord>,
        in section: inout SendSection, _ output: borrowing OutputStream, at now: MonotonicTime
    ) -> Int64? {
        guard let keyframe = layer.pointee.lastKeyframe, keyframe.timestamp <= record.pointee.timestamp,
            now - keyframe.arrival <= selector.replayLimit,
            let start = section.firstDecodable(of: keyframe, in: layer)
        else { return nil }
        // Frames of this track that the subscriber has seen are not sent again, neither in another layer nor after a pause.
        if selector.active != nil || output.numbering.hasSentOfBinding {
            let tail = output.numbering.tail
            guard tail.arrival - keyframe.arrival <= LayerSelector.patience else { return nil }
            if tail.layer == layer.pointee.index, start <= tail.sourceSequence { return nil }
        }
        // All packets since must have arrived, or the receiver would start with a gap.
        guard newest >= start else { return nil }
        for sequence in start...newest where !layer.pointee.sequences.contains(sequence) { return nil }
        return start
    }

    /// Switches to the keyframe of the target at `start`, or prepares the switch if the active layer is in the middle of a frame.
    private mutating func prepare(
        _ start: Int64, of track: PublishedTrack, in section: inout SendSection, to output: inout OutputStream,
        at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        selector.prepare(start, at: now)
        guard selector.active == nil || output.numbering.tail.isFrameComplete else { return }
        completeSwitch(of: track, in: &section, to: &output, at: now, into: &list)
    }

    /// Whether the active layer's frame has ended, or is no longer waited for, when `arrival` is processed.
    private func endsPatience(
        of pending: LayerSelector.PendingSwitch, _ arrival: Arrival, of layer: UnsafeMutablePointer<ReceiveLayer>,
        in output: borrowing OutputStream, at now: MonotonicTime
    ) -> Bool {
        if now - pending.since >= LayerSelector.patience { return true }
        guard !output.numbering.isLate(arrival.sequence), !arrival.isGap else { return false }
        guard let record = layer.pointee.history.record(arrival.sequence) else { return false }
        return record.pointee.timestamp != output.numbering.tail.sourceTimestamp
    }

    /// Switches to the pending layer: forwards all its packets from the keyframe on. False if the keyframe was overwritten, so that
    /// another one is needed.
    @discardableResult
    private mutating func completeSwitch(
        of track: PublishedTrack, in section: inout SendSection, to output: inout OutputStream,
        at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) -> Bool {
        guard let pending = selector.consumePending() else { return false }
        let layer = track.layer(Int(pending.layer))
        let start = pending.start
        // Numbers restarted since then may be any distance ahead.
        guard layer.pointee.history.record(start) != nil,
            layer.pointee.history.highest - start < SequenceTracker.window
        else { return false }
        output.endHeld(at: now, into: &list)
        if selector.active != nil || abandonedVideo.isEnding { switches += 1 }
        if abandonedVideo.isEnding || isSmaller(layer.pointee.index, in: track) {
            abandonedVideo.abandon(at: output.numbering.highest + 1)
        }
        output.remember(activeLayer(of: track))
        begin(layer, from: start, in: &section, to: &output, at: now, into: &list)
        for sequence in start...layer.pointee.history.highest {
            // Numbers used for padding are not stored; the next stored packet closes up.
            guard layer.pointee.history.record(sequence) != nil else {
                if layer.pointee.sequences.contains(sequence) { output.closeGap(sequence) }
                continue
            }
            let arrival = Arrival(sequence: sequence, layer: UInt8(layer.pointee.index), isGap: false)
            forward(arrival, of: layer, in: &section, to: &output, at: now, into: &list)
        }
        return true
    }

    /// Forwards `layer` from the packet at `start` on.
    private mutating func begin(
        _ layer: UnsafeMutablePointer<ReceiveLayer>, from start: Int64, in section: inout SendSection,
        to output: inout OutputStream, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        guard let record = layer.pointee.history.record(start) else { return }
        selector.begin(layer.pointee.index, at: record.pointee.timestamp)
        output.begin(layer, from: start, record, mapping: section[record.pointee.format], at: now, into: &list)
    }

    // MARK: - One packet

    /// Plans one packet of the active layer.
    @inline(__always)
    private mutating func forward(
        _ arrival: Arrival, of layer: UnsafeMutablePointer<ReceiveLayer>, in section: inout SendSection,
        to output: inout OutputStream, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        let sequence = arrival.sequence
        let isLate = output.numbering.isLate(sequence)
        if arrival.isGap {
            return isLate
                ? output.fill(Int(arrival.layer), sequence, at: now, into: &list) : output.closeGap(sequence)
        }
        guard let record = layer.pointee.history.record(sequence) else { return }
        if isLate {
            return forwardLate(sequence, record, of: layer, in: &section, to: &output, at: now, into: &list)
        }
        let mapping = section[record.pointee.format]
        let codec = output.numbering.tail.codec
        guard mapping.accepts(record.pointee.flags), kind == .audio || mapping.codec == codec else {
            // The publisher continues with a format that cannot follow the last one: wait for a keyframe in a format that can be sent.
            output.leave(layer)
            return selector.stop()
        }
        if kind == .video {
            let isNewFrame = record.pointee.timestamp != output.numbering.tail.sourceTimestamp
            switch selector.verdict(record, isNewFrame: isNewFrame, highest: output.numbering.highest) {
            case .forwarded: break
            case .aboveSpatialCap: return output.omit(sequence, record, of: layer, in: section, isFirst: false)
            case .aboveTemporalCap(let isFirst):
                return output.omit(sequence, record, of: layer, in: section, isFirst: isFirst)
            }
        }
        let announcement = self.announcement(with: record, of: layer, codec: codec, in: &section)
        output.append(
            sequence, record, of: layer, in: &section, caps: selector.caps, announcement: announcement, at: now,
            into: &list)
    }

    /// The announcement of available decode targets in the first packet of a frame of the lowest layers; nil: none.
    @inline(__always)
    private mutating func announcement(
        with record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>, codec: Codec,
        in section: inout SendSection
    ) -> LayerMark? {
        guard record.pointee.summary.hasDescriptor, section.hasDependencyDescriptor, codec != .vp8,
            record.pointee.summary.startsFrame, record.pointee.summary.spatialLayer == 0,
            record.pointee.summary.temporalLayer == 0
        else { return nil }
        return selector.announcement(atKeyframe: record.pointee.summary.isKeyframe, of: layer)
    }

    /// Forwards a late packet under the number reserved for it, once.
    private mutating func forwardLate(
        _ sequence: Int64, _ record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>,
        in section: inout SendSection, to output: inout OutputStream, at now: MonotonicTime,
        into list: inout WorkList<SentPacket>
    ) {
        guard let range = output.numbering.range(layer: layer.pointee.index, source: sequence) else { return }
        var caps = range.pointee.caps
        // A frame may have changed the layers even if its first packet did not arrive first.
        if selector.active.map({ Int($0) }) == layer.pointee.index {
            caps = selector.caps(at: record.pointee.timestamp, else: caps)
        }
        output.appendLate(
            sequence, record, of: layer, in: &section, range: range, caps: caps, at: now, into: &list)
    }
}

/// Whether the subscriber accepts the format that the publisher sends.
private enum FormatMatch {
    case accepted
    /// The subscriber does not, and that was reported: a keyframe would not help.
    case refused
    /// The subscriber accepts it again; another refusal is not reported.
    case acceptedAgain
}
