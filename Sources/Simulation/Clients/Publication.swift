public import MediaControl
public import Primitives

/// A track that a simulated client publishes.
public final class Publication {
    /// Its number; ``MediaTrace`` names it in every packet.
    public let id: TrackID
    /// As described to the server.
    public let description: TrackDescription
    /// One per layer, in the publisher's order.
    public var streams: [OutgoingStream]
    /// Sends by its plan's clock. While false, nothing is sent, as when a camera stops or a phone call interrupts.
    public var isSending = true
    unowned let client: VirtualClient
    var source: Source

    enum Source {
        case video(VideoSource)
        case audio(AudioSource)
    }

    init(_ description: TrackDescription, streams: [OutgoingStream], source: Source, client: VirtualClient) {
        id = description.id
        self.description = description
        self.streams = streams
        self.source = source
        self.client = client
    }

    /// The camera's plan; nil for audio. Setting it changes what is sent from the next frame on.
    public var video: VideoPlan? {
        get { if case .video(let video) = source { video.plan } else { nil } }
        set {
            guard let newValue, case .video(var video) = source else { return }
            video.plan = newValue
            source = .video(video)
        }
    }

    /// The microphone's plan; nil for video. Setting it changes what is sent from the next callback on.
    public var audio: AudioPlan? {
        get { if case .audio(let audio) = source { audio.plan } else { nil } }
        set {
            guard let newValue, case .audio(var audio) = source else { return }
            audio.plan = newValue
            source = .audio(audio)
        }
    }

    /// Frames (of one layer of video, or audio packets) sent so far.
    public func frames(ofLayer layer: Int = 0) -> Int {
        switch source {
        case .video(let video): video.frames(ofLayer: layer)
        case .audio(let audio): Int(audio.packets)
        }
    }

    /// All times at which a keyframe of any of its layers was requested.
    public var keyframeRequests: [MonotonicTime] { streams.flatMap(\.keyframeRequests).sorted() }

    /// Moves a microphone's media clock by `ticks`.
    public func jump(by ticks: UInt32) {
        guard case .audio(var audio) = source else { return }
        audio.jump(by: ticks)
        source = .audio(audio)
    }

    /// Sends nothing before `time`; the media clock continues.
    public func hold(until time: MonotonicTime) {
        switch source {
        case .video(var video):
            video.hold(until: time)
            source = .video(video)
        case .audio(var audio):
            audio.hold(until: time)
            source = .audio(audio)
        }
    }

    /// Switches to another camera in the same stream: its first frame is a keyframe of the new plan's size.
    public func replaceSource(_ plan: VideoPlan) {
        video = plan
        makeKeyframes()
    }

    /// The next frame will be a keyframe of every layer, as when another participant joins.
    public func makeKeyframes() {
        for layer in streams.indices { wantsKeyframe(ofLayer: layer) }
    }

    /// The next frame will be a keyframe of this layer.
    func wantsKeyframe(ofLayer layer: Int) {
        guard case .video(var video) = source else { return }
        video.wantsKeyframe |= 1 << UInt32(layer)
        source = .video(video)
    }

    /// When it has something to send.
    var nextDeadline: MonotonicTime {
        guard isSending else { return .distantFuture }
        return switch source {
        case .video(let video): video.nextFrame
        case .audio(let audio): audio.nextCallback
        }
    }

    /// The media clock at a given time, as sender reports state it.
    func mediaTime(at now: MonotonicTime) -> UInt32 {
        switch source {
        case .video(let video): video.mediaTime(at: now)
        case .audio(let audio): audio.mediaTime(at: now)
        }
    }

    /// What is due.
    func duePackets(at now: MonotonicTime, random: inout RandomSource) -> [MediaPacket] {
        switch source {
        case .video(var video):
            defer { source = .video(video) }
            return video.duePackets(at: now, random: &random)
        case .audio(var audio):
            defer { source = .audio(audio) }
            return audio.duePackets(at: now)
        }
    }
}
