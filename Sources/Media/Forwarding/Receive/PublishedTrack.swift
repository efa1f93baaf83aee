public import MediaControl
internal import PayloadFormats
public import Primitives
internal import RTP

/// A track as its publisher sends it: up to three layers, their state, and the packets of this turn.
///
/// The engine walks `arrivals` once per turn for all subscriptions and then calls `endTurn()`. Packets are read from
/// `layer(_:)`'s history, where they stay for retransmission.
///
/// Not Sendable: one worker owns it.
public final class PublishedTrack {
    /// Maximum layers of a track: what simulcast senders offer (RFC 8853 has no bound; browsers stop at 3).
    public static let maximumLayers = 3

    /// Number of layers.
    public let layerCount: Int
    private let layerStorage: UnsafeMutablePointer<ReceiveLayer>
    private let state: UnsafeMutablePointer<State>

    /// The mutable state besides the layers, behind a pointer: in properties of the class, each access would cost an exclusivity check, together a third of the
    /// time to ingest a packet (measured).
    private struct State: ~Copyable {
        var terms: TrackTerms
        var progress = TrackProgress()
        var tag = 0
        var isMuted = false
        var levels = AudioLevelWindow()
        /// Where this turn's packets begin for new listeners; nil: at the first of them.
        var speechStart: Int64?
        var arrivals = ArrivalList()
        var announced = AnnouncedLayers()
        /// The uplink's schedule, which the uplink sets.
        var schedule: FeedbackSchedule?
    }

    /// A track as described, before its first packet.
    public init(description: TrackDescription, at now: MonotonicTime) {
        let encodings = description.encodings.isEmpty ? [EncodingDescription()] : description.encodings
        layerCount = min(encodings.count, Self.maximumLayers)
        layerStorage = .allocate(capacity: layerCount)
        for index in 0..<layerCount {
            (layerStorage + index).initialize(
                to: ReceiveLayer(
                    index: index, encoding: encodings[index], kind: description.kind,
                    isScreen: description.source == .screen))
        }
        state = .allocate(capacity: 1)
        state.initialize(to: State(terms: TrackTerms(description)))
        learnParameterSets(of: description)
    }

    deinit {
        state.deinitialize(count: 1)
        state.deallocate()
        layerStorage.deinitialize(count: layerCount)
        layerStorage.deallocate()
    }

    /// The layer at `index` < `layerCount`; the pointer is valid for the track's lifetime.
    @inline(__always) public func layer(_ index: Int) -> UnsafeMutablePointer<ReceiveLayer> { layerStorage + index }

    /// The packets of this turn in order of arrival.
    @inline(__always) public var arrivals: UnsafeBufferPointer<Arrival> { state.pointee.arrivals.all }

    /// How many of `arrivals` were overwritten in the history by later packets of the same turn, because more arrived at once than it may hold.
    public var overwrittenArrivals: Int {
        // The oldest are overwritten first.
        guard let first = arrivals.first(where: { !$0.isGap }), isOverwritten(first) else { return 0 }
        return arrivals.count { !$0.isGap && isOverwritten($0) }
    }

    private func isOverwritten(_ arrival: Arrival) -> Bool {
        layerStorage[Int(arrival.layer)].history.record(arrival.sequence) == nil
    }

    /// Clears `arrivals`, after all subscribers have been served.
    @inline(__always) public func endTurn() {
        state.pointee.arrivals.removeAll()
        state.pointee.speechStart = nil
    }

    /// A subscriber of `layer` cannot decode without a keyframe. Requests are throttled and repeated here.
    public func requestKeyframe(layer: Int) {
        guard !isMuted, asksForKeyframes else { return }
        layerStorage[layer].keyframes.request()
        state.pointee.schedule?.wake(at: layerStorage[layer].keyframes.nextDue)
    }

    /// Whether the sender accepts keyframe requests at all.
    var asksForKeyframes: Bool {
        description.kind == .video && !description.feedback.isDisjoint(with: [.pli, .fir])
    }

    /// Applies renegotiated formats, extensions or feedback; the layers stay. Returns whether other parameter sets are in force, and a keyframe to begin with
    /// them can be requested.
    func update(_ description: TrackDescription) -> Bool {
        let revision = layerStorage.pointee.parameterSets.revision
        // Parameter sets that packets have replaced since then stay replaced, unless the publisher names others.
        if Self.parameterSets(of: description) != Self.parameterSets(of: self.description) {
            learnParameterSets(of: description)
        }
        state.pointee.terms.apply(description)
        guard !asksForKeyframes else { return layerStorage.pointee.parameterSets.revision != revision }
        // A request that can never be written would stay due for ever.
        for index in 0..<layerCount { layerStorage[index].keyframes.cancel() }
        return false
    }

    /// The sets of a description; nil if it has none.
    private static func parameterSets(of description: TrackDescription) -> [[UInt8]]? {
        description.formats.lazy.map(\.parameterSets).first { !$0.isEmpty }
    }

    /// Stores the parameter sets of the description. Simulcast layers differ in size, and a description has the sets of only one stream.
    private func learnParameterSets(of description: TrackDescription) {
        guard layerCount == 1, let sets = Self.parameterSets(of: description) else { return }
        layerStorage.pointee.learn(sets)
    }

    /// The sender is reachable again: keyframe requests that it may have missed are repeated soon.
    public func senderReturned() {
        for index in 0..<layerCount { layerStorage[index].keyframes.senderReturned() }
    }

    func setMaximumBitrate(_ bitrate: Bitrate?) { state.pointee.terms.setMaximumBitrate(bitrate) }

    /// No packets have arrived for `TrackActivity.limit`.
    func fallSilent() {
        state.pointee.progress.fallSilent()
        for index in 0..<layerCount { layerStorage[index].keyframes.streamPaused() }
    }

    /// The track's feedback is due by the schedule of its uplink.
    func follow(_ schedule: FeedbackSchedule) { state.pointee.schedule = schedule }

    func setMuted(_ muted: Bool) {
        state.pointee.isMuted = muted
        guard muted else { return }
        state.pointee.levels.clear()
        for index in 0..<layerCount {
            layerStorage[index].mute()
        }
    }

    // MARK: - Speech

    /// The track was withheld and is forwarded from this turn on, beginning with the words that caused this.
    public func beginWithSpeech() {
        let layer = layerStorage
        let newest = layer.pointee.history.highest
        guard let last = layer.pointee.history.record(newest) else { return }
        let clockRate = state.pointee.terms.formats.clockRate(of: last.pointee.format)
        let time = state.pointee.levels.timeSinceVoiceBegan.nanoseconds
        let earliest = last.pointee.timestamp - time / 1_000 * clockRate / 1_000_000
        var first = newest
        while let record = layer.pointee.history.record(first - 1), record.pointee.timestamp >= earliest { first -= 1 }
        state.pointee.speechStart = first
    }

    // MARK: - Packets

    /// Processes one packet of a layer, in its original form: numbering, measurements, summary, history, arrivals.
    func ingest(
        _ packet: UnsafeMutableRawBufferPointer, _ header: RTPHeader, _ extensions: ReceivedExtensions,
        layer index: Int,
        isRepaired: Bool, at now: MonotonicTime, events: inout [MediaEvent]
    ) -> IngestResult {
        let layer = layerStorage + index
        var flags: PacketRecord.Flags = header.marker ? .marker : []
        let outcome = layer.pointee.number(
            header.sequenceNumber, isRepaired: isRepaired, repair: state.pointee.terms.repair, at: now,
            flags: &flags)
        let sequence: Int64
        switch outcome {
        case .new(let number), .restarted(let number): sequence = number
        case .duplicate: return .dropped(.rtpDuplicate)
        case .tooOld: return .dropped(.rtpTooOld)
        }
        if state.pointee.isMuted {
            layer.pointee.dropMuted(sequence)
            return .dropped(.trackMuted)
        }
        guard header.payloadLength > 0 else { return gap(index, sequence, .rtpPaddingOnly) }
        let format: UInt8
        switch state.pointee.terms.formats[header.payloadType] {
        case .media(let place): format = place
        case .unknown: return gap(index, sequence, .rtpUnknownPayloadType)
        case .retransmissions: return gap(index, sequence, .rtxMalformed)
        }
        let payloadEnd = header.payloadOffset + header.payloadLength
        let payload = UnsafeRawBufferPointer(
            rebasing: UnsafeRawBufferPointer(packet)[header.payloadOffset..<payloadEnd])
        let codec = state.pointee.terms.formats.codec(of: format)
        guard
            let summary = layer.pointee.summarize(
                sequence, codec, payload, header.marker, extensions, UnsafeRawBufferPointer(packet))
        else { return gap(index, sequence, .payloadMalformed) }

        flags.formUnion(layer.pointee.consumeRestart())
        if layer.pointee.consumeDiscontinuity(at: sequence), description.kind == .audio {
            // Video restarts with a keyframe, and another packet may overtake the keyframe's first one.
            flags.insert(.discontinuity)
        }
        if extensions.voiceActivity { flags.insert(.voiceActivity) }
        if codec == .red, layer.pointee.isOpaqueRED(isOpus: isOpus(summary.primaryPayloadType)) {
            flags.insert(.opaque)
        }
        if extensions.layersAllocation.length > 0 { noteAnnouncement(extensions, UnsafeRawBufferPointer(packet)) }
        let timestamp = layer.pointee.extend(header.timestamp)
        var record = PacketRecord(
            sequence: sequence, timestamp: timestamp, arrival: now, position: 0, length: UInt16(payloadEnd),
            payloadOffset: UInt16(header.payloadOffset), payloadType: header.payloadType, flags: flags,
            audioLevel: extensions.audioLevel, format: format, extensions: extensions.forwarded, summary: summary)
        if isRepaired { record.flags.insert(.repaired) }
        packet[0] &= ~0x20  // Padding is not stored.
        layer.pointee.store(
            UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(packet)[..<payloadEnd]), record)
        guard state.pointee.arrivals.append(Arrival(sequence: sequence, layer: UInt8(index), isGap: false)) else {
            return .dropped(.outboundFull)
        }
        observe(record, layer, index, at: now, events: &events)
        return .stored(layer: index, sequence: sequence)
    }

    private func isOpus(_ payloadType: UInt8) -> Bool {
        guard case .media(let format) = state.pointee.terms.formats[payloadType] else { return false }
        return state.pointee.terms.formats.codec(of: format) == .opus
    }

    private func noteAnnouncement(_ extensions: ReceivedExtensions, _ packet: UnsafeRawBufferPointer) {
        let element = RTPHeaderExtensions.Element(
            id: 0, offset: extensions.layersAllocation.offset, length: extensions.layersAllocation.length)
        guard let allocation = VideoLayersAllocation(element, in: packet.bytes) else { return }
        state.pointee.announced.apply(allocation)
    }

    private func gap(_ layer: Int, _ sequence: Int64, _ reason: DropReason) -> IngestResult {
        // After a restart the next stored packet continues the subscribers' numbers, whatever its own number is.
        guard !layerStorage[layer].isRestarting else { return .dropped(reason) }
        guard state.pointee.arrivals.append(Arrival(sequence: sequence, layer: UInt8(layer), isGap: true)) else {
            return .dropped(.outboundFull)
        }
        return .gap(layer: layer, sequence: sequence, reason)
    }

    /// Updates the layer and the track from a stored packet.
    private func observe(
        _ record: PacketRecord, _ layer: UnsafeMutablePointer<ReceiveLayer>, _ index: Int, at now: MonotonicTime,
        events: inout [MediaEvent]
    ) {
        let clockRate = state.pointee.terms.formats.clockRate(of: record.format)
        let codec = state.pointee.terms.formats.codec(of: record.format)
        let hasOtherSize = layer.pointee.observe(record, codec, clockRate: clockRate, at: now)
        if record.audioLevel != 255, !record.flags.contains(.repaired) {
            state.pointee.levels.receive(
                level: record.audioLevel, timestamp: record.timestamp, clockRate: clockRate, at: now)
        }
        if !state.pointee.progress.continues(with: record.payloadType) { noteChange(record, events: &events) }
        if hasOtherSize {
            if layer.pointee.sizeNews.changed(at: now) {
                events.append(dimensions(ofLayer: index))
            } else {
                state.pointee.schedule?.wake(at: layer.pointee.sizeNews.due)
            }
        }
    }

    private func dimensions(ofLayer index: Int) -> MediaEvent {
        let size = layerStorage[index].size
        return .trackDimensions(description.id, layer: rank(ofLayer: index), width: size.width, height: size.height)
    }

    /// Announces sizes that were held back, those that are due at `now`.
    func announceSizes(at now: MonotonicTime, to events: inout [MediaEvent]) {
        for index in 0..<layerCount where layerStorage[index].sizeNews.consumeDue(at: now) {
            events.append(dimensions(ofLayer: index))
        }
    }

    /// Handles the first packet, the first of another format, or the first after silence.
    private func noteChange(_ record: PacketRecord, events: inout [MediaEvent]) {
        let id = description.id
        let format = description.formats[Int(record.format)]
        let change = state.pointee.progress.begin(format, payloadType: record.payloadType, at: record.arrival)
        if change.isFirst { events.append(.trackStarted(id, format.codec)) }
        guard change.isResumed else { return }
        for index in 0..<layerCount { layerStorage[index].keyframes.streamResumed() }
        events.append(.trackResumed(id))
    }
}

extension PublishedTrack {
    /// The latest description from the control plane.
    public var description: TrackDescription { _read { yield state.pointee.terms.description } }

    /// How lost packets are repaired.
    var lossRepair: LossRepair { state.pointee.terms.repair }

    /// For the owner's own use, for example its index of tracks.
    public var tag: Int {
        @inline(__always) get { state.pointee.tag }
        set { state.pointee.tag = newValue }
    }

    /// The format of current packets; nil before the first.
    public var format: PayloadFormat? { _read { yield state.pointee.progress.format } }

    /// Packets are dropped on arrival.
    @inline(__always) public var isMuted: Bool { state.pointee.isMuted }

    /// No packets for longer than `TrackActivity.limit`.
    @inline(__always) public var isSilent: Bool { state.pointee.progress.isSilent }

    /// When it may count as silent at once, because its sender sent a BYE.
    var mayFallSilentAt: MonotonicTime { state.pointee.progress.mayFallSilentAt }

    /// Loudness and voice activity; empty for video and for publishers that send no levels.
    public internal(set) var levels: AudioLevelWindow {
        _read { yield state.pointee.levels }
        _modify { yield &state.pointee.levels }
    }

    var mid: ShortText? { state.pointee.terms.mid }

    /// The meaning of a payload type.
    func meaning(of payloadType: UInt8) -> TrackFormats.Meaning { state.pointee.terms.formats[payloadType] }

    /// Whether any packet has arrived.
    var hasStarted: Bool { state.pointee.progress.hasStarted }

    /// The layers as the publisher announces them.
    var announced: AnnouncedLayers { _read { yield state.pointee.announced } }

    /// Where forwarding of this turn's packets begins for subscribers who were not sent the track before: at the first word, if the track was withheld until
    /// that began; nil: with the first packet of the turn.
    var speechStart: Int64? { state.pointee.speechStart }

    /// The timestamp of the newest packet of the first layer with packets, with which a stream that has not begun would begin.
    var newestTimestamp: UInt32? {
        for index in 0..<layerCount {
            let layer = self.layer(index)
            guard let record = layer.pointee.history.record(layer.pointee.history.highest) else { continue }
            return UInt32(truncatingIfNeeded: record.pointee.timestamp)
        }
        return nil
    }
}
