public import MediaControl
public import Primitives

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
    let layerStorage: UnsafeMutablePointer<ReceiveLayer>
    let state: UnsafeMutablePointer<PublishedTrackState>

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
        state.initialize(to: PublishedTrackState(description: description))
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

    /// How many of `arrivals` later packets of the same turn overwrote in the history, because more arrived at once than it may hold.
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
        state.pointee.speechStart = .max
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

    /// Applies renegotiated formats, extensions or feedback; the layers stay.
    func update(_ description: TrackDescription) {
        state.pointee.describe(description)
        guard !asksForKeyframes else { return }
        // A request that can never be written would stay due for ever.
        for index in 0..<layerCount { layerStorage[index].keyframes.cancel() }
    }

    func setMaximumBitrate(_ bitrate: Bitrate?) { state.pointee.description.maximumBitrate = bitrate }

    func setMuted(_ muted: Bool) {
        state.pointee.isMuted = muted
        guard muted else { return }
        state.pointee.levels.clear()
        for index in 0..<layerCount {
            layerStorage[index].mute()
        }
    }
}

extension PublishedTrack {
    /// The latest description from the control plane.
    public var description: TrackDescription { _read { yield state.pointee.description } }

    /// For the owner's own use, for example its index of tracks.
    public var tag: Int {
        @inline(__always) get { state.pointee.tag }
        set { state.pointee.tag = newValue }
    }

    /// The format of current packets; nil before the first.
    public var format: PayloadFormat? { _read { yield state.pointee.format } }

    /// Packets are dropped on arrival.
    @inline(__always) public var isMuted: Bool { state.pointee.isMuted }

    /// No packets for longer than `TrackActivity.limit`.
    @inline(__always) public var isSilent: Bool { state.pointee.isSilent }

    /// Loudness and voice activity; empty for video and for publishers that send no levels.
    public internal(set) var levels: AudioLevelWindow {
        _read { yield state.pointee.levels }
        _modify { yield &state.pointee.levels }
    }
}
