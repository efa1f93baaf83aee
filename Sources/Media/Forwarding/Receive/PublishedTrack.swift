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

    /// What the control plane said last.
    public private(set) var description: TrackDescription
    /// For the owner's own use, for example its index of tracks.
    public var tag = 0
    /// Number of layers.
    public let layerCount: Int
    /// The format that packets use now; nil before the first.
    public internal(set) var format: PayloadFormat?
    /// Packets are dropped at once (C6).
    public private(set) var isMuted = false
    /// No packets for longer than `TrackActivity.limit`.
    public internal(set) var isSilent = false
    /// Loudness and voice activity; stays empty for video and where the publisher sends no levels.
    public internal(set) var levels = AudioLevelWindow()

    let layerStorage: UnsafeMutablePointer<ReceiveLayer>
    var arrivalList = ArrivalList()
    /// The uplink's clock; set by it.
    var schedule: FeedbackSchedule?
    let mid: ShortText?
    /// payload type -> index into `description.formats`, with `rtxBit` for retransmissions; `noFormat` for unknown.
    private(set) var formats = InlineArray<128, UInt8>(repeating: PublishedTrack.noFormat)
    static let noFormat: UInt8 = 0xff
    static let rtxBit: UInt8 = 0x80

    public init(description: TrackDescription, at now: MonotonicTime) {
        self.description = description
        mid = ShortText(description.mid)
        let encodings = description.encodings.isEmpty ? [EncodingDescription()] : description.encodings
        layerCount = min(encodings.count, Self.maximumLayers)
        layerStorage = .allocate(capacity: layerCount)
        for index in 0..<layerCount {
            (layerStorage + index).initialize(
                to: ReceiveLayer(
                    index: index, encoding: encodings[index], kind: description.kind,
                    isScreen: description.source == .screen))
        }
        mapFormats()
    }

    deinit {
        layerStorage.deinitialize(count: layerCount)
        layerStorage.deallocate()
    }

    /// The layer at `index` < `layerCount`; the pointer is good as long as the track.
    @inline(__always) public func layer(_ index: Int) -> UnsafeMutablePointer<ReceiveLayer> { layerStorage + index }

    /// The packets of this turn in order of arrival.
    @inline(__always) public var arrivals: UnsafeBufferPointer<Arrival> { arrivalList.all }

    /// Forgets `arrivals`, after all subscribers have been served.
    public func endTurn() { arrivalList.removeAll() }

    /// A subscriber of `layer` cannot decode without a keyframe. Throttling and repeating are done here (G5).
    public func requestKeyframe(layer: Int) {
        guard !isMuted, asksForKeyframes else { return }
        layerStorage[layer].keyframes.request()
        schedule?.wake(at: layerStorage[layer].keyframes.nextDue)
    }

    /// Whether the sender can be asked for keyframes at all.
    var asksForKeyframes: Bool {
        description.kind == .video && !description.feedback.isDisjoint(with: [.pli, .fir])
    }

    /// Renegotiated formats, extensions or feedback; the layers stay.
    func update(_ description: TrackDescription) {
        self.description = description
        mapFormats()
    }

    func setMaximumBitrate(_ bitrate: Bitrate?) { description.maximumBitrate = bitrate }

    func setMuted(_ muted: Bool) {
        isMuted = muted
        guard muted else { return }
        levels.clear()
        for index in 0..<layerCount { layerStorage[index].keyframes.cancel() }
    }

    private func mapFormats() {
        formats = InlineArray(repeating: Self.noFormat)
        for (index, format) in description.formats.enumerated() where index < 0x7f {
            formats[Int(format.payloadType & 0x7f)] = UInt8(index)
            if let rtx = format.rtxPayloadType { formats[Int(rtx & 0x7f)] = UInt8(index) | Self.rtxBit }
        }
    }
}
