import MediaControl
import Primitives

/// One packet before it has an RTP header.
struct MediaPacket: Sendable {
    var layer: Int
    var payload: [UInt8]
    /// Dependency descriptor; empty if there is none.
    var descriptor: [UInt8] = []
    var marker: Bool
    /// Media clock, counted from the source's start.
    var timestamp: UInt32
    /// Level of RFC 6464.
    var level: UInt8?
}

/// Frames by a plan.
struct VideoSource: Sendable {
    var plan: VideoPlan
    private(set) var nextFrame: MonotonicTime
    /// Layers that have to send a keyframe, one bit each.
    var wantsKeyframe: UInt32 = .max
    private var layers: [Encoder]
    private let start: MonotonicTime

    private enum Encoder: Sendable {
        case plain(SyntheticVideo)
        case scalable(ScalableVideo)
    }

    init(_ plan: VideoPlan, track: UInt64, at now: MonotonicTime, random: inout RandomSource) {
        self.plan = plan
        nextFrame = now
        start = now
        layers = plan.layers.enumerated().map { index, layer in
            let origin = MediaTrace.Origin(track: track, layer: index)
            // AV1 always has its descriptors here.
            guard plan.isScalable || plan.codec == .av1 else {
                return .plain(
                    SyntheticVideo(
                        codec: plan.codec, origin: origin, width: layer.width, height: layer.height, random: &random))
            }
            return .scalable(ScalableVideo(plan, layer: layer, origin: origin, random: &random))
        }
    }

    /// Frames made so far.
    func frames(ofLayer layer: Int) -> Int {
        switch layers[layer] {
        case .plain(let video): Int(video.frames)
        case .scalable(let video): Int(video.pictures)
        }
    }

    /// The media clock at a moment.
    func mediaTime(at now: MonotonicTime) -> UInt32 {
        UInt32(truncatingIfNeeded: (now - start).nanoseconds * 9 / 100_000)
    }

    /// No frame before `time`.
    mutating func hold(until time: MonotonicTime) { nextFrame = max(nextFrame, time) }

    /// The packets of the frame that is due.
    mutating func duePackets(at now: MonotonicTime, random: inout RandomSource) -> [MediaPacket] {
        let interval = TimeSpan(nanoseconds: Int64(1e9 / plan.framesPerSecond))
        nextFrame = now + interval
        let timestamp = mediaTime(at: now)
        var packets: [MediaPacket] = []
        for (index, layer) in plan.layers.enumerated() where layer.isActive {
            let isKey = wantsKeyframe & 1 << UInt32(index) != 0
            if isKey { wantsKeyframe &= ~(1 << UInt32(index)) }
            let bytes = size(of: layer, isKey: isKey, random: &random)
            let parts = frame(of: index, layer, isKey: isKey, bytes: bytes, at: now)
            for (part, packet) in parts.enumerated() {
                packets.append(
                    MediaPacket(
                        layer: index, payload: packet.payload, descriptor: packet.descriptor,
                        marker: part == parts.count - 1, timestamp: timestamp))
            }
        }
        return packets
    }

    private mutating func frame(
        of index: Int, _ layer: VideoPlan.Layer, isKey: Bool, bytes: Int, at now: MonotonicTime
    ) -> [ScalableVideo.Packet] {
        switch layers[index] {
        case .plain(var video):
            video.width = layer.width
            video.height = layer.height
            video.temporalLayers = plan.temporalLayers
            defer { layers[index] = .plain(video) }
            return video.frame(isKey: isKey, bytes: bytes, at: now).map { ScalableVideo.Packet(payload: $0) }
        case .scalable(var video):
            video.width = layer.width
            video.height = layer.height
            defer { layers[index] = .scalable(video) }
            return video.picture(isKey: isKey, bytes: bytes, at: now)
        }
    }

    private func size(of layer: VideoPlan.Layer, isKey: Bool, random: inout RandomSource) -> Int {
        let mean = Double(layer.bitrate.bitsPerSecond) / 8 / plan.framesPerSecond
        let spread = plan.sizeSpread > 0 ? Double.random(in: -plan.sizeSpread...plan.sizeSpread, using: &random) : 0
        return max(40, Int(mean * (1 + spread)) * (isKey ? plan.keyframeScale : 1))
    }
}

/// Audio by a plan.
struct AudioSource: Sendable {
    var plan: AudioPlan
    private(set) var nextCallback: MonotonicTime
    private(set) var packets: UInt32 = 0
    private let origin: MediaTrace.Origin
    private var timestamp: UInt32 = 0
    private var callback = 0
    /// Captured audio that waits for its packet to be full.
    private var captured = TimeSpan.zero

    init(_ plan: AudioPlan, track: UInt64, at now: MonotonicTime) {
        self.plan = plan
        nextCallback = now
        origin = .init(track: track, layer: 0)
    }

    /// The media clock at a moment: that of the next packet, less the time until then.
    func mediaTime(at now: MonotonicTime) -> UInt32 {
        timestamp &- UInt32(truncatingIfNeeded: (nextCallback - now).microseconds * 48 / 1_000)
    }

    /// Sends nothing before `time`; the media clock continues, as an audio device's does.
    mutating func hold(until time: MonotonicTime) {
        guard time > nextCallback else { return }
        timestamp &+= UInt32(truncatingIfNeeded: (time - nextCallback).microseconds * 48 / 1_000)
        nextCallback = time
    }

    /// Moves the media clock.
    mutating func jump(by ticks: UInt32) { timestamp &+= ticks }

    /// The packets of the callback that is due.
    mutating func duePackets(at now: MonotonicTime) -> [MediaPacket] {
        let length = plan.callbacks.isEmpty ? plan.packetDuration : plan.callbacks[callback % plan.callbacks.count]
        callback += 1
        nextCallback = now + length + plan.pause
        captured = captured + length
        var full: [MediaPacket] = []
        while captured >= plan.packetDuration {
            captured = captured - plan.packetDuration
            full.append(packet(at: now))
        }
        return full
    }

    /// One packet now.
    private mutating func packet(at now: MonotonicTime) -> MediaPacket {
        let length = plan.packetDuration + plan.pause
        defer { timestamp &+= UInt32(truncatingIfNeeded: length.microseconds * 48 / 1_000) }
        packets += 1
        // TOC (RFC 6716 section 3.1): configuration by duration, mono, one frame; longer ones count their frames.
        var payload: [UInt8] =
            switch plan.packetDuration.milliseconds {
            case ..<15: [0xf0]
            case ..<30: [0xf8]
            case let long: [0xfb, UInt8(long / 20)]
            }
        MediaTrace(origin: origin, frame: packets, index: 0, count: 1, time: now)
            .finish(&payload, length: plan.payloadBytes)
        return MediaPacket(layer: 0, payload: payload, marker: false, timestamp: timestamp, level: plan.level)
    }
}
