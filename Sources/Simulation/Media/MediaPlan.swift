public import MediaControl
public import Primitives

/// What a simulated camera or screen sends. May be changed while it sends.
public struct VideoPlan: Sendable {
    /// One simulcast layer, or the only stream.
    public struct Layer: Sendable {
        /// `a=rid`; nil for a plain stream, whose SSRC the SDP names.
        public var rid: String?
        public var width: Int
        public var height: Int
        public var bitrate: Bitrate
        /// The publisher sends it; browsers stop and start layers as their own uplink allows.
        public var isActive = true

        /// A layer of this size and rate.
        public init(rid: String? = nil, width: Int, height: Int, bitrate: Bitrate) {
            self.rid = rid
            self.width = width
            self.height = height
            self.bitrate = bitrate
        }
    }

    public var codec = Codec.vp8
    public var source = TrackSource.camera
    public var layers: [Layer]
    public var framesPerSecond = 30.0
    /// VP8, VP9 and AV1.
    public var temporalLayers = 1
    /// Layers are inside the stream, and each frame names those that it refers to: VP9's flexible mode, AV1's dependency descriptors.
    public var isScalable = false
    /// Spatial layers inside each scalable stream, each twice as large as the one below.
    public var spatialLayers = 1
    /// Higher spatial layers refer to lower ones in keyframes only (L3T3_KEY), not in every frame (L3T3).
    public var refersUpInKeyframesOnly = true
    /// How many times larger a keyframe is than another frame.
    public var keyframeScale = 4
    /// Frames differ in size by up to this share, evenly spread.
    public var sizeSpread = 0.2

    /// One stream.
    public static func camera(
        _ codec: Codec = .vp8, width: Int = 640, height: Int = 360, bitrate: Bitrate = .kilobitsPerSecond(500),
        framesPerSecond: Double = 30
    ) -> VideoPlan {
        var plan = VideoPlan(layers: [Layer(width: width, height: height, bitrate: bitrate)])
        plan.codec = codec
        plan.framesPerSecond = framesPerSecond
        return plan
    }

    /// Three layers as Chromium makes them from a 720p camera.
    public static func simulcast(_ codec: Codec = .vp8, framesPerSecond: Double = 30) -> VideoPlan {
        var plan = VideoPlan(layers: [
            Layer(rid: "q", width: 320, height: 180, bitrate: .kilobitsPerSecond(150)),
            Layer(rid: "h", width: 640, height: 360, bitrate: .kilobitsPerSecond(500)),
            Layer(rid: "f", width: 1_280, height: 720, bitrate: .kilobitsPerSecond(1_700)),
        ])
        plan.codec = codec
        plan.framesPerSecond = framesPerSecond
        return plan
    }

    /// One stream of a 720p camera with layers inside, VP9 or AV1; `keyframesOnly`: one of the KEY modes.
    public static func scalable(
        _ codec: Codec = .vp9, spatial: Int, temporal: Int, keyframesOnly: Bool = true
    ) -> VideoPlan {
        var plan = camera(codec, width: 1_280, height: 720, bitrate: .kilobitsPerSecond(1_800))
        plan.isScalable = true
        plan.spatialLayers = spatial
        plan.temporalLayers = temporal
        plan.refersUpInKeyframesOnly = keyframesOnly
        return plan
    }

    /// These layers, with 30 frames per second of VP8.
    public init(layers: [Layer]) { self.layers = layers }
}

/// What a simulated microphone sends. May be changed while it sends.
public struct AudioPlan: Sendable {
    /// Audio in one packet (10 to 120 ms are legal).
    public var packetDuration = TimeSpan.milliseconds(20)
    /// Audio in each callback of the capturer, used in turn; packets that are full by then are sent at once. Empty: one packet per
    /// callback. Long callbacks make bursts, odd ones uneven spacing.
    public var callbacks: [TimeSpan] = []
    /// Silence after each packet, which is not sent (DTX, RFC 7587 section 3.1.3); the media clock continues. Not with ``callbacks``.
    public var pause = TimeSpan.zero
    /// Bytes of a packet's payload.
    public var payloadBytes = 80
    /// Level of RFC 6464: 0 is loudest, 127 silence.
    public var level: UInt8 = 30

    /// Opus, 20 ms.
    public init() {}

    /// Opus in packets of this length.
    public init(packetDuration: TimeSpan) { self.packetDuration = packetDuration }
}
