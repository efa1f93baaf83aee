public import MediaControl
public import Primitives

/// A track as its publisher sends it: up to three layers, what is known about each, and the packets of this turn.
///
/// The engine walks `arrivals` once a turn for all subscriptions and then calls `endTurn()`. Packets are read through
/// `layer(_:)`'s history, where they stay for retransmission.
///
/// Not Sendable: one worker owns it.
public final class PublishedTrack {
    /// Most layers a track has: what simulcast senders offer (RFC 8853 has no bound; browsers stop at 3).
    public static let maximumLayers = 3

    /// Number of layers.
    public let layerCount: Int
    let layerStorage: UnsafeMutablePointer<ReceiveLayer>
    let state: UnsafeMutablePointer<PublishedTrackState>

    /// A track as described, of which nothing has come yet.
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
        state.initialize(to: PublishedTrackState(description: description))
    }

    deinit {
        state.deinitialize(count: 1)
        state.deallocate()
        layerStorage.deinitialize(count: layerCount)
        layerStorage.deallocate()
    }

    /// The layer at `index` < `layerCount`; the pointer is good as long as the track.
    @inline(__always) public func layer(_ index: Int) -> UnsafeMutablePointer<ReceiveLayer> { layerStorage + index }

    /// The packets of this turn in order of arrival.
    @inline(__always) public var arrivals: UnsafeBufferPointer<Arrival> { state.pointee.arrivals.all }

    /// How many of `arrivals` a later one of the same turn has pushed out of the history: more came at once than it may hold.
    public var overwrittenArrivals: Int {
        // The oldest go first.
        guard let first = arrivals.first(where: { !$0.isGap }), isOverwritten(first) else { return 0 }
        return arrivals.count { !$0.isGap && isOverwritten($0) }
    }

    private func isOverwritten(_ arrival: Arrival) -> Bool {
        layerStorage[Int(arrival.layer)].history.record(arrival.sequence) == nil
    }

    /// Forgets `arrivals`, after all subscribers have been served.
    @inline(__always) public func endTurn() { state.pointee.arrivals.removeAll() }

    /// A subscriber of `layer` cannot decode without a keyframe. Throttling and repeating are done here.
    public func requestKeyframe(layer: Int) {
        guard !isMuted, asksForKeyframes else { return }
        layerStorage[layer].keyframes.request()
        state.pointee.schedule?.wake(at: layerStorage[layer].keyframes.nextDue)
    }

    /// Whether the sender can be asked for keyframes at all.
    var asksForKeyframes: Bool {
        description.kind == .video && !description.feedback.isDisjoint(with: [.pli, .fir])
    }

    /// Renegotiated formats, extensions or feedback; the layers stay.
    func update(_ description: TrackDescription) {
        state.pointee.describe(description)
        guard !asksForKeyframes else { return }
        // A request that nothing can be written for would be due for ever.
        for index in 0..<layerCount { layerStorage[index].keyframes.cancel() }
    }

    func setMaximumBitrate(_ bitrate: Bitrate?) { state.pointee.description.maximumBitrate = bitrate }

    func setMuted(_ muted: Bool) {
        state.pointee.isMuted = muted
        guard muted else { return }
        state.pointee.levels.clear()
        for index in 0..<layerCount {
            layerStorage[index].keyframes.cancel()
            // Nothing can begin with a picture whose successors were dropped.
            layerStorage[index].lastKeyframe = nil
        }
    }
}

extension PublishedTrack {
    /// What the control plane said last.
    public var description: TrackDescription { _read { yield state.pointee.description } }

    /// For the owner's own use, for example its index of tracks.
    public var tag: Int {
        @inline(__always) get { state.pointee.tag }
        set { state.pointee.tag = newValue }
    }

    /// The format that packets use now; nil before the first.
    public var format: PayloadFormat? { _read { yield state.pointee.format } }

    /// Packets are dropped at once.
    @inline(__always) public var isMuted: Bool { state.pointee.isMuted }

    /// No packets for longer than `TrackActivity.limit`.
    @inline(__always) public var isSilent: Bool { state.pointee.isSilent }

    /// Loudness and voice activity; stays empty for video and where the publisher sends no levels.
    public internal(set) var levels: AudioLevelWindow {
        _read { yield state.pointee.levels }
        _modify { yield &state.pointee.levels }
    }
}
