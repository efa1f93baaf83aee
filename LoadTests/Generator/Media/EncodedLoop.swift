import CSyntheticMedia

/// Frames from a real encoder, made once at the start.
struct EncodedLoop: Sendable {
    /// One encoded frame.
    struct Frame: Sendable {
        var bytes: [UInt8]
        /// Whether decoding can start here.
        var isKey: Bool
    }

    var frames: [Frame]
    /// RTP clock ticks from one frame to the next.
    var ticksPerFrame: UInt32
    /// Nanoseconds from one frame to the next.
    var nanosecondsPerFrame: Int64

    /// A moving image of which only the first frame is a keyframe. Throws libvpx's or OpenH264's error code.
    static func video(
        _ codec: VideoCodec, width: Int, height: Int, framesPerSecond: Int, kilobitsPerSecond: Int, seconds: Int
    ) throws(EncoderError) -> EncodedLoop {
        let count = framesPerSecond * seconds
        let frames = try collect { sink, context in
            switch codec {
            case .vp8:
                synthetic_vp8(
                    Int32(width), Int32(height), Int32(framesPerSecond), Int32(kilobitsPerSecond), Int32(count),
                    Int32(count), sink, context)
            case .h264:
                synthetic_h264(
                    Int32(width), Int32(height), Int32(framesPerSecond), Int32(kilobitsPerSecond), Int32(count), sink,
                    context)
            }
        }
        return EncodedLoop(
            frames: frames, ticksPerFrame: UInt32(90_000 / framesPerSecond),
            nanosecondsPerFrame: 1_000_000_000 / Int64(framesPerSecond))
    }

    /// A tone as Opus in frames of 20 ms. Throws libopus's error code.
    static func opus(kilobitsPerSecond: Int, seconds: Int) throws(EncoderError) -> EncodedLoop {
        let frames = try collect { sink, context in
            synthetic_opus(Int32(kilobitsPerSecond), Int32(50 * seconds), sink, context)
        }
        return EncodedLoop(frames: frames, ticksPerFrame: 960, nanosecondsPerFrame: 20_000_000)
    }

    private final class Collector { var frames: [Frame] = [] }

    private static func collect(
        _ encode: (synthetic_frame_sink, UnsafeMutableRawPointer) -> Int32
    ) throws(EncoderError) -> [Frame] {
        let collector = Collector()
        let code = encode(
            { context, bytes, length, isKey in
                guard let context else { return }
                let frame = Frame(bytes: Array(UnsafeBufferPointer(start: bytes, count: length)), isKey: isKey != 0)
                Unmanaged<Collector>.fromOpaque(context).takeUnretainedValue().frames.append(frame)
            }, Unmanaged.passUnretained(collector).toOpaque())
        guard code == 0, !collector.frames.isEmpty else { throw EncoderError(code: code) }
        return collector.frames
    }
}

/// An encoder's own error code.
struct EncoderError: Error {
    var code: Int32
}
