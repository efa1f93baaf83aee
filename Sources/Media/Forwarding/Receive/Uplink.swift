public import MediaControl
public import Primitives
internal import RTP

/// All that one peer sends: its tracks, the SSRC bindings, and the feedback that its transport needs.
///
/// ```text
///  clear RTP --> parse header and extensions once --> transport-wide arrival
///                    |                                     (feedback recorder)
///                    v
///        SSRC table --(unknown)--> learn by rid, mid, payload type
///                    |
///                    v
///   RTX unwrapped in place --> sequence, loss, jitter --> payload summary --> history of the layer --> arrivals of the track
/// ```
///
/// Sans-IO: `receiveRTP`, `receiveRTCP`, `advance(to:)`, `nextDeadline`. Every call on the uplink or one of its tracks
/// (`requestKeyframe`) may bring the deadline forward, so read it afterwards. Not Sendable: one worker owns it.
public final class Uplink {
    private let feedbackSSRC: UInt32
    private let extensionTable = ExtensionTable()
    private let schedule = FeedbackSchedule()
    private let state: UnsafeMutablePointer<State>

    /// The mutable state, behind a pointer for the same reason as that of a `PublishedTrack`.
    private struct State: ~Copyable {
        var tracks: [PublishedTrack?] = []
        var bindings = SourceBindings()
        var recorder = TransportFeedbackRecorder()
        var rateAdviser = RateAdviser()
        var reports = ReceiverReports()
        var roundTrip = ReportedRoundTrip()
        var events: [MediaEvent] = []
    }

    /// The uplink of a peer of this kind, whose reports and feedback carry `feedbackSSRC`.
    public init(feedbackSSRC: UInt32, profile: PeerProfile) {
        self.feedbackSSRC = feedbackSSRC
        state = .allocate(capacity: 1)
        state.initialize(to: State())
        state.pointee.recorder.setBudget(profile)
    }

    deinit {
        state.deinitialize(count: 1)
        state.deallocate()
    }

    // MARK: - Tracks

    /// The peer's tracks by slot; slots of removed tracks are nil.
    public var tracks: [PublishedTrack?] { _read { yield state.pointee.tracks } }

    /// Adds a track; nil when the peer has too many.
    public func addTrack(_ description: TrackDescription, at now: MonotonicTime) -> PublishedTrack? {
        let free = tracks.firstIndex { $0 == nil }
        guard let slot = free ?? (tracks.count < MediaLimits.tracksPerParticipant ? tracks.count : nil) else {
            return nil
        }
        let track = PublishedTrack(description: description, at: now)
        track.follow(schedule)
        if slot == tracks.count { state.pointee.tracks.append(track) } else { state.pointee.tracks[slot] = track }
        extensionTable.add(description.extensions)
        state.pointee.bindings.bindAnnounced(track, slot: slot)
        return track
    }

    /// Applies renegotiated formats, extensions, encodings or feedback of an existing track. Returns whether H.264 parameter sets that its subscribers have been
    /// sent are replaced, and they can begin anew with a keyframe that is requested: what follows is decoded only with the new ones. Without keyframe feedback they
    /// go on with the former sets: to stop them would last until a keyframe that may never come.
    @discardableResult
    public func updateTrack(_ description: TrackDescription) -> Bool {
        guard let slot = slot(of: description.id), let track = tracks[slot] else { return false }
        let replacesSets = track.update(description)
        extensionTable.removeAll()
        for case let track? in tracks { extensionTable.add(track.description.extensions) }
        state.pointee.bindings.bindAnnounced(track, slot: slot)
        return replacesSets
    }

    /// Removes a track and its SSRCs.
    public func removeTrack(_ id: TrackID) {
        guard let slot = slot(of: id) else { return }
        state.pointee.tracks[slot] = nil
        state.pointee.bindings.removeAll(ofSlot: slot)
    }

    /// Packets of a muted track are dropped on arrival.
    public func setMuted(_ id: TrackID, _ muted: Bool) {
        guard let slot = slot(of: id) else { return }
        tracks[slot]?.setMuted(muted)
    }

    /// Caps what the publisher should send on the track; signalled by REMB.
    public func setMaximumBitrate(_ id: TrackID, _ bitrate: Bitrate?) {
        guard let slot = slot(of: id) else { return }
        tracks[slot]?.setMaximumBitrate(bitrate)
    }

    private func slot(of id: TrackID) -> Int? { tracks.firstIndex { $0?.description.id == id } }

    // MARK: - RTP

    /// Processes one decrypted RTP packet of `length` bytes at the start of `packet`, which may be changed in place. `track` is
    /// set to the track it belongs to, if one was found.
    public func receiveRTP(
        _ packet: UnsafeMutableRawBufferPointer, length: Int, at now: MonotonicTime, track: inout PublishedTrack?
    ) -> IngestResult {
        guard length <= packet.count, length <= PacketHistory.maximumPacketLength else { return .dropped(.oversize) }
        let bytes = UnsafeMutableRawBufferPointer(rebasing: packet[0..<length])
        let readable = UnsafeRawBufferPointer(bytes)
        guard let header = RTPHeader(readable.bytes) else { return .dropped(.rtpMalformed) }
        let extensions = readExtensions(header, readable)
        if extensions.transportSequence >= 0 {
            state.pointee.recorder.record(
                UInt16(truncatingIfNeeded: extensions.transportSequence), mediaSSRC: header.ssrc, at: now)
            schedule.wake(at: state.pointee.recorder.nextDue)
        }
        guard
            let binding = state.pointee.bindings[header.ssrc]
                ?? state.pointee.bindings.learn(header, extensions, readable, among: state.pointee.tracks, at: now)
        else { return .dropped(.rtpUnknownStream) }
        guard let owner = tracks[Int(binding.track)] else { return .dropped(.rtpUnknownStream) }
        track = owner
        state.pointee.rateAdviser.count(length)
        let layer = Int(binding.layer)
        let result =
            binding.isRTX
            ? receiveRTX(bytes, header, extensions, owner, layer: layer, at: now)
            : owner.ingest(
                bytes, header, extensions, layer: layer, isRepaired: false, at: now, events: &state.pointee.events)
        schedule.wake(at: owner.layer(layer).pointee.nextFeedback)
        if state.pointee.reports.areResting { startReporting(at: now) }
        return result
    }

    @inline(__always) private func readExtensions(
        _ header: RTPHeader, _ packet: UnsafeRawBufferPointer
    ) -> ReceivedExtensions {
        var found = ReceivedExtensions()
        guard header.extensionLength > 0 else { return found }
        var elements = RTPHeaderExtensions(header)
        while let element = elements.next(in: packet.bytes) {
            guard let meaning = extensionTable[element.id] else { continue }
            found.note(meaning, element, in: packet.bytes)
        }
        return found
    }

    /// Unwraps the retransmission format in place (RFC 4588) and ingests the original packet.
    private func receiveRTX(
        _ packet: UnsafeMutableRawBufferPointer, _ header: RTPHeader, _ extensions: ReceivedExtensions,
        _ track: PublishedTrack, layer index: Int, at now: MonotonicTime
    ) -> IngestResult {
        let layer = track.layer(index)
        // Padding-only bandwidth probes also use this SSRC.
        guard header.payloadLength > 0 else { return .dropped(.rtpPaddingOnly) }
        guard case .retransmissions(let format) = track.meaning(of: header.payloadType),
            let number = RTX.originalSequenceNumber(header, in: UnsafeRawBufferPointer(packet).bytes)
        else { return .dropped(.rtxMalformed) }
        guard let ssrc = layer.pointee.sources.ssrc, layer.pointee.sequences.hasStarted else {
            return .dropped(.rtxUnknownStream)
        }
        let original = track.description.formats[Int(format)].payloadType
        guard let length = RTX.unwrap(packet, header: header, ssrc: ssrc, payloadType: original) else {
            return .dropped(.rtxMalformed)
        }
        var inner = header
        inner.payloadType = original
        inner.sequenceNumber = number
        inner.ssrc = ssrc
        inner.payloadLength = length - header.payloadOffset
        inner.paddingLength = 0
        let bytes = UnsafeMutableRawBufferPointer(rebasing: packet[0..<length])
        if let sample = layer.pointee.answered(number, at: now) { state.pointee.roundTrip.measured(sample, at: now) }
        return track.ingest(
            bytes, inner, extensions, layer: index, isRepaired: true, at: now, events: &state.pointee.events)
    }

    /// Media arrived and was discarded unread: the streams restart, video with a keyframe. NACKs for the missing packets would delay
    /// it further.
    public func interrupted() {
        for case let track? in tracks {
            for index in 0..<track.layerCount { track.layer(index).pointee.interrupt() }
        }
        schedule.wake(at: .zero)
    }

    // MARK: - RTCP of the peer

    /// Processes one decrypted compound: sender reports, BYEs and extended reports; the downlink uses the rest.
    public func receiveRTCP(_ packet: RawSpan, at now: MonotonicTime) {
        guard var compound = RTCPCompound(packet) else { return }
        while let part = compound.next(in: packet) {
            switch part {
            case .senderReport(let report): receive(report, at: now)
            case .goodbye(let goodbye):
                for index in 0..<goodbye.count { receiveGoodbye(goodbye.ssrc(at: index, in: packet), at: now) }
            case .receiverReferenceTime(let reference):
                state.pointee.reports.received(reference, at: now)
                if state.pointee.reports.areResting { startReporting(at: now) }
            case .delaySinceLastReceiverReport(let answers):
                for index in 0..<answers.count {
                    let answer = answers.item(at: index, in: packet)
                    guard answer.ssrc == feedbackSSRC, answer.lastReceiverReport != 0 else { continue }
                    let sent = NTPTime.middle(NTPTime.at(now))
                    let elapsed = Int32(bitPattern: sent &- answer.lastReceiverReport &- answer.delay)
                    state.pointee.roundTrip.measured(NTPTime.interval(elapsed), at: now)
                }
            default: break
            }
        }
    }

    private func receive(_ report: SenderReport, at now: MonotonicTime) {
        guard let binding = state.pointee.bindings[report.ssrc], !binding.isRTX, let track = tracks[Int(binding.track)]
        else { return }
        track.layer(Int(binding.layer)).pointee.received(report, at: now)
    }

    /// The source stops (RFC 3550 section 6.6): silent at once instead of after the limit. The SSRC may return.
    private func receiveGoodbye(_ ssrc: UInt32, at now: MonotonicTime) {
        guard let binding = state.pointee.bindings[ssrc], !binding.isRTX, let track = tracks[Int(binding.track)] else {
            return
        }
        track.layer(Int(binding.layer)).pointee.end()
        schedule.wake(at: track.silenceDeadline)
    }

    // MARK: - Feedback

    /// When `advance` has something to do.
    public var nextDeadline: MonotonicTime { schedule.deadline }

    /// Writes due RTCP as one compound to `feedback`; returns its length, 0 when nothing is due. Call until it is 0.
    ///
    /// Feedback is reduced-size RTCP (RFC 5506), except for a full compound with reports once per second.
    public func advance(to now: MonotonicTime, feedback: UnsafeMutableRawBufferPointer) -> Int {
        guard now >= schedule.deadline else { return 0 }
        updateActivity(at: now)
        var writer = RTCPWriter(feedback)
        let isComplete = write(&writer, capacity: feedback.count, at: now)
        schedule.set(isComplete ? deadlineByState() : now)
        // A datagram too small for even one packet must not make a caller loop for ever.
        if !isComplete, writer.length == 0 { schedule.set(now + .milliseconds(10)) }
        return writer.length
    }

    /// Used before a round trip is measured: not so short that every packet is requested twice, nor so long that repair is late.
    private static let assumedRoundTrip = TimeSpan.milliseconds(100)

    /// Writes what is due; false when it does not fit.
    private func write(_ writer: inout RTCPWriter, capacity: Int, at now: MonotonicTime) -> Bool {
        let tracks = self.tracks
        guard
            state.pointee.reports.write(&writer, about: tracks, from: feedbackSSRC, capacity: capacity, at: now)
        else { return false }
        let roundTrip = state.pointee.roundTrip.smoothed(at: now) ?? Self.assumedRoundTrip
        for case let track? in tracks {
            guard
                track.writeRepairRequests(
                    &writer, from: feedbackSSRC, roundTrip: roundTrip, capacity: capacity, at: now)
            else { return false }
        }
        for case let track? in tracks {
            guard track.writeKeyframeRequests(&writer, from: feedbackSSRC, at: now) else { return false }
        }
        return state.pointee.recorder.write(&writer, senderSSRC: feedbackSSRC, at: now)
            && state.pointee.rateAdviser.write(
                &writer, about: tracks, from: feedbackSSRC, after: state.pointee.reports, at: now)
    }

    private func startReporting(at now: MonotonicTime) {
        state.pointee.reports.start(at: now)
        state.pointee.rateAdviser.wake(at: state.pointee.reports.nextDue)
        schedule.wake(at: state.pointee.reports.nextDue)
    }

    private func deadlineByState() -> MonotonicTime {
        var deadline = min(
            min(state.pointee.reports.nextDue, state.pointee.recorder.nextDue), state.pointee.rateAdviser.nextDue)
        for case let track? in tracks {
            deadline = min(deadline, track.silenceDeadline)
            for index in 0..<track.layerCount {
                let layer = track.layer(index)
                deadline = min(deadline, min(layer.pointee.nextFeedback, layer.pointee.sizeNews.due))
            }
        }
        return deadline
    }

    private func updateActivity(at now: MonotonicTime) {
        for case let track? in tracks where now >= track.silenceDeadline {
            track.fallSilent()
            state.pointee.events.append(.trackSilent(track.description.id))
        }
        for case let track? in tracks { track.announceSizes(at: now, to: &state.pointee.events) }
    }

    // MARK: - What its owner takes

    /// Whether `consumeEvents()` has any.
    public var hasEvents: Bool { !state.pointee.events.isEmpty }

    /// Removes and returns trackStarted, trackSilent, trackResumed and trackDimensions since the last call.
    public func consumeEvents() -> [MediaEvent] {
        guard !state.pointee.events.isEmpty else { return [] }
        defer { state.pointee.events.removeAll(keepingCapacity: true) }
        return state.pointee.events
    }

    /// Whether `consumeSourceChanges()` has any.
    @inline(__always) public var hasSourceChanges: Bool { state.pointee.bindings.hasChanges }

    /// The SSRCs whose binding has changed since the last call, in order; for the transport, whose streams are bounded.
    public func consumeSourceChanges() -> [SourceChange] { state.pointee.bindings.consumeChanges() }

    /// Sets the round trip time to the peer as measured elsewhere on this transport.
    public func setRoundTripTime(_ measured: TimeSpan, at now: MonotonicTime) {
        state.pointee.roundTrip.measured(measured, at: now)
    }

    /// The round trip time to the peer; nil without a measurement in the last ten seconds.
    public func roundTripTime(at now: MonotonicTime) -> TimeSpan? { state.pointee.roundTrip.smoothed(at: now) }
}
