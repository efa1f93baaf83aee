import Movies
import Primitives
import Testing

@testable import MP4

/// A finished file of one track: `count` samples of `duration` units, every `keyEvery`th a sync sample, each of which says which it is.
private func file(
    _ entry: SampleEntry, _ name: String, count: Int, duration: UInt32, keyEvery: Int = 1, rotation: Rotation = .none
) -> [UInt8] {
    var writer = FragmentWriter()
    var file = MemoryFile()
    file.apply(writer.begin(TrackFormat(entry: entry, rotation: rotation)))
    for first in stride(from: 0, to: count, by: 30) {
        let numbers = first..<min(first + 30, count)
        let bytes = numbers.map { Array("\(name)\($0);".utf8) }
        let samples = zip(numbers, bytes).map { number, bytes in
            Sample(duration: duration, size: UInt32(bytes.count), isSync: number % keyEvery == 0)
        }
        for write in writer.append(
            samples, data: bytes.flatMap { $0 }, decodeTime: UInt64(first) * UInt64(duration))
        {
            file.apply(write)
        }
    }
    guard case .fragments(let table) = file.scan(), let end = table.finish() else { return [] }
    file.apply(end.table)
    file.apply(end.header)
    return file.bytes
}

/// The movie that `plan` makes of `sources`.
private func write(_ plan: JoinedMovie.Plan, _ sources: [[UInt8]]) -> [UInt8] {
    var bytes: [UInt8] = []
    for step in plan.steps {
        switch step {
        case .write(let more): bytes += more
        case .copy(let source, let offset, let length): bytes += sources[source][Int(offset)..<(Int(offset) + length)]
        }
    }
    return bytes
}

@Suite("Movies of several files")
struct JoinedMovieTests {
    private static let size = VideoSize(width: 640, height: 360)
    private static func h264(_ tag: UInt8) -> SampleEntry {
        .h264(sequenceSets: [[0x67, 0x42, 0xc0, 0x1f, tag]], pictureSets: [[0x68, tag]], size)
    }

    private struct Part {
        var bytes: [UInt8]
        var stream: Int
        /// In microseconds; the times of the file follow at their own speed, or as `speed` says.
        var start: Int64
        var speed = 1.0
    }

    private func join(_ parts: [Part]) throws -> (bytes: [UInt8], movie: MovieFile, plan: JoinedMovie.Plan) {
        var joined = JoinedMovie()
        for (index, part) in parts.enumerated() {
            let found = try read(part.bytes)
            let rate = Double(found.tracks[0].timescale)
            try joined.append(found, source: index, stream: part.stream) {
                part.start + Int64((Double($0) * 1e6 / rate * part.speed).rounded())
            }
        }
        let plan = try joined.plan()
        let bytes = write(plan, parts.map(\.bytes))
        return (bytes, try read(bytes), plan)
    }

    private func text(_ sample: MovieSample, in bytes: [UInt8]) -> String {
        String(decoding: bytes[Int(sample.offset)..<(Int(sample.offset) + Int(sample.length))], as: UTF8.self)
    }

    @Test("Audio and video keep their samples, their times and their clocks; what begins later is later by as much")
    func places() throws {
        let parts = [
            Part(
                bytes: file(.vp8(Self.size), "v", count: 90, duration: 3_000, keyEvery: 30), stream: 0, start: 1_400_000
            ),
            Part(bytes: file(.opus, "a", count: 100, duration: 960), stream: 1, start: 1_000_000),
        ]
        let (bytes, movie, plan) = try join(parts)
        #expect(plan.length == Int64(bytes.count) && plan.start == 1_000_000 && plan.duration == 3_400_000)
        #expect(movie.tracks.map(\.timescale) == [90_000, 48_000])
        let video = movie.tracks[0].samples, audio = movie.tracks[1].samples
        #expect(video.map(\.time) == Array(stride(from: Int64(36_000), to: 306_000, by: 3_000)))
        #expect(audio.map(\.time) == Array(stride(from: Int64(0), to: 96_000, by: 960)))
        #expect(video.indices.filter { video[$0].isSync } == [0, 30, 60])
        #expect(video.indices.allSatisfy { text(video[$0], in: bytes) == "v\($0);" })
        #expect(audio.indices.allSatisfy { text(audio[$0], in: bytes) == "a\($0);" })
    }

    @Test(
        "The table lies in front, and tracks take turns in the data: no second of one lies behind the next two of another"
    )
    func interleaving() throws {
        let (bytes, movie, _) = try join([
            Part(bytes: file(.vp8(Self.size), "v", count: 300, duration: 3_000), stream: 0, start: 0),
            Part(bytes: file(.opus, "a", count: 500, duration: 960), stream: 1, start: 0),
        ])
        #expect(Array(bytes[36..<40]) == Array("moov".utf8) || Array(bytes[32..<36]) == Array("moov".utf8))
        let places = movie.tracks.flatMap { track in
            track.samples.map { (offset: $0.offset, seconds: Double($0.time) / Double(track.timescale)) }
        }.sorted { $0.offset < $1.offset }
        var latest = 0.0
        for place in places {
            #expect(place.seconds > latest - 2)
            latest = max(latest, place.seconds)
        }
    }

    @Test("A video that is bent follows the times that it is given; audio is never stretched")
    func bending() throws {
        let (_, movie, _) = try join([
            Part(bytes: file(.vp8(Self.size), "v", count: 300, duration: 3_000), stream: 0, start: 0, speed: 1.001),
            Part(bytes: file(.opus, "a", count: 100, duration: 960), stream: 1, start: 0, speed: 1.001),
        ])
        #expect(movie.tracks[0].samples.last?.time == 897_897)
        #expect(movie.tracks[1].samples.map(\.duration) == Array(repeating: 960, count: 100))
    }

    @Test(
        "Files with other parameter sets go on in one track, with the sets in front of each sync sample; one file alone keeps them in its description"
    )
    func parameterSets() throws {
        let parts = [
            Part(bytes: file(Self.h264(1), "a", count: 60, duration: 3_000, keyEvery: 30), stream: 0, start: 0),
            Part(bytes: file(Self.h264(2), "b", count: 30, duration: 3_000, keyEvery: 30), stream: 0, start: 2_000_000),
        ]
        let (bytes, movie, _) = try join(parts)
        #expect(movie.tracks.count == 1)
        let samples = movie.tracks[0].samples
        #expect(samples.map(\.time) == (0..<90).map { Int64($0) * 3_000 })
        func sets(_ tag: UInt8) -> String {
            String(decoding: [0, 0, 0, 5, 0x67, 0x42, 0xc0, 0x1f, tag, 0, 0, 0, 2, 0x68, tag], as: UTF8.self)
        }
        for (index, expected) in [
            (0, sets(1) + "a0;"), (1, "a1;"), (30, sets(1) + "a30;"), (60, sets(2) + "b0;"), (61, "b1;"),
        ] {
            #expect(text(samples[index], in: bytes) == expected)
        }
        #expect(contains(bytes, "avc3") && !contains(bytes, "avc1"))
        let alone = try join([parts[0]])
        #expect(contains(alone.bytes, "avc1") && text(alone.movie.tracks[0].samples[30], in: alone.bytes) == "a30;")
    }

    private func contains(_ bytes: [UInt8], _ text: String) -> Bool {
        let wanted = Array(text.utf8)
        return bytes.indices.dropLast(wanted.count).contains {
            bytes[$0] == wanted[0] && Array(bytes[$0..<($0 + wanted.count)]) == wanted
        }
    }

    @Test("Another rotation or codec begins a track of its own, in its place and with its matrix")
    func otherFormats() throws {
        let (_, movie, _) = try join([
            Part(bytes: file(.vp8(Self.size), "a", count: 30, duration: 3_000), stream: 0, start: 0),
            Part(
                bytes: file(.vp8(Self.size), "b", count: 30, duration: 3_000, rotation: .quarter), stream: 0,
                start: 1_000_000),
            Part(bytes: file(Self.h264(1), "c", count: 30, duration: 3_000), stream: 0, start: 2_000_000),
        ])
        #expect(movie.tracks.map(\.rotation) == [.none, .quarter, .none])
        #expect(movie.tracks.map { $0.samples[0].time } == [0, 90_000, 180_000])
    }

    @Test(
        "Between two files of one audio track lies silence as long as nothing was recorded, to the length of the shortest packet"
    )
    func silence() throws {
        let (bytes, movie, _) = try join([
            Part(bytes: file(.opus, "a", count: 50, duration: 960), stream: 0, start: 0),
            Part(bytes: file(.opus, "b", count: 50, duration: 960), stream: 0, start: 3_013_000),
        ])
        #expect(movie.tracks.count == 1)
        let samples = movie.tracks[0].samples
        let first = try #require(samples.first { text($0, in: bytes) == "b0;" })
        #expect(abs(first.time - 3_013 * 48) < 120)
        #expect(zip(samples, samples.dropFirst()).allSatisfy { $0.time + Int64($0.duration) == $1.time })
        #expect(samples.filter { $0.time >= 48_000 && $0.time < first.time }.allSatisfy { $0.length == 3 })
    }

    @Test(
        "A pause of a video is its last frame, shown for longer; a file that begins before the last has ended follows it"
    )
    func pauses() throws {
        let (_, movie, _) = try join([
            Part(bytes: file(.vp8(Self.size), "a", count: 30, duration: 3_000), stream: 0, start: -500_000),
            Part(bytes: file(.vp8(Self.size), "b", count: 30, duration: 3_000), stream: 0, start: 4_500_000),
            Part(bytes: file(.vp8(Self.size), "c", count: 30, duration: 3_000), stream: 0, start: 5_000_000),
        ])
        let samples = movie.tracks[0].samples
        #expect(samples[29].duration == 363_000 && samples[30].time == 450_000)
        #expect(zip(samples, samples.dropFirst()).allSatisfy { $0.time < $1.time })
    }

    /// A file of `count` packets of audio, which says nothing of their times.
    private func packets(_ count: Int) -> MovieFile {
        var samples = [MovieSample](
            repeating: MovieSample(offset: 0, time: 0, length: 1, duration: 960, isSync: true), count: count)
        for index in samples.indices { samples[index].offset = Int64(index) }
        return MovieFile(tracks: [
            MovieTrack(
                id: 1, isVideo: false, format: .opus(channels: 2), description: [0, 0, 0, 8] + Array("Opus".utf8),
                timescale: 48_000, samples: samples)
        ])
    }

    @Test("No movie has more samples than are read, and silence between files counts")
    func mostSamples() throws {
        for (count, start) in [(1_100_000, 0), (1_750_000, 5_399_000_000)] as [(Int, Int64)] {
            let long = packets(count), other = packets(start == 0 ? count : 1)
            #expect(throws: JoinedMovie.Fault.tooLarge) {
                var joined = JoinedMovie()
                try joined.append(long, source: 0, stream: 0) { $0 }
                try joined.append(other, source: 1, stream: 0) { start + $0 }
                _ = try joined.plan()
            }
        }
    }

    @Test("A movie with as many tracks as are read can be read, and none has more")
    func mostTracks() throws {
        let one = file(.opus, "a", count: 1, duration: 960)
        let found = try read(one)
        var joined = JoinedMovie()
        for stream in 0..<MovieFile.maximumTracks {
            try joined.append(found, source: stream, stream: stream) { $0 }
        }
        let sources = Array(repeating: one, count: MovieFile.maximumTracks)
        let movie = try read(write(try joined.plan(), sources))
        #expect(movie.tracks.count == MovieFile.maximumTracks)
        #expect(throws: JoinedMovie.Fault.tooLarge) {
            try joined.append(found, source: 0, stream: MovieFile.maximumTracks) { $0 }
        }
    }

    @Test("What is no file of one track is refused, and a movie of nothing is none")
    func refused() throws {
        #expect(throws: JoinedMovie.Fault.empty) { try JoinedMovie().plan() }
        let two = try join([
            Part(bytes: file(.opus, "a", count: 5, duration: 960), stream: 0, start: 0),
            Part(bytes: file(.opus, "b", count: 5, duration: 960), stream: 1, start: 0),
        ]).movie
        var joined = JoinedMovie()
        #expect(throws: JoinedMovie.Fault.unreadable) { try joined.append(two, source: 0, stream: 0) { $0 } }
    }
}
