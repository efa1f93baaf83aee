public import MediaControl
public import Primitives

/// One track as a recorder receives it: its best layer as one continuous stream, as a viewer would get it, but without a path, a pacer or protection.
///
/// ```text
/// packets of a turn ── Subscription.plan, write ── RecordBatch
///                                                   full: nothing more until there is ample room, then a gap and the next keyframe
/// ```
public struct RecordedStream: ~Copyable {
    /// As described.
    public let description: RecordedStreamDescription
    private var subscription: Subscription
    private var planned = WorkList<SentPacket>(capacity: 64)
    /// The batch was full; packets are dropped.
    private var isDropping = false
    private var lastReport = MonotonicTime.zero
    private var lastRequest: MonotonicTime

    /// A stream of `track`, which begins with its next keyframe.
    public init(
        _ description: RecordedStreamDescription, of track: PublishedTrack, random: inout RandomSource,
        at now: MonotonicTime
    ) {
        self.description = description
        lastRequest = now
        subscription = Subscription(
            RecordedStreamFormat.subscription(to: track.description, as: description), random: &random)
        subscription.bind(track)
        _ = subscription.setBound(.unlimited, track: track, at: now)
    }

    /// The layer from which a keyframe is needed to start; nil for audio, or if a recent one suffices.
    public mutating func layerToRequest(of track: PublishedTrack, at now: MonotonicTime) -> Int? {
        guard subscription.lookForStart(track, at: now) else { return nil }
        return subscription.wantedLayer
    }

    /// The publisher's track was renegotiated.
    public mutating func trackUpdated(_ track: PublishedTrack) {
        subscription.update(RecordedStreamFormat.subscription(to: track.description, as: description), track: track)
    }

    /// Stops until the next keyframe: the track was muted or unmuted, or its parameter sets were replaced.
    public mutating func stop(_ track: PublishedTrack) { subscription.stop(track) }

    /// When held packets are due although nothing else arrives.
    public var heldUntil: MonotonicTime { mutating get { subscription.heldUntil } }

    /// Writes this turn's packets; returns the layer that should send a keyframe, if one should.
    public mutating func write(
        _ track: PublishedTrack, at now: MonotonicTime, into batch: inout RecordBatch
    ) -> Int? {
        if isDropping, !resume(at: now, into: &batch) { return nil }
        planned.removeAll()
        let signals = subscription.plan(track, at: now, into: &planned)
        let stamp = SendStamp(sendTime: 0, transportSequence: 0)
        for packet in planned.elements {
            guard let slot = batch.reserve(Subscription.maximumLength) else {
                drop(track)
                return nil
            }
            // The history has lost it: to the recorder it is a packet that did not arrive.
            guard let length = subscription.write(packet, of: track, stamp: stamp, at: now, into: slot) else {
                continue
            }
            batch.commit(
                RecordBatch.Header(kind: .packet, length: length, stream: description.id.rawValue, arrival: now))
        }
        report(of: track, into: &batch)
        if signals.contains(.wantsKeyframe) { return subscription.wantedLayer }
        return dueKeyframe(of: track, at: now)
    }

    private mutating func drop(_ track: PublishedTrack) {
        isDropping = true
        // An incomplete frame is useless, and so are frames that refer to it.
        subscription.stop(track)
    }

    /// Whether there is room again; the recorder is first notified that packets are missing.
    private mutating func resume(at now: MonotonicTime, into batch: inout RecordBatch) -> Bool {
        guard batch.hasAmpleRoom,
            batch.append(RecordBatch.Header(kind: .gap, stream: description.id.rawValue, arrival: now))
        else { return false }
        isDropping = false
        return true
    }

    /// Passes on a new sender report.
    private mutating func report(of track: PublishedTrack, into batch: inout RecordBatch) {
        guard let anchor = subscription.clockAnchor(of: track), anchor.arrival != lastReport else { return }
        let header = RecordBatch.Header(
            kind: .anchor, stream: description.id.rawValue, arrival: anchor.arrival, ntp: anchor.ntp,
            timestamp: anchor.timestamp)
        if batch.append(header) { lastReport = anchor.arrival }
    }

    /// The layer whose last keyframe is older than the interval; nil when none is.
    private mutating func dueKeyframe(of track: PublishedTrack, at now: MonotonicTime) -> Int? {
        let interval = description.keyframeInterval
        guard interval > .zero, let layer = subscription.layer, now - lastRequest >= interval,
            let keyframe = track.layer(layer).pointee.lastKeyframe, now - keyframe.arrival >= interval
        else { return nil }
        lastRequest = now
        return layer
    }
}
