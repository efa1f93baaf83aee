public import MediaControl
public import Primitives
public import RTP

/// One track as one subscriber receives it: flat state in contiguous storage, changed by index.
///
/// ```text
///                 plan                                   write
///  fresh packets ------> SentPacket (number, deltas) ---------> clear packet in the subscriber's run of slots
///                  |            |                       ^
///                  |            v                       | retransmission (NACK)
///                  |         OutputStream --------------+
///                  +-- keyframe needed, started, no common codec: `Signals`
/// ```
/// `plan` decides (`PacketPlanner`) and numbers (`OutputStream`); `write` renders (`SendSection`). The packets themselves stay in the track's history,
/// once for all subscribers.
///
/// Functions that packets and turns use only for reading are `mutating`, too. A function that borrows a large struct gets a copy of all of it on the stack
/// (Swift 6.3), unless it is inlined; one that may change it gets its address.
public struct Subscription: ~Copyable {
    /// What happened while packets were planned; the engine acts on it.
    public struct Signals: OptionSet, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }
        /// The target layer should send a keyframe.
        public static let wantsKeyframe = Self(rawValue: 1)
        /// The first packet of the subscription is being sent.
        public static let started = Self(rawValue: 2)
        /// The subscriber does not accept the track's format; reported once per binding.
        public static let noCommonCodec = Self(rawValue: 4)
        /// Packets arrive for which no bandwidth decision was made yet.
        public static let wantsDecision = Self(rawValue: 8)
        /// The publisher sends a layer that no decision knew; it is measured after `PublishedTrack.measuringTime`.
        public static let foundLayer = Self(rawValue: 16)
    }

    public let id: SubscriptionID
    public let kind: MediaKind

    private(set) var section: SendSection
    private(set) var planner: PacketPlanner
    private(set) var output: OutputStream
    private(set) var isBound = false
    public private(set) var isPaused: Bool
    private var hold = Hold.none
    private var hasStarted = false
    private var sent = SubscriptionTotals()
    private(set) var reports: SenderReportState

    /// `random` gives the first sequence numbers, below 2^15 so that both ends agree on the roll-over counter from the first
    /// packet on (RFC 3711 section 3.3.1).
    public init(_ description: SubscriptionDescription, random: inout RandomSource) {
        id = description.id
        kind = description.kind
        isPaused = description.paused
        planner = PacketPlanner(description.kind, preference: description.preference)
        output = OutputStream(
            description.kind, after: 0x10000 + Int64(random.next() & 0x3fff),
            keepsRepeats: description.rtxSSRC != nil || description.feedback.contains(.nack))
        section = SendSection(description, rtxNumber: UInt16(truncatingIfNeeded: random.next() & 0x3fff))
        reports = SenderReportState(cname: description.cname)
    }

    /// Prefetches the memory outside the struct that `plan` will use.
    @inline(__always) public mutating func prefetch() {
        section.prefetch()
        output.prefetch()
    }

    // MARK: - Its source

    /// Binds `track` to the section; the stream that the subscriber sees continues.
    public mutating func bind(_ track: PublishedTrack) {
        section.bind(track)
        planner.bind()
        output.beginBinding()
        reports.restart()
        isBound = true
    }

    /// Unbinds the track. Called while its packets still exist, so that the next track continues where it ended.
    public mutating func unbind(_ track: PublishedTrack) {
        guard isBound else { return }
        stop(track)
        isBound = false
        output.endBinding()
        planner.unbind()
    }

    /// Stops forwarding until the next keyframe. Also used when the track is unmuted, or its parameter sets are replaced.
    public mutating func stop(_ track: PublishedTrack) { planner.stop(track, in: &output) }

    /// Applies new formats, extensions or mid of an existing section; SSRCs and numbering stay.
    public mutating func update(_ description: SubscriptionDescription, track: PublishedTrack?) {
        section.update(description, track: track, highest: output.numbering.highest)
        planner.formatsChanged()
    }

    /// The publisher's track was renegotiated.
    public mutating func trackUpdated(_ track: PublishedTrack) {
        section.trackUpdated(track, highest: output.numbering.highest)
        planner.formatsChanged()
    }

    /// Publisher's clock to server's clock, 32.32 fixed point; nil before the publisher's first sender report.
    public var captureOffset: Int64? {
        get { section.captureOffset }
        set { section.captureOffset = newValue }
    }

    // MARK: - What may be sent

    /// Bandwidth does not allow even the lowest layer, or too many videos are subscribed to.
    public var isHeldBack: Bool { hold != .none }

    /// Pauses or resumes; true when there is something to start.
    public mutating func setPaused(_ paused: Bool, track: PublishedTrack?) -> Bool {
        guard paused != isPaused else { return false }
        isPaused = paused
        reports.restart()
        if paused, let track, isBound { stop(track) }
        return !paused && kind == .video && isBound
    }

    /// Sets another preference; true when it needs a keyframe of another layer.
    public mutating func setPreference(_ preference: LayerPreference, track: PublishedTrack?, at now: MonotonicTime)
        -> Bool
    {
        planner.setPreference(preference)
        guard let track, isShown else { return false }
        return planner.look(at: track, now: now)
    }

    /// A video is about to start or to change its size: wait until the bandwidth decision, or the largest layer would be
    /// asked for a keyframe that no subscriber can be sent.
    public mutating func awaitBound() {
        if kind == .video, isBound { planner.awaitBound() }
    }

    /// Sets what bandwidth allows; true when a keyframe is needed for it.
    public mutating func setBound(_ bound: LayerBound, track: PublishedTrack, at now: MonotonicTime) -> Bool {
        let wasHeldBack = isHeldBack
        hold = Hold(bound)
        planner.setBound(bound, of: track, at: now)
        guard isShown else { return false }
        if isHeldBack {
            // Not in the middle of a frame: `plan` stops at its end.
            if !wasHeldBack, layer == nil || output.numbering.tail.isFrameComplete { stop(track) }
            return false
        }
        return planner.look(at: track, now: now)
    }

    /// Checks the known layers before any packet of the turn; true when a keyframe is needed to start.
    public mutating func lookForStart(_ track: PublishedTrack, at now: MonotonicTime) -> Bool {
        guard isShown, !isHeldBack else { return false }
        return planner.look(at: track, now: now)
    }

    /// Ends a video larger than the decided one after its current frame: the path is full, and each further frame of it, few of which
    /// arrive, would precede the smaller one's keyframe in the queue.
    public mutating func endLarger(_ track: PublishedTrack) { planner.endLarger(track, in: &output) }

    /// A video that the subscriber has not paused.
    private var isShown: Bool { isBound && kind == .video && !isPaused }

    // MARK: - Planning

    /// Decides about the packets of this turn and appends the packets to write to `list`.
    ///
    /// May be called without new packets when a held packet is due.
    public mutating func plan(_ track: PublishedTrack, at now: MonotonicTime, into list: inout WorkList<SentPacket>)
        -> Signals
    {
        guard isBound, !isPaused else { return [] }
        if isHeldBack {
            planner.finishFrame(track, in: &section, to: &output, at: now, into: &list)
            guard hold == .untilPackets, track.arrivals.contains(where: { !$0.isGap }) else { return [] }
            // Only once: if this leads to no decision, the next regular one does.
            hold = .byBandwidth
            return .wantsDecision
        }
        let before = list.count
        var signals = planner.plan(track, in: &section, to: &output, at: now, into: &list)
        if list.count > before, !hasStarted {
            hasStarted = true
            signals.insert(.started)
        }
        return signals
    }

    /// Pads planned packets of one turn that differ by a few bytes to equal length; returns how many were padded.
    public mutating func level(_ items: UnsafeMutableBufferPointer<SentPacket>, of track: PublishedTrack) -> Int {
        section.level(items, of: track)
    }

    // MARK: - Writing

    /// Writes a planned packet of `track` for the first time; returns its length, or nil when the history has lost it.
    ///
    /// `slot` has room for `maximumLength` bytes.
    public mutating func write(
        _ planned: SentPacket, of track: PublishedTrack, stamp: SendStamp, at now: MonotonicTime,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        var packet = planned
        packet.apply(stamp)
        packet.epoch = output.numbering.epoch
        packet.flags.insert(.sent)
        if section.sendsMID { packet.flags.insert(.mid) }
        if section.captureOffset != nil { packet.flags.insert(.captureOffset) }
        if case .parameterSets(let generated, _) = packet.content {
            let cached = track.layer(Int(packet.layer)).pointee.parameterSets.revision
            packet.content = .parameterSets(generated, revision: cached)
        }
        guard let written = section.render(packet, of: track, repeatedAs: nil, into: slot) else { return nil }
        note(packet, length: written.length, payload: written.payload, at: now)
        return written.length
    }

    /// Writes the packet planned under `sequence`, or padding in its place; `track` is nil if none is bound any more.
    public mutating func writeWaiting(
        _ sequence: UInt32, of track: PublishedTrack?, stamp: SendStamp, at now: MonotonicTime,
        into slot: UnsafeMutableRawBufferPointer
    ) -> WaitingResult {
        guard let planned = output.unsent(sequence) else { return .gone }
        let isPresent = isBound && output.isOfBinding(planned)
        if isPresent, let track, let length = write(planned, of: track, stamp: stamp, at: now, into: slot) {
            return .written(length)
        }
        guard let length = writeFiller(insteadOf: planned, stamp: stamp, at: now, into: slot) else { return .gone }
        return .filled(length, breaksFrame: isPresent)
    }

    /// Writes padding under the number of a planned packet that cannot be sent; returns its length, or nil if no payload type is negotiated.
    public mutating func writeFiller(
        insteadOf planned: SentPacket, stamp: SendStamp, at now: MonotonicTime, into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let tail = output.numbering.tail
        guard let format = section.fillerFormat(preferring: tail.format) else { return nil }
        var filler = planned.filler(.init(timestamp: tail.timestamp, format: format))
        filler.flags = .sent
        filler.apply(stamp)
        filler.epoch = output.numbering.epoch
        return writeOwn(filler, at: now, into: slot)
    }

    /// Writes a packet with only padding.
    private mutating func writeOwn(
        _ filler: SentPacket, at now: MonotonicTime, into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        guard let length = section.renderGenerated(filler, of: nil, repeatedAs: nil, into: slot) else { return nil }
        note(filler, length: length, payload: 0, at: now)
        return length
    }

    @inline(__always)
    private mutating func note(_ packet: SentPacket, length: Int, payload: Int, at now: MonotonicTime) {
        output.note(packet)
        sent.sent(length, payload: payload, at: now)
    }

    // MARK: - Retransmission

    /// Looks up the number `wire` of a NACK. A packet is not retransmitted twice within `roundTrip`, nor if it belongs to a video or temporal layer that is no
    /// longer forwarded and nothing needs it: bandwidth was the cause, and its retransmissions would delay later packets.
    public mutating func requestRepeat(
        _ wire: UInt16, of track: PublishedTrack?, roundTrip: TimeSpan, at now: MonotonicTime
    ) -> RepeatVerdict {
        sent.countNACK()
        var verdict = output.requestRepeat(wire, roundTrip: roundTrip, at: now) { packet, number in
            planner.abandonedVideo.contains(number)
                || planner.selector.active == packet.layer
                    && section.shows(upTo: planner.selector.temporalLimit, without: packet, of: track)
        }
        if case .send(let sequence) = verdict, let track, let packet = output.packet(sequence),
            !section.isKept(packet, of: track)
        {
            verdict = .gone
        }
        if let number = output.numbering.number(wire: wire) { planner.noteMissing(number, isGone: verdict == .gone) }
        return verdict
    }

    /// Whether a keyframe repairs better than retransmissions, reported once; see `KeyframeRepair`.
    public mutating func consumeRepair() -> Bool { planner.consumeRepair() }

    /// Writes the retransmission that `requestRepeat` allowed; returns its length, or nil when the history has lost the packet.
    public mutating func writeRepeat(
        _ sequence: UInt32, of track: PublishedTrack, stamp: SendStamp, at now: MonotonicTime,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        guard let length = writeAgain(sequence, of: track, stamp: stamp, at: now, into: slot) else { return nil }
        sent.countRepeat()
        return length
    }

    /// Writes a packet once more, because its receiver lacks it or for a probe.
    private mutating func writeAgain(
        _ sequence: UInt32, of track: PublishedTrack, stamp: SendStamp, at now: MonotonicTime,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        guard isBound, let packet = output.packet(sequence),
            let length = section.renderRepeat(
                packet, number: output.numbering.number(of: packet), of: track, stamp: stamp, into: slot)
        else { return nil }
        sent.sentAgain(length, at: now)
        return length
    }

    // MARK: - Probes

    /// Writes one probe packet of at most about `wanted` bytes; returns its length, or nil when there is nothing to write.
    ///
    /// The best fitting of the last packets is retransmitted as RTX (RFC 4588), which receivers that need it use and others drop. Otherwise it is padding on
    /// the RTX stream; without one, padding between two frames under a number of the media stream, as libwebrtc does.
    public mutating func writeProbe(
        wanted: Int, of track: PublishedTrack, stamp: SendStamp, at now: MonotonicTime,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let padding = min(max(wanted - 28, 64), 255)
        guard padsBeside else { return writePadding(padding, of: track, stamp: stamp, at: now, into: slot) }
        if layer != nil, !isPaused, let sequence = output.consumeProbe(wanted: wanted, of: track, at: now),
            let length = writeAgain(sequence, of: track, stamp: stamp, at: now, into: slot)
        {
            return length
        }
        let tail = output.numbering.tail
        return section.renderPadding(
            padding, preferring: tail.format, timestamp: tail.timestamp, stamp: stamp, into: slot)
    }

    /// Writes a packet with only `count` bytes of padding under the stream's next number; nil in the middle of a frame.
    private mutating func writePadding(
        _ count: Int, of track: PublishedTrack, stamp: SendStamp, at now: MonotonicTime,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let tail = output.numbering.tail, isForwarding = layer != nil
        guard output.isBetweenFrames(whileForwarding: isForwarding),
            let format = section.fillerFormat(preferring: tail.format),
            let timestamp = tail.isEmpty ? track.newestTimestamp : tail.timestamp
        else { return nil }
        var filler = SentPacket(sequence: 0, content: .padding(.init(timestamp: timestamp, format: format)))
        filler.flags = section.sendsMID ? [.sent, .mid] : .sent
        filler.padding = UInt8(clamping: count)
        filler.apply(stamp)
        output.insert(&filler, whileForwarding: isForwarding, at: now)
        return writeOwn(filler, at: now, into: slot)
    }

    // MARK: - Reports

    /// What it has sent since it began.
    public var totals: SubscriptionTotals { sent.with(switches: planner.switches) }

    /// Bits per second over the last second, retransmissions included.
    public func bitrate(at now: MonotonicTime) -> Bitrate { sent.bitrate(at: now) }

    /// Counts a keyframe request of the receiver.
    public mutating func countKeyframeRequest() { sent.countKeyframeRequest() }

    /// Processes one report block about the subscription's SSRCs; returns the round trip, if the block reveals one, and the number of packets since the last
    /// report, with the number of those that did not arrive.
    public mutating func receivedReport(
        _ block: ReportBlock, at now: MonotonicTime
    ) -> (roundTrip: TimeSpan?, packets: Int, lost: Double) {
        guard block.ssrc == ssrc else { return (nil, 0, 0) }
        section.receiverReported()
        let (packets, lost) = sent.reported(
            fractionLost: block.fractionLost, jitterTicks: block.jitter, highest: block.highestSequence,
            used: output.numbering.highest)
        let delay = block.delaySinceLastSenderReport
        return (reports.roundTrip(lastReport: block.lastSenderReport, delay: delay, at: now), packets, lost)
    }

    /// The first report since its track, path or pause changed is still due: its first packet may be sent at any time.
    public var awaitsReport: Bool { reports.isRestarting && isBound && !isPaused }

    /// Nothing is sent for a while; the next packets need a report soon.
    public mutating func restartReports() { reports.restart() }

    /// A sender report with the moment `ntp` was sent.
    public mutating func sentReport(ntp: UInt64, at now: MonotonicTime) { reports.sent(ntp: ntp, at: now) }
}
