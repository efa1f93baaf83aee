import Synchronization

/// What publishers of a scenario send.
public struct MediaSettings: Sendable, Hashable {
    /// One video layer, as a publisher of simulcast sends several.
    public struct Layer: Sendable, Hashable {
        public var width: Int
        public var height: Int
        public var kilobitsPerSecond: Int
        public var framesPerSecond: Int
    }
    /// The video layers, smallest first; more than one is simulcast. Empty: no video.
    public var layers: [Layer] = []
    /// What they are encoded with.
    public var codec = VideoCodec.vp8
    /// Opus; 0: no audio.
    public var audioKilobitsPerSecond = 32
    /// Audio frames are sent in bursts of so many milliseconds; 0: each at its time.
    public var audioBurstMilliseconds = 0
    /// Seconds until a loop starts again, with a keyframe.
    public var loopSeconds = 10

    public init() {}
}

/// The encoded loops of a run, made once and shared by all publishers.
final class LoopLibrary: Sendable {
    private let video: [PacketLoop]
    private let audio: PacketLoop?

    /// Encodes everything that `settings` requests. Takes about a second for ten seconds of video.
    init(_ settings: MediaSettings) throws(LoadError) {
        do throws(EncoderError) {
            var video: [PacketLoop] = []
            for layer in settings.layers {
                let loop = try EncodedLoop.video(
                    settings.codec, width: layer.width, height: layer.height, framesPerSecond: layer.framesPerSecond,
                    kilobitsPerSecond: layer.kilobitsPerSecond, seconds: settings.loopSeconds)
                video.append(settings.codec == .vp8 ? PacketLoop(vp8: loop) : PacketLoop(h264: loop))
            }
            self.video = video
            // The trace takes its share of the bit rate.
            let traceRate = Trace.length * 8 * 50 / 1_000
            audio =
                settings.audioKilobitsPerSecond == 0
                ? nil
                : PacketLoop(
                    opus: try .opus(
                        kilobitsPerSecond: max(8, settings.audioKilobitsPerSecond - traceRate),
                        seconds: settings.loopSeconds))
        } catch { throw .library("an encoder failed with code \(error.code)") }
    }

    func loop(for plan: SendPlan) -> PacketLoop {
        guard plan.kind == .video else {
            guard let audio else { preconditionFailure("a plan sends audio that the scenario does not have") }
            return audio
        }
        return video[plan.layer]
    }

    /// Bits per second of a video layer as encoded, for the report.
    func videoRate(_ layer: Int) -> Double {
        let loop = video[layer]
        return Double(loop.memory.count * 8) * 1e9 / Double(loop.nanosecondsPerFrame * Int64(loop.frames.count))
    }
}
