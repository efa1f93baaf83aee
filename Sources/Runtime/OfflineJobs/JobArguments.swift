import Recorder

/// The arguments of ffmpeg. Files are named by their names in the recording's folder, in which it runs: letters, digits, `_`, `-` and `.` that the server
/// chose. No text from clients gets into arguments or filters, and no shell reads them.
struct JobArguments {
    let width: Int
    let height: Int
    let frameRate: Int
    let bitrate: Int64
    let codec: RecordingJob.VideoCodec
    /// Threads that encode.
    let threads: Int

    private static let common = ["-hide_banner", "-nostdin", "-y", "-v", "error", "-filter_complex_threads", "1"]
    private static let reported = ["-nostats", "-stats_period", "0.5", "-progress", "pipe:1"]

    // MARK: - Compositions

    /// Encodes one scene into the file `name`.
    func scene(_ scene: Scene, of timeline: RecordingTimeline, into name: String) -> [String] {
        let start = Double(scene.frames.lowerBound) / Double(frameRate)
        var inputs: [String] = []
        // The background has the duration of the scene, in case there is nothing on it.
        let seconds = Self.number(Double(scene.frames.count) / Double(frameRate))
        var filters = ["color=c=black:s=\(width)x\(height):r=\(frameRate):d=\(seconds),format=yuv420p[b0]"]
        for (index, tile) in scene.tiles.enumerated() {
            let part = timeline.parts[tile.part]
            // The time in the file at which the scene begins: read from the keyframe before it, so that the image at that time can be decoded.
            let moment = (start - Double(part.start) / 1_000_000) / part.stretch
            let seek = moment > 0 ? ["-noaccurate_seek", "-ss", Self.number(moment)] : []
            inputs += Self.video + seek + Self.input(part.file)
            let delay = moment > 0 ? "" : "+\(Self.number(-moment * part.stretch))/TB"
            filters.append(
                "[\(index):\(part.stream)]"
                    + fitted(tile.frame.width, tile.frame.height, rotation: part.rotation)
                    + ",setpts=PTS*\(Self.number(part.stretch))\(delay),fps=\(frameRate):start_time=0"
                    + ",tpad=stop=-1:stop_mode=clone[t\(index)]")
            filters.append(
                "[b\(index)][t\(index)]overlay=x=\(tile.frame.x):y=\(tile.frame.y):format=yuv420:eof_action=repeat[b\(index + 1)]"
            )
        }
        filters.append("[b\(scene.tiles.count)]null[v]")
        return Self.common + inputs
            + [
                "-filter_complex", filters.joined(separator: ";"), "-map", "[v]", "-frames:v",
                String(scene.frames.count),
            ]
            + encoder + ["-maxrate", String(bitrate * 3 / 2), "-bufsize", String(bitrate * 2)]
            // Frames in display order: scenes follow each other without a gap, and rooms play the file.
            + ["-bf", "0", "-an", "-video_track_timescale", "90000", "-f", "mp4"] + Self.reported + ["./\(name)"]
    }

    /// The list of scenes' files for `whole`.
    static func list(of names: [String]) -> String { names.map { "file '\($0)'\n" }.joined() }

    /// Joins all scenes of the list, and the audio of these parts, into the file `name`; with this duration in microseconds.
    func whole(
        list: String, audio parts: [RecordingTimeline.Part], length: Int64, into name: String
    ) -> [String] {
        var inputs = ["-f", "concat", "-safe", "1", "-i", "./\(list)"]
        var audio: [String] = []
        if !parts.isEmpty {
            let filter = Self.mixing(parts, firstInput: 1) + ",alimiter=limit=0.95,apad[a]"
            for part in parts { inputs += Self.input(part.file) }
            audio = ["-filter_complex", filter, "-map", "[a]", "-c:a", "aac", "-b:a", "128k"]
        }
        let seconds = Self.number(Double(length) / 1_000_000)
        return Self.common + inputs + audio + ["-map", "0:v", "-c:v", "copy", "-t", seconds]
            + ["-movflags", "+faststart", "-f", "mp4"] + Self.reported + ["./\(name)"]
    }

    /// Files whose audio one process mixes: each costs it a thread with its address space, an open file and a hundred bytes of a filter, and all of these are
    /// limited.
    static let mostMixed = 64
    /// Bits per second of a temporary file with mixed audio: so many that nobody hears a difference.
    static let mixBitrate: Int64 = 256_000

    /// Mixes the audio of parts into the file `name`, which begins with the recording.
    static func mix(_ parts: [RecordingTimeline.Part], into name: String) -> [String] {
        let inputs: [String] = parts.flatMap { input($0.file) }
        let filter = ["-filter_complex", mixing(parts, firstInput: 0) + "[a]", "-map", "[a]"]
        // Its samples are floating-point numbers: the sum of loud parts is limited only at the end.
        let codec = ["-c:a", "libopus", "-b:a", String(mixBitrate), "-f", "mp4"]
        return common + inputs + filter + codec + reported + ["./\(name)"]
    }

    /// A filter that mixes the audio of parts, each at its time, whose inputs begin with number `firstInput`.
    private static func mixing(_ parts: [RecordingTimeline.Part], firstInput: Int) -> String {
        let placed = parts.enumerated().map { index, part -> String in
            let delay = number(Double(part.start) / 1_000_000)
            return "[\(firstInput + index):\(part.stream)]asetpts=PTS*\(number(part.stretch))+\(delay)/TB"
                + ",aresample=48000:async=1000:first_pts=0,aformat=sample_fmts=fltp:channel_layouts=stereo[a\(index)]"
        }
        let all = parts.indices.map { "[a\($0)]" }.joined()
        return (placed + ["\(all)amix=inputs=\(parts.count):duration=longest:normalize=0"]).joined(separator: ";")
    }

    /// The audio of a part as samples for `EnergyMeter`.
    static func samples(of part: RecordingTimeline.Part) -> [String] {
        common + input(part.file)
            + [
                "-map", "0:\(part.stream)", "-af", "aresample=\(EnergyMeter.sampleRate):async=1:first_pts=0", "-ac",
                "1",
            ]
            + ["-f", "s16le", "pipe:1"]
    }

    // MARK: - Transcoding

    /// The first video of a file, in one of two passes; the second one writes the file `name`, and copies the audio. `log` is the file in which the first one
    /// stores its results.
    func pass(_ number: Int, of part: RecordingTimeline.Part, log: String, into name: String) -> [String] {
        let filter = fitted(width, height, rotation: part.rotation) + ",fps=\(frameRate)"
        var arguments = Self.common + Self.video + Self.input(part.file)
        arguments += ["-map", "0:\(part.stream)", "-filter:v", filter] + encoder
        arguments += ["-pass", String(number), "-passlogfile", "./\(log)"]
        guard number == 2 else { return arguments + ["-an", "-f", "null"] + Self.reported + ["-"] }
        return arguments + ["-map", "0:a?", "-c:a", "copy", "-movflags", "+faststart", "-f", "mp4"] + Self.reported
            + ["./\(name)"]
    }

    // MARK: - Copies

    /// Copies all audio and videos of a file into another container, with its index in front, so that players begin at once and seek without reading its end.
    static func copy(of file: String, in container: RecordingJob.Container, into name: String) -> [String] {
        let streams = ["-map", "0:v?", "-map", "0:a?", "-c", "copy"]
        switch container {
        case .webm:
            return common + input(file) + streams + ["-cues_to_front", "1", "-f", "webm"] + reported + ["./\(name)"]
        }
    }

    // MARK: - Common parts

    /// Reads a file as a movie, whatever its bytes look like, and opens nothing but files.
    private static func input(_ name: String) -> [String] {
        ["-protocol_whitelist", "file", "-f", "mov", "-i", "./\(name)"]
    }

    /// Sizes change within a file: the filters accept each frame as it is, and rotate it themselves.
    private static let video = ["-threads", "1", "-noautorotate", "-reinit_filter", "0"]

    /// Fits the whole frame into the given size, whatever its own size, rotated by `rotation` degrees clockwise.
    private func fitted(_ width: Int, _ height: Int, rotation: Int) -> String {
        let turns = [90: ",transpose=clock", 180: ",hflip,vflip", 270: ",transpose=cclock"]
        let isUpright = rotation % 180 == 0
        let (wide, high) = isUpright ? (width, height) : (height, width)
        return "scale=w=\(wide):h=\(high):force_original_aspect_ratio=decrease:force_divisible_by=2:flags=bilinear"
            + ",format=yuv420p,pad=\(wide):\(high):(ow-iw)/2:(oh-ih)/2:color=black:eval=frame,setsar=1"
            + (turns[rotation] ?? "")
    }

    private var encoder: [String] {
        let rate = ["-b:v", String(bitrate), "-g", String(frameRate * 2), "-threads", String(threads)]
        switch codec {
        case .h264: return ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p"] + rate
        case .vp9:
            return ["-c:v", "libvpx-vp9", "-deadline", "good", "-cpu-used", "4", "-row-mt", "1", "-pix_fmt", "yuv420p"]
                + rate
        }
    }

    /// A number in the form that filters read: six decimals, whatever the locale.
    static func number(_ value: Double) -> String {
        let micro = Int64((value * 1_000_000).rounded())
        let digits = String(micro.magnitude % 1_000_000)
        return (micro < 0 ? "-" : "") + String(micro.magnitude / 1_000_000) + "."
            + String(repeating: "0", count: 6 - digits.count) + digits
    }
}
