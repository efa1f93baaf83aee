import Foundation
import Movies
import Primitives
import TestSupport
import Testing
import WebM

private typealias Bytes = MatroskaBytes

/// What the reader finds in a file in memory, and how many bytes it had to see.
private func reading(_ bytes: [UInt8]) throws(MovieFault) -> (movie: MovieFile, seen: Int) {
    var reader = MatroskaReader(fileLength: Int64(bytes.count))
    var seen = 0
    while !reader.isDone {
        let start = min(Int(reader.wanted.offset), bytes.count)
        let part = Array(bytes[start..<min(start + reader.wanted.length, bytes.count)])
        seen += part.count
        reader.receive(part.span.bytes)
    }
    return (try reader.movie(), seen)
}

private func read(_ bytes: [UInt8]) throws(MovieFault) -> MovieFile { try reading(bytes).movie }

/// A file of these entries and clusters, finished or live.
private func file(_ entries: [[UInt8]], isLive: Bool = false, scale: UInt64 = 1_000_000, _ clusters: [UInt8]...)
    -> [UInt8]
{
    let tracks = Bytes.tracks(entries.flatMap { $0 })
    return Bytes.header()
        + Bytes.segment(isKnown: !isLive, Bytes.info(scale: scale), tracks, clusters.flatMap { $0 })
}

/// How a packet of 20 ms begins.
private let opus: UInt8 = 0xfc
private let size = VideoSize(width: 64, height: 48)
private let cues = Bytes.element(0x1c53_bb6b, Bytes.number(0xbb, 7))
private let void = Bytes.element(0xec, [0, 0, 0])

/// VP8 and Opus in two clusters, between which and in which lies what players do not need.
private func film(isLive: Bool = false) -> [UInt8] {
    file(
        [Bytes.video("V_VP8"), Bytes.audio()], isLive: isLive,
        Bytes.cluster(
            at: 0, isKnown: !isLive, Bytes.block(1, at: 0, Array("key".utf8)), void,
            Bytes.block(2, at: 0, [opus, 1]), Bytes.block(2, at: 20, [opus, 2, 2]),
            Bytes.block(1, at: 40, isKey: false, Array("delta".utf8))),
        isLive ? [] : void,
        Bytes.cluster(
            at: 1_000, isKnown: !isLive, Bytes.block(2, at: -20, [opus, 3]), Bytes.group(1, at: 0, Array("again".utf8)),
            Bytes.group(1, at: 33, duration: 50, refersTo: -33, Array("last".utf8))), cues)
}

@Suite("Reading WebM and Matroska")
struct MatroskaReaderTests {
    @Test("A finished file and a live one without sizes have the same samples", arguments: [false, true])
    func samples(isLive: Bool) throws {
        let bytes = film(isLive: isLive)
        let movie = try read(bytes)
        #expect(movie.tracks.map(\.isVideo) == [true, false] && movie.tracks.map(\.timescale) == [1_000, 48_000])
        #expect(movie.tracks.map(\.format) == [.vp8(size), .opus(channels: 2)])
        let video = movie.tracks[0].samples
        #expect(video.map(\.time) == [0, 40, 1_000, 1_033] && video.map(\.duration) == [40, 960, 33, 50])
        #expect(video.map(\.isSync) == [true, false, true, false])
        let content = video.map {
            String(decoding: bytes[Int($0.offset)..<Int($0.offset) + Int($0.length)], as: UTF8.self)
        }
        #expect(content == ["key", "delta", "again", "last"])
        let audio = movie.tracks[1].samples
        #expect(audio.map(\.time) == [0, 960, 47_040] && audio.map(\.duration) == [960, 960, 960])
        #expect(audio.map { bytes[Int($0.offset) + 1] } == [1, 2, 3] && audio.map(\.length) == [2, 3, 2])
    }

    @Test(
        "Files of ffmpeg's give what ffprobe finds in them",
        arguments: [("ffmpeg-vp8.webm", 1_174), ("ffmpeg-vp9-live.webm", 1_043), ("ffmpeg-h264.mkv", 955)])
    func ffmpegFiles(name: String, firstFrame: UInt32) throws {
        let path = Vectors.root.deletingLastPathComponent().appendingPathComponent("Fuzz/Corpus/Matroska/\(name)")
        let movie = try read([UInt8](try Data(contentsOf: path)))
        let video = try #require(movie.tracks.first { $0.isVideo }).samples
        let audio = try #require(movie.tracks.first { !$0.isVideo })
        #expect(video.map(\.time) == [7, 49, 90, 132, 174, 215, 257, 299, 340, 382, 424, 465])
        #expect(video.indices.filter { video[$0].isSync } == [0, 6] && video[0].length == firstFrame)
        #expect(audio.format == .opus(channels: 1) && audio.samples.count == 26 && audio.samples[0].length == 23)
        #expect(audio.samples.prefix(4).map(\.time) == [-312, 648, 1_608, 2_568])
    }

    @Test("Opus is earlier by its delay, and lasts as long as its packets say; what is missing stays missing")
    func opusTimes() throws {
        let times: [Int16] = [0, 21, 39, 60, 120, 129]
        let blocks = times.flatMap { Bytes.block(2, at: $0, [opus]) }
        let bytes = file([Bytes.audio(more: Bytes.number(0x56aa, 6_500_000))], Bytes.cluster(at: 0, blocks))
        let samples = try read(bytes).tracks[0].samples
        // The fifth is 40 ms late. The last comes 11 ms before the fifth has ended, which no ticks explain.
        #expect(samples.map { $0.time + 312 } == [0, 960, 1_920, 2_880, 5_760, 6_192])
        #expect(samples.allSatisfy { $0.duration == 960 })
    }

    @Test(
        "The last frame lasts as long as the track says, or as the one before it", arguments: [UInt64(0), 40_000_000])
    func lastDuration(usual: UInt64) throws {
        let entry = Bytes.video("V_VP8", more: Bytes.number(0x23_e383, usual))
        let bytes = file([entry], Bytes.cluster(at: 0, Bytes.block(1, at: 0, [1]), Bytes.block(1, at: 33, [1])))
        #expect(try read(bytes).tracks[0].samples.map(\.duration) == [33, usual == 0 ? 33 : 40])
    }

    @Test(
        "Ticks become units of a timescale that are exact",
        arguments: [(1_000_000, 1_000, 40), (100_000, 10_000, 40), (20_833, 1_000_000_000, 833_320)]
            as [(
                UInt64, UInt32, Int64
            )])
    func ticks(scale: UInt64, timescale: UInt32, time: Int64) throws {
        let bytes = file([Bytes.video("V_VP8")], scale: scale, Bytes.cluster(at: 30, Bytes.block(1, at: 10, [1])))
        let track = try read(bytes).tracks[0]
        #expect(track.timescale == timescale && track.samples.map(\.time) == [time])
    }

    @Test("Frames within one tick are a tick apart, however many they are; those that go back stay as they are")
    func equalTimes() throws {
        let times: [Int16] = [0, 33, 33, 33, 34, 70, 20]
        let blocks = times.flatMap { Bytes.block(1, at: $0, [1]) }
        let bytes = file([Bytes.video("V_VP8")], Bytes.cluster(at: 0, blocks))
        #expect(try read(bytes).tracks[0].samples.map(\.time) == [0, 33, 34, 35, 36, 70, 20])
    }

    @Test("Codecs and what describes them")
    func formats() throws {
        func check(_ entry: [UInt8], _ format: MovieFormat, sample: [UInt8] = [0]) throws {
            let movie = try read(file([entry], Bytes.cluster(at: 0, Bytes.block(1, at: 0, sample))))
            #expect(movie.tracks.map(\.format) == [format])
        }
        try check(Bytes.video("V_VP8"), .vp8(size))
        try check(Bytes.video("V_VP9"), .vp9(profile: 1, size), sample: [0xa2, 0x49])
        try check(Bytes.video("V_VP9"), .vp9(profile: 2, size), sample: [0x92, 0x49])
        // Marker and version, profile and level, flags, delay; a sequence header.
        let av1: [UInt8] = [0x81, 0x20, 0x0c, 0, 0x0a, 1, 0]
        try check(Bytes.video("V_AV1", configuration: av1), .av1(profile: 1, configuration: [0x0a, 1, 0], size))
        try check(Bytes.video("V_AV1"), .av1(profile: 0, configuration: [], size))
        let avc: [UInt8] = [1, 66, 0xc0, 30, 0xff, 0xe1, 0, 4, 0x67, 66, 0xc0, 30, 1, 0, 2, 0x68, 1]
        try check(
            Bytes.video("V_MPEG4/ISO/AVC", configuration: avc),
            .h264(lengthSize: 4, sequenceSets: [[0x67, 66, 0xc0, 30]], pictureSets: [[0x68, 1]], size))
        try check(Bytes.video("V_MPEG4/ISO/AVC"), .other("V_MPEG4/ISO/AVC without CodecPrivate"))
        try check(Bytes.audio(number: 1, channels: 1), .opus(channels: 1))
        let head = Array("OpusHead".utf8) + [1, 6]
        try check(Bytes.audio(number: 1, configuration: head), .opus(channels: 6))
        try check(Bytes.audio("A_VORBIS", number: 1), .other("A_VORBIS"))
    }

    @Test("Subtitles, unknown tracks and empty blocks are left out")
    func leftOut() throws {
        let entries = [Bytes.entry(3, type: 17, "S_TEXT/UTF8", nil, []), Bytes.video("V_VP8")]
        let blocks = [
            Bytes.block(3, at: 0, lacing: 1, [1]), Bytes.block(9, at: 0, [1]), Bytes.block(1, at: 0, []),
            Bytes.block(1, at: 7, [1]),
        ]
        let movie = try read(file(entries, Bytes.cluster(at: 0, blocks.flatMap { $0 })))
        #expect(movie.tracks.map { $0.samples.map(\.time) } == [[7]])
    }

    @Test("What is no such file, or cannot be read, is refused with its reason")
    func refusals() {
        func refuse(_ fault: MovieFault, _ bytes: [UInt8], at location: SourceLocation = #_sourceLocation) {
            #expect(throws: fault, sourceLocation: location) { try read(bytes) }
        }
        let entry = Bytes.video("V_VP8"), frame = Bytes.block(1, at: 0, [1]), packet = Bytes.block(2, at: 0, [1])
        let cluster = Bytes.cluster(at: 0, frame)
        refuse(.notMovie, [])
        refuse(.notMovie, Array("no movie at all, but some text".utf8))
        refuse(.notMovie, Bytes.header(docType: "other") + Bytes.segment(Bytes.info()))
        refuse(.notMovie, Bytes.header() + void + void)
        refuse(.noTracks, file([entry]))
        refuse(.noTracks, file([Bytes.entry(3, type: 17, "S_TEXT/UTF8", nil, [])], Bytes.cluster(at: 0)))
        // Blocks without what describes them, a video without a size, two tracks of one number, ticks of no length, blocks without a time, times without an end.
        refuse(.malformed, Bytes.header() + Bytes.segment(cluster))
        refuse(.malformed, file([Bytes.video("V_VP8", width: 0)], cluster))
        refuse(.malformed, file([entry, entry], cluster))
        refuse(.malformed, file([entry], scale: 0, cluster))
        refuse(.malformed, file([entry], Bytes.element(0x1f43_b675, frame)))
        refuse(.malformed, file([entry], Bytes.cluster(at: 1 << 62, frame)))
        let laced = Bytes.block(2, at: 0, lacing: 1, [1, 1, 1, 1])
        refuse(.lacing, file([Bytes.audio()], Bytes.cluster(at: 0, packet, laced)))
        let encoded = Bytes.audio(more: Bytes.element(0x6d80, []))
        refuse(.encoded, file([encoded], Bytes.cluster(at: 0, packet)))
        let large = Bytes.element(0x1654_ae6b, [UInt8](repeating: 0, count: 1 << 20 + 1))
        refuse(.tooLarge, Bytes.header() + Bytes.segment(large))
    }

    @Test("A file of nothing but elements without content is given up")
    func manyElements() {
        // Two bytes each: an id that means nothing, and a size of 0.
        let empty = [UInt8](repeating: 0x80, count: 13_000_000)
        #expect(throws: MovieFault.tooLarge) { try read(Bytes.header() + Bytes.segment(Bytes.info(), empty)) }
    }

    @Test("Of a file that is cut off anywhere, the samples before that are there", arguments: [false, true])
    func torn(isLive: Bool) throws {
        let bytes = film(isLive: isLive)
        let whole = try read(bytes).tracks.map { $0.samples.map(\.offset) }
        var count = 0
        for length in 0...bytes.count {
            guard let movie = try? read(Array(bytes[..<length])) else {
                #expect(count == 0, "what could be read of less can be read of more")
                continue
            }
            let found = movie.tracks.map { $0.samples.map(\.offset) }
            #expect(zip(found, whole).allSatisfy { Array($1.prefix($0.count)) == $0 })
            let more = found.reduce(0) { $0 + $1.count }
            #expect(more >= count)
            count = more
        }
        #expect(count == 7)
    }

    @Test(
        "Of a file that becomes shorter while it is read, the samples before that are there, and reading ends",
        arguments: [0, 1, 24])
    func shortened(beginning: Int) throws {
        let frames = (Int16(0)..<5).map { Bytes.block(1, at: $0 * 33, [UInt8](repeating: 7, count: 10_000)) }
        let bytes = file([Bytes.video("V_VP8")], Bytes.cluster(at: 0, frames.flatMap { $0 }))
        // So many bytes of the fourth frame are left.
        let left = bytes.count - 2 * frames[0].count + beginning
        var reader = MatroskaReader(fileLength: Int64(bytes.count))
        for _ in 0..<100 where !reader.isDone {
            let start = min(Int(reader.wanted.offset), left)
            let part = Array(bytes[start..<min(start + reader.wanted.length, left)])
            reader.receive(part.span.bytes)
        }
        try #require(reader.isDone)
        #expect(try reader.movie().tracks[0].samples.map(\.time) == [0, 33, 66])
        var unreadable = MatroskaReader(fileLength: Int64(bytes.count))
        unreadable.receive([UInt8]().span.bytes)
        #expect(unreadable.isDone)
        #expect(throws: MovieFault.malformed) { try unreadable.movie() }
    }

    @Test("No single changed byte traps, and none makes a sample lie outside of the file", arguments: [false, true])
    func damaged(isLive: Bool) {
        let bytes = film(isLive: isLive)
        for index in bytes.indices {
            for value in [UInt8(0), 1, 0x40, 0x7f, 0x80, 0xff] where bytes[index] != value {
                var damaged = bytes
                damaged[index] = value
                guard let movie = try? read(damaged) else { continue }
                for sample in movie.tracks.flatMap(\.samples) {
                    #expect(sample.offset >= 0 && sample.offset + Int64(sample.length) <= Int64(bytes.count))
                }
            }
        }
    }

    @Test("Of large frames only the beginnings are read")
    func skipping() throws {
        let frames = (Int16(0)..<20).map { Bytes.block(1, at: $0 * 33, [UInt8](repeating: 7, count: 100_000)) }
        let bytes = file([Bytes.video("V_VP8")], Bytes.cluster(at: 0, frames.flatMap { $0 }))
        let (movie, seen) = try reading(bytes)
        #expect(movie.tracks[0].samples.count == 20 && movie.tracks[0].samples.allSatisfy { $0.length == 100_000 })
        #expect(seen < bytes.count / 10, "\(seen) of \(bytes.count) bytes")
    }

    @Test("A second file behind the first is another one")
    func chained() throws {
        let count = try read(film()).tracks[0].samples.count
        #expect(try read(film() + film()).tracks[0].samples.count == count)
        #expect(try read(film(isLive: true) + film(isLive: true)).tracks[0].samples.count == count)
    }

    @Test("A file is recognized by its first four bytes")
    func recognized() {
        // A span cannot be an argument of what is expected.
        func isRecognized(_ bytes: [UInt8]) -> Bool { MatroskaReader.recognizes(bytes.span.bytes) }
        #expect(isRecognized(film()))
        #expect(!isRecognized([0, 0, 0, 24, 0x66, 0x74, 0x79, 0x70]))
        #expect(!isRecognized([0x1a, 0x45, 0xdf]))
    }
}
