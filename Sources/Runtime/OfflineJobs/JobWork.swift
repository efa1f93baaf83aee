import Glibc
import NetworkIO
import Primitives
import Recorder

/// One running job, on its thread: the programs that it runs, and its progress.
struct JobWork {
    let job: RecordingJob
    let recording: RecordingSummary
    let books: JobBooks
    let program: ChildProgram
    /// Threads that encode.
    let threads: Int
    /// Why the work must end, if it must.
    let fault: @Sendable () -> JobFault?
    /// Called with the progress, 0 to 1, and at the end of each process with the processor time that it used.
    let progress: (Double) -> Void
    let used: (TimeSpan) -> Void
    /// Called with ffmpeg's message when it fails.
    let complain: (String) -> Void

    /// The name under which the file is written until it is complete.
    private var unfinished: String { "\(job.sid).new\(job.fileSuffix)" }

    /// Does the work; returns the resulting file.
    func run() throws(JobFault) -> RecordingJob.File {
        let timeline = books.timeline(of: recording)
        guard !timeline.unreadable.contains(where: { job.needs($0) }) else { throw .unreadable }
        let length: Int64
        switch job.kind {
        case .composition: length = try compose(timeline)
        case .transcode: length = try transcode(timeline)
        case .copy: length = try copy(timeline)
        }
        guard var file = books.content(of: unfinished, in: recording, length: length) else { throw .unreadable }
        file.name = job.sid + job.fileSuffix
        guard books.finish(unfinished, as: file.name, in: recording) else { throw .diskError }
        return file
    }

    // MARK: - Compositions

    /// The duration of the file, in microseconds, here and below.
    private func compose(_ timeline: RecordingTimeline) throws(JobFault) -> Int64 {
        guard let layout = job.layout, let width = job.width, let height = job.height, let encoding = job.encoding,
            timeline.length > 0
        else { throw .empty }
        let audio = timeline.parts.filter { !$0.isVideo }
        let mixes = audio.count > JobArguments.mostMixed ? audio.count / JobArguments.mostMixed + 1 : 0
        let shared = SharedFile.all(of: timeline, prefix: job.sid)
        let copied = recording.storedFiles.reduce(0) { sum, file in
            sum + (shared.contains { $0.name == file.name } ? file.bytes : 0)
        }
        try reserve(timeline.length, encoding, beside: Int64(mixes) * JobArguments.mixBitrate, and: copied)
        let arguments = arguments(width: width, height: height, encoding)
        // Finding the speakers takes a small share of the time, as does the audio at the end.
        let listens = layout == .grid ? 0.0 : 0.1
        let turns = layout == .grid ? [] : try speakers(timeline, share: 0...listens)
        let scenes = SceneList(timeline, frameRate: encoding.frameRate).scenes(
            TileLayout(layout: layout, width: width, height: height), turns: turns)
        guard let frames = scenes.last?.frames.upperBound else { throw .empty }
        let apart = try split(timeline, shared)
        var names: [String] = []
        for (index, scene) in scenes.enumerated() {
            let name = "\(job.sid).\(index).mp4"
            let share = [scene.frames.lowerBound, scene.frames.upperBound].map {
                listens + (0.9 - listens) * Double($0) / Double(frames)
            }
            try run(
                arguments.scene(scene, of: apart, into: name), share: share[0]...share[1],
                length: Int64(scene.frames.count) * 1_000_000 / Int64(encoding.frameRate))
            names.append(name)
        }
        let list = "\(job.sid).list"
        do {
            try books.write(JobArguments.list(of: names), to: list, in: recording)
        } catch {
            throw .diskError
        }
        let mixed = try mix(audio, timeline.length, share: 0.9...0.95)
        try run(
            arguments.whole(list: list, audio: mixed, length: timeline.length, into: unfinished),
            share: (mixes > 0 ? 0.95 : 0.9)...1, length: timeline.length)
        return timeline.length
    }

    /// The timeline with each video of the shared files in a separate file.
    private func split(
        _ timeline: RecordingTimeline, _ shared: [SharedFile]
    ) throws(JobFault) -> RecordingTimeline {
        var timeline = timeline
        for file in shared {
            let found: [Int: Int64]?
            do throws(SystemError) {
                found = try books.split(file.name, into: file.targets, in: recording) { fault() != nil }
            } catch {
                throw error.code == ENOSPC ? .diskFull : .diskError
            }
            guard let starts = found else { throw fault() ?? .unreadable }
            timeline = file.replaced(in: timeline, starts)
        }
        return timeline
    }

    /// The audio in as few files as one process can mix: more are mixed in groups first.
    private func mix(
        _ parts: [RecordingTimeline.Part], _ length: Int64, share: ClosedRange<Double>, round: Int = 0
    ) throws(JobFault) -> [RecordingTimeline.Part] {
        let most = JobArguments.mostMixed
        guard parts.count > most else { return parts }
        var groups: [RecordingTimeline.Part] = []
        for start in stride(from: 0, to: parts.count, by: most) {
            let end = min(start + most, parts.count)
            let name = "\(job.sid).audio.\(round).\(groups.count).mp4"
            let bounds = [start, end].map {
                share.lowerBound + (share.upperBound - share.lowerBound) * Double($0) / Double(parts.count)
            }
            try run(
                JobArguments.mix(Array(parts[start..<end]), into: name), share: bounds[0]...bounds[1], length: length)
            groups.append(
                RecordingTimeline.Part(
                    file: name, track: "", participant: "", isVideo: false, start: 0, length: length,
                    spans: [0..<length]))
        }
        return try mix(groups, length, share: share.upperBound...share.upperBound, round: round + 1)
    }

    private func speakers(
        _ timeline: RecordingTimeline, share: ClosedRange<Double>
    ) throws(JobFault) -> [SpeakerFinder.Turn] {
        var finder = SpeakerFinder()
        let audio = timeline.parts.filter { !$0.isVideo }
        let all = audio.reduce(0) { $0 + $1.length }
        var done: Int64 = 0
        for part in audio {
            var meter = EnergyMeter()
            try execute(JobArguments.samples(of: part)) { bytes in
                meter.receive(bytes) { energy, moment in
                    finder.add(
                        energy, of: part.participant,
                        at: part.start + Int64(Double(moment) * part.stretch))
                }
                let heard = done + meter.samples * 1_000_000 / Int64(EnergyMeter.sampleRate)
                progress(share.upperBound * min(1, Double(heard) / Double(max(1, all))))
            }
            done += part.length
        }
        return finder.turns { fault() != nil }
    }

    // MARK: - Transcoding

    /// If the rate misses the target by more than this, the pass is repeated.
    private static let tolerance = 0.03

    private func transcode(_ timeline: RecordingTimeline) throws(JobFault) -> Int64 {
        guard let part = timeline.parts.first(where: { $0.file == job.source && $0.isVideo }), part.length > 0,
            let encoding = job.encoding
        else { throw .empty }
        try reserve(part.length, encoding)
        let (width, height) = size(of: part)
        func pass(_ number: Int, _ bitrate: Int64, _ share: ClosedRange<Double>) throws(JobFault) {
            var encoding = encoding
            encoding.bitrate = bitrate
            try run(
                arguments(width: width, height: height, encoding).pass(
                    number, of: part, log: job.sid, into: unfinished), share: share, length: part.length)
        }
        let bitrate = encoding.bitrate
        try pass(1, bitrate, 0...0.4)
        try pass(2, bitrate, 0.4...0.8)
        // Short or simple videos make the rate hard to hit: the second try compensates for the first one's error.
        let measured = books.content(of: unfinished, in: recording, length: part.length)?.videoBitrate ?? bitrate
        let ratio = Double(bitrate) / Double(max(1, measured))
        if abs(1 / ratio - 1) > Self.tolerance {
            try pass(2, Int64(Double(bitrate) * min(max(ratio, 0.5), 2)), 0.8...1)
        }
        return part.length
    }

    /// The job's value, or the source's.
    private func size(of part: RecordingTimeline.Part) -> (width: Int, height: Int) {
        let files = recording.tracks.filter { $0.sid == part.track }.flatMap(\.files).filter {
            $0.name == part.file || $0.joined == part.file
        }
        let own = (width: files.compactMap(\.width).max() ?? 1_280, height: files.compactMap(\.height).max() ?? 720)
        let turned = part.rotation % 180 == 0 ? own : (width: own.height, height: own.width)
        return ((job.width ?? turned.width) & ~1, (job.height ?? turned.height) & ~1)
    }

    // MARK: - Copies

    private func copy(_ timeline: RecordingTimeline) throws(JobFault) -> Int64 {
        guard let container = job.container, let source = recording.storedFiles.first(where: { $0.name == job.source }),
            let length = timeline.parts.filter({ $0.file == source.name }).map(\.length).max()
        else { throw .empty }
        guard books.hasRoom(beside: source.bytes) else { throw .diskFull }
        try run(JobArguments.copy(of: source.name, in: container, into: unfinished), share: 0...1, length: length)
        return length
    }

    // MARK: - Common parts

    private func arguments(width: Int, height: Int, _ encoding: RecordingJob.Encoding) -> JobArguments {
        JobArguments(
            width: width, height: height, frameRate: encoding.frameRate, bitrate: encoding.bitrate,
            codec: encoding.codec, threads: threads)
    }

    /// Requires disk space: the written file exists twice for a while, together with others of `bitrate` bits per second, and of `copied` bytes.
    private func reserve(
        _ length: Int64, _ encoding: RecordingJob.Encoding, beside bitrate: Int64 = 0, and copied: Int64 = 0
    ) throws(JobFault) {
        let bytes = length / 1_000_000 * (2 * (encoding.bitrate + 128_000) + bitrate) / 8
        guard books.hasRoom(beside: bytes + copied) else { throw .diskFull }
    }

    /// Runs ffmpeg for `length` microseconds of output, which are `share` of the job.
    private func run(_ arguments: [String], share: ClosedRange<Double>, length: Int64) throws(JobFault) {
        var reader = ProgressReader()
        try execute(arguments) { bytes in
            guard reader.receive(bytes) else { return }
            let part = min(1, Double(reader.position) / Double(max(1, length)))
            progress(share.lowerBound + (share.upperBound - share.lowerBound) * part)
        }
        progress(share.upperBound)
    }

    private func execute(_ arguments: [String], _ output: (ArraySlice<UInt8>) -> Void) throws(JobFault) {
        let end = try program.run(arguments, fault: fault, output: output)
        used(end.processorTime)
        guard end.code != 0 else { return }
        complain("ended with \(end.code): \(end.words)")
        throw books.hasRoom(beside: 0) ? .programFailed : .diskFull
    }
}

extension RecordingJob {
    /// Whether it reads the recording's file with this name: a composition uses all of them, other jobs have one source, and another file that cannot be read
    /// is no obstacle.
    func needs(_ file: String) -> Bool { kind == .composition || file == source }
}
