import Movies
import Primitives

/// One track of a joined movie: its tables, and where its chunks come from.
struct JoinedTrack: Sendable {
    /// A run of samples that are contiguous in the movie, a second long.
    struct Chunk: Sendable {
        /// When it is shown, in microseconds.
        var time: Int64
        var samples: UInt32 = 0
        var parts: [Part] = []
    }

    /// Bytes of a chunk.
    enum Part: Sendable {
        case copy(source: Int, offset: Int64, length: Int)
        /// Silence of one packet.
        case silence([UInt8])
        /// Parameter sets by number; empty if the track has only one.
        case sets(Int)
    }

    private struct Run {
        var count: UInt32
        var value: UInt32
    }

    /// Opus frames of 20 and 2.5 ms without audio (RFC 6716 section 3.1: CELT, fullband, stereo).
    private static let silence: (long: [UInt8], short: [UInt8]) = ([0xfc, 0xff, 0xfe], [0xe4, 0xff, 0xfe])
    private static let silenceUnits: (long: Int64, short: Int64) = (960, 120)
    /// Silence of an hour and a half, 270,000 samples: less than a part of a recording leaves for it. After longer silence another track begins.
    private static let longestSilence: Int64 = 5_400 * 48_000
    /// Chunks of the tracks take turns.
    private static let chunkLength: Int64 = 1_000_000

    /// What continues from file to file in it.
    let stream: Int
    private let isVideo: Bool
    private let timescale: Int64
    private let rotation: Rotation
    private let size: VideoSize?
    private let description: [UInt8]
    /// Parameter sets of its files, each once.
    private var sets: [[UInt8]] = []

    private(set) var chunks: [Chunk] = []
    private var sizes: [UInt32] = []
    private var durations: [Run] = []
    /// Sync samples from 1, and the number of the parameter sets before each.
    private var syncSamples: [(sample: UInt32, sets: Int32)] = []
    /// The time of the first sample, and the earliest time of the next, in units since the timeline's beginning.
    private var first: Int64?
    private var next = Int64.min / 2
    /// The time and own duration of the last sample, whose duration in the movie is known only with the next one.
    private var last: (time: Int64, duration: Int64)?

    /// A track that begins with `piece`.
    init(_ piece: JoinedPiece, stream: Int) {
        self.stream = stream
        isVideo = piece.track.isVideo
        timescale = Int64(piece.track.timescale)
        rotation = piece.track.rotation
        size = piece.track.format.size
        description = piece.track.description
    }

    /// Its samples, with silence.
    var sampleCount: Int { sizes.count }

    /// When it begins and ends, in microseconds.
    var start: Int64 { microseconds(first ?? 0) }
    var end: Int64 { microseconds(last.map { $0.time + $0.duration } ?? 0) }

    /// Rounded to the nearest unit, so that times that were converted from units are unchanged.
    private func units(_ microseconds: Int64) -> Int64 {
        let scaled = microseconds * timescale
        return (scaled + (scaled < 0 ? -500_000 : 500_000)) / 1_000_000
    }
    private func microseconds(_ units: Int64) -> Int64 { units * 1_000_000 / timescale }

    /// Whether `piece` can follow in this track, if its first sample is shown at microsecond `moment`: there is one matrix for all, decoders accept one codec,
    /// and audio has no holes.
    func continues(with piece: JoinedPiece, from moment: Int64) -> Bool {
        piece.entry == description[4..<8] && piece.track.rotation == rotation
            && Int64(piece.track.timescale) == timescale
            && (isVideo || units(moment) - next <= Self.longestSilence)
    }

    // MARK: - Samples

    /// Adds the samples of a file.
    mutating func append(_ piece: JoinedPiece, source: Int, place: (Int64) -> Int64) {
        let samples = piece.track.samples
        let begin = units(place(samples[0].time))
        let number = sets(of: piece)
        if !isVideo, first != nil { fill(upTo: begin) }
        let audioStart = max(begin, next)
        var startsChunk = true
        for sample in samples {
            // Audio is contiguous already; video is shown by the publisher's clock.
            let time =
                isVideo ? max(units(place(sample.time)), next) : audioStart + sample.time - samples[0].time
            add(
                .copy(source: source, offset: sample.offset, length: Int(sample.length)), length: sample.length,
                time: time,
                duration: Int64(sample.duration), sets: sample.isSync && isVideo ? number : nil,
                startsChunk: startsChunk)
            startsChunk = false
        }
    }

    private mutating func sets(of piece: JoinedPiece) -> Int {
        if let known = sets.firstIndex(of: piece.sets) { return known }
        sets.append(piece.sets)
        return sets.count - 1
    }

    /// Silence for as long as nothing was recorded, because players would leave out the gap.
    private mutating func fill(upTo time: Int64) {
        while time - next >= Self.silenceUnits.short {
            let isLong = time - next >= Self.silenceUnits.long
            let bytes = isLong ? Self.silence.long : Self.silence.short
            add(
                .silence(bytes), length: UInt32(bytes.count), time: next,
                duration: isLong ? Self.silenceUnits.long : Self.silenceUnits.short, sets: nil, startsChunk: false)
        }
    }

    /// `sets`: it is a sync sample of a video.
    private mutating func add(
        _ part: Part, length: UInt32, time: Int64, duration: Int64, sets number: Int?, startsChunk: Bool
    ) {
        if let last { note(duration: time - last.time) }
        first = first ?? time
        last = (time, duration)
        // Video frames shown at equal times are moved a unit apart; audio keeps its length.
        next = time + (isVideo ? 1 : duration)
        let moment = microseconds(time)
        if startsChunk || chunks.isEmpty || moment - chunks[chunks.count - 1].time >= Self.chunkLength {
            chunks.append(Chunk(time: moment))
        }
        let chunk = chunks.count - 1
        if let number {
            syncSamples.append((UInt32(sizes.count + 1), Int32(number)))
            chunks[chunk].parts.append(.sets(number))
        }
        sizes.append(length)
        chunks[chunk].samples += 1
        if case .copy(let source, let offset, let more) = part,
            case .copy(source, let before, let count)? = chunks[chunk].parts.last, before + Int64(count) == offset
        {
            chunks[chunk].parts[chunks[chunk].parts.count - 1] = .copy(
                source: source, offset: before, length: count + more)
        } else {
            chunks[chunk].parts.append(part)
        }
    }

    private mutating func note(duration: Int64) {
        let value = UInt32(clamping: duration)
        if let run = durations.indices.last, durations[run].value == value {
            durations[run].count += 1
        } else {
            durations.append(Run(count: 1, value: value))
        }
    }

    // MARK: - Writing

    /// Then parameter sets other than the entry's are in the samples, before each sync sample.
    private var isInBand: Bool { sets.count > 1 }

    /// What the bytes of a chunk are.
    func steps(of chunk: Int) -> [JoinedMovie.Step] {
        chunks[chunk].parts.compactMap { part in
            switch part {
            case .copy(let source, let offset, let length): .copy(source: source, offset: offset, length: length)
            case .silence(let bytes): .write(bytes)
            case .sets(let number): isInBand ? .write(sets[number]) : nil
            }
        }
    }

    /// Writes its `trak` into a movie that begins at microsecond `start`; `offsets` are those of its chunks.
    func write(id: UInt32, after start: Int64, offsets: [Int64], _ writer: inout BoxWriter) {
        var finished = self
        if let last { finished.note(duration: last.duration) }
        let duration = (last.map { $0.time + $0.duration } ?? 0) - (first ?? 0)
        let head = Movie.Track(
            id: id, size: size, rotation: rotation, timescale: UInt32(timescale), duration: UInt64(duration),
            start: UInt64(JoinedMovie.units(self.start - start)),
            movieDuration: UInt64(duration * Int64(JoinedMovie.timescale) / timescale))
        var entry = description
        // Parameter sets in samples are what distinguishes avc3 (ISO/IEC 14496-15 section 5.4.2.1).
        if isInBand { entry.replaceSubrange(4..<8, with: "avc3".utf8) }
        Movie.track(head, &writer) {
            finished.writeTables(offsets, &$0)
        } description: {
            $0.write(bytes: entry)
        }
    }

    private func writeTables(_ offsets: [Int64], _ writer: inout BoxWriter) {
        writer.box("stts", version: 0) {
            $0.write(UInt32(durations.count))
            for run in durations {
                $0.write(run.count)
                $0.write(run.value)
            }
        }
        if isVideo, syncSamples.count < sizes.count {
            writer.box("stss", version: 0) {
                $0.write(UInt32(syncSamples.count))
                for (sample, _) in syncSamples { $0.write(sample) }
            }
        }
        let changes = chunks.indices.filter { $0 == 0 || chunks[$0].samples != chunks[$0 - 1].samples }
        writer.box("stsc", version: 0) {
            $0.write(UInt32(changes.count))
            for chunk in changes {
                $0.write(UInt32(chunk + 1))
                $0.write(chunks[chunk].samples)
                $0.write(UInt32(1))
            }
        }
        writer.box("stsz", version: 0) {
            $0.write(UInt32(0))
            $0.write(UInt32(sizes.count))
            for size in finalSizes() { $0.write(size) }
        }
        writer.box("co64", version: 0) {
            $0.write(UInt32(offsets.count))
            for offset in offsets { $0.write(UInt64(offset)) }
        }
    }

    private func finalSizes() -> [UInt32] {
        guard isInBand else { return sizes }
        var longer = sizes
        for (sample, number) in syncSamples { longer[Int(sample) - 1] += UInt32(sets[Int(number)].count) }
        return longer
    }
}
