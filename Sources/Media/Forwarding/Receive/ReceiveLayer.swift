internal import MediaControl
internal import PayloadFormats
public import Primitives
internal import RTP

/// One layer (simulcast encoding, or the only stream) of a published track: everything about one media SSRC and the retransmissions that belong to it. Flat
/// state; the track owns it and lends pointers. State that packets read is read in place (`mutating`, see `Subscription`).
public struct ReceiveLayer: ~Copyable {
    /// Position in the description's encodings; constant for the track's lifetime.
    let index: Int
    /// Its name and its SSRCs.
    private(set) var sources: LayerSources
    private(set) var reception = LayerReception()
    private var timeline = LayerTimeline()
    /// The layer's packets.
    private(set) var history: PacketHistory
    private var payloads = PayloadReader()
    private var keyframeLog = KeyframeLog()
    /// Requests to the sender.
    var keyframes: KeyframeRequester
    private(set) var rates = LayerRates()
    private(set) var frames = FrameCounter()
    private(set) var size = LayerSize()
    /// Announcements of its size.
    var sizeNews = NewsLimit()
    /// When the last media packet (no padding, no retransmission) arrived; `.zero` before the first.
    private(set) var lastMedia = MonotonicTime.zero
    /// The sender sent an RTCP BYE and nothing since.
    private(set) var hasEnded = false
    /// The next stored packet follows a part of the stream that was not stored (mute).
    private var needsDiscontinuity = false
    /// Flags of a restart of the numbering whose first packets were not stored, for example because they were padding.
    private var restart: PacketRecord.Flags = []
    private(set) var totals = LayerTotals()
    /// How many packets of earlier sources stayed missing after repair, and how many were repaired.
    private var formerLoss: (missing: UInt64, repaired: UInt64) = (0, 0)

    init(index: Int, encoding: EncodingDescription, kind: MediaKind, isScreen: Bool) {
        self.index = index
        sources = LayerSources(encoding)
        history = PacketHistory(kind == .audio ? .audio : .video)
        keyframes = KeyframeRequester(isScreen: isScreen)
    }

    // MARK: - Packets

    /// The extended sequence number of a packet, which is marked as received; for a useless packet, the reason why it has none.
    mutating func number(
        _ number: UInt16, isRepaired: Bool, repair: LossRepair, at now: MonotonicTime, flags: inout PacketRecord.Flags
    ) -> LayerReception.Outcome {
        let outcome = reception.receive(number, isRepaired: isRepaired, repair: repair, at: now, flags: &flags)
        if case .restarted = outcome {
            keyframeLog.restart()
            restart.formUnion(flags.intersection([.discontinuity, .newTimeline]))
        }
        return outcome
    }

    /// The numbering restarted, and no packet was stored since then: the distance to the last number means nothing.
    var isRestarting: Bool { !restart.isEmpty }

    /// The flags of a restart, for the first packet that is stored after it.
    @inline(__always) mutating func consumeRestart() -> PacketRecord.Flags {
        guard !restart.isEmpty else { return [] }
        defer { restart = [] }
        return restart
    }

    /// Packet `sequence` is dropped because the track is muted.
    mutating func dropMuted(_ sequence: Int64) {
        needsDiscontinuity = true
        keyframeLog.dropped(sequence)
    }

    /// Whether packet `sequence` is the first after a part of the stream that was not stored; only once.
    mutating func consumeDiscontinuity(at sequence: Int64) -> Bool {
        guard needsDiscontinuity, sequence == reception.sequences.highest else { return false }
        needsDiscontinuity = false
        return true
    }

    /// What packet `sequence` reveals about its frame; nil when it is malformed.
    mutating func summarize(
        _ sequence: Int64, _ codec: Codec, _ payload: UnsafeRawBufferPointer, _ marker: Bool,
        _ extensions: ReceivedExtensions, _ packet: UnsafeRawBufferPointer
    ) -> PayloadSummary? {
        payloads.summarize(
            sequence, highest: reception.sequences.highest, codec, payload, marker, extensions, packet)
    }

    /// Stores the parameter sets of a description; see `PayloadReader`.
    mutating func learn(_ parameterSets: [[UInt8]]) { payloads.learn(parameterSets) }

    /// Whether RED that arrives is encrypted end to end; `isOpus`: of its primary block.
    mutating func isOpaqueRED(isOpus: Bool) -> Bool { payloads.isOpaqueRED(isOpus: isOpus) }

    /// The extended form of an RTP timestamp, nearest to the newest one.
    mutating func extend(_ timestamp: UInt32) -> Int64 { timeline.extend(timestamp) }

    /// Stores a packet.
    @inline(__always) mutating func store(_ packet: UnsafeRawBufferPointer, _ record: PacketRecord) {
        history.insert(packet, record)
    }

    /// Measures a stored packet and the frame that it belongs to; true when its size or its layers are others than before.
    mutating func observe(_ record: PacketRecord, _ codec: Codec, clockRate: Int64, at now: MonotonicTime) -> Bool {
        totals.bytes &+= UInt64(record.length)
        rates.packet(record, at: now)
        if record.flags.contains(.repaired) {
            totals.repaired &+= 1
        } else {
            totals.packets &+= 1
            lastMedia = now
            hasEnded = false
            reception.measureJitter(timestamp: record.timestamp, at: now, clockRate: clockRate)
        }
        if frames.note(record.timestamp, at: now) { rates.frame(record, at: now) }
        if let start = keyframeLog.note(record, in: history) { begin(start, codec) }
        return size.note(record.summary.dimensions, spatialLayers: record.summary.spatialLayers)
    }

    /// A keyframe arrives: packets before it are no longer needed, unless its own beginning is missing, which is requested again.
    private mutating func begin(_ start: KeyframeLog.Start, _ codec: Codec) {
        guard start.isCertain else { return reception.keyframeMayBegin(at: start.sequence) }
        if start.isNew { totals.keyframes &+= 1 }
        let missing = reception.missingRun(before: start.sequence)
        guard missing == start.sequence || isBeginning(start.sequence, codec) else {
            return reception.forgetMissing(below: missing)
        }
        keyframes.keyframeStarted()
        reception.keyframeBegins(at: start.sequence)
    }

    /// Whether no part of a keyframe can precede its packet `sequence`. In H.264 parameter sets may precede it, and no later packet shows that.
    private func isBeginning(_ sequence: Int64, _ codec: Codec) -> Bool {
        guard let summary = history.record(sequence)?.pointee.summary, summary.startsKeyframe else { return false }
        return codec != .h264 || summary.containsParameterSets || summary.hasDescriptor
    }

    /// The track is muted.
    mutating func mute() {
        keyframes.cancel()
        keyframeLog.forget()
    }

    /// Packets that are missing after repair, of all sources.
    var unrepaired: UInt64 {
        formerLoss.missing + UInt64(max(0, reception.lost - Int64(totals.repaired - formerLoss.repaired)))
    }

    // MARK: - Sources

    /// Packets name the layer so from now on.
    mutating func rename(_ rid: ShortText) { sources.rename(rid) }

    /// Makes `ssrc` the layer's stream, or that of its retransmissions, from now on.
    mutating func bind(_ ssrc: UInt32, isRTX: Bool) {
        guard !isRTX else { return sources.changeRTX(to: ssrc) }
        sources.change(to: ssrc, isReplaced: reception.sequences.hasStarted)
        guard reception.sequences.hasStarted else { return }
        formerLoss = (unrepaired, totals.repaired)
        reception.changeSource()
        timeline.changeSource()
    }

    /// Applies a sender report.
    mutating func received(_ report: SenderReport, at now: MonotonicTime) {
        timeline.received(ntp: report.ntpTimestamp, timestamp: report.rtpTimestamp, at: now)
    }

    /// The sender sent a BYE. The SSRC may return.
    mutating func end() { hasEnded = true }

    // MARK: - Feedback

    /// When this layer has feedback to send.
    var nextFeedback: MonotonicTime {
        mutating get {
            guard sources.ssrc != nil else { return .distantFuture }
            return reception.hasLostForGood ? .zero : min(reception.nextRequest, keyframes.nextDue)
        }
    }

    /// Packets arrived and were discarded unread.
    mutating func interrupt() { reception.interrupt() }

    /// The time from requesting a packet to its retransmission, if it is unambiguous.
    mutating func answered(_ number: UInt16, at now: MonotonicTime) -> TimeSpan? {
        reception.answered(number, at: now)
    }

    /// Writes the wire numbers to request at `now` to `output`; returns how many.
    mutating func consumeMissing(
        at now: MonotonicTime, roundTrip: TimeSpan, repair: LossRepair,
        into output: UnsafeMutableBufferPointer<UInt16>
    ) -> Int {
        let count = reception.consumeMissing(at: now, roundTrip: roundTrip, repair: repair, into: output)
        totals.nacks &+= UInt64(count)
        return count
    }

    /// Whether a keyframe must replace packets that were given up; only once.
    mutating func consumeLoss() -> Bool { reception.consumeLoss() }

    /// Whether to send a keyframe request now; counts it as sent.
    mutating func consumeKeyframeRequest(at now: MonotonicTime) -> Bool {
        guard keyframes.consumeDue(at: now) else { return false }
        totals.keyframeRequests &+= 1
        return true
    }

    /// The report block about the stream.
    mutating func makeReportBlock(ssrc: UInt32, at now: MonotonicTime) -> ReportBlock {
        reception.makeReportBlock(ssrc: ssrc, clock: timeline.clock, at: now)
    }
}

// MARK: - What others read

extension ReceiveLayer {
    /// The publisher's clock by its last sender report.
    public var clock: SenderClock? { timeline.clock }

    /// Bits per second over the last second.
    public func bitrate(at now: MonotonicTime) -> Bitrate { rates.bitrate(at: now) }

    /// The last keyframe; nil before the first.
    var lastKeyframe: KeyframePosition? { keyframeLog.last }

    /// Which packets have arrived.
    var sequences: SequenceTracker { @inline(__always) _read { yield reception.sequences } }

    /// H.264 parameter sets in force.
    var parameterSets: ParameterSetCache { @inline(__always) _read { yield payloads.parameterSets } }

    /// Reads the layer's dependency descriptors.
    var descriptors: DependencyDescriptorReader { @inline(__always) _read { yield payloads.descriptors } }

    /// The dependency descriptor `value` of packet `sequence`; see `PayloadReader`.
    mutating func descriptor(of sequence: Int64, _ value: RawSpan) -> DependencyDescriptor? {
        payloads.descriptor(of: sequence, value)
    }

    /// Whether `caps` leave out no layer of the structure in force.
    @inline(__always) func isWhole(below caps: LayerCaps) -> Bool {
        caps.spatial >= payloads.descriptors.highestSpatialLayer
            && caps.temporal >= payloads.descriptors.highestTemporalLayer
    }

    /// Packets from here on arrived when the structure and the active targets in `descriptors` were in force.
    var targetsSince: Int64 { payloads.targetsSince }

    /// Whether packet `sequence`, of the picture at `timestamp`, is followed by nothing, or by another picture. A missing next packet leaves
    /// it open, because it may be repaired.
    mutating func endsPicture(_ sequence: Int64, _ timestamp: Int64) -> Bool {
        var next = sequence + 1
        while next <= reception.sequences.highest, reception.sequences.contains(next) {
            if let record = history.record(next) { return record.pointee.timestamp != timestamp }
            next += 1
        }
        return next > reception.sequences.highest
    }

    /// The last keyframe's first packet, if it is at most `maximumAge` old and no packet since is missing: a new
    /// subscriber gets everything from there at once, instead of waiting for another keyframe.
    public func replayStart(at now: MonotonicTime, maximumAge: TimeSpan) -> Int64? {
        guard let keyframe = keyframeLog.last, now - keyframe.arrival <= maximumAge else { return nil }
        guard history.record(keyframe.firstSequence) != nil else { return nil }
        for sequence in keyframe.firstSequence...reception.sequences.highest
        where !reception.sequences.contains(sequence) {
            return nil
        }
        return keyframe.firstSequence
    }
}

/// Counters of a layer since the track began.
struct LayerTotals: Sendable {
    var packets: UInt64 = 0
    var bytes: UInt64 = 0
    var repaired: UInt64 = 0
    var nacks: UInt64 = 0
    var keyframeRequests: UInt64 = 0
    var keyframes: UInt64 = 0
}
