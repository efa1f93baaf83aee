import Movies
import Primitives
import Testing

@testable import MP4

/// What the reader finds in a file in memory.
func read(_ bytes: [UInt8]) throws(MovieFault) -> MovieFile {
    var reader = MovieFileReader(fileLength: Int64(bytes.count))
    while !reader.isDone {
        let start = min(Int(reader.wanted.offset), bytes.count)
        reader.receive(Array(bytes[start..<min(start + reader.wanted.length, bytes.count)]).span.bytes)
    }
    return try reader.movie()
}

/// Two fragments of two samples, as the recorder writes them; finished or not.
private func recorded(_ entry: SampleEntry, isFinished: Bool) -> [UInt8] {
    var writer = FragmentWriter()
    var file = MemoryFile()
    file.apply(writer.begin(TrackFormat(entry: entry)))
    for fragment in 0..<2 {
        let samples = [Sample(duration: 3_000, size: 5, isSync: true), Sample(duration: 3_000, size: 3, isSync: false)]
        for write in writer.append(samples, data: Array("fffffggg".utf8), decodeTime: UInt64(fragment) * 6_000) {
            file.apply(write)
        }
    }
    guard isFinished, case .fragments(let table) = file.scan(), let end = table.finish() else { return file.bytes }
    file.apply(end.table)
    file.apply(end.header)
    return file.bytes
}

/// A movie of another program: one video track with 32-bit offsets in one chunk, and an edit list that skips `skipped` units.
private func ordinary(
    movieFirst: Bool, skipped: Int32 = 0, sizes: [UInt32] = [4, 2], syncSamples: [UInt32] = [1],
    compositions: [UInt32] = [], entry: SampleEntry = .vp8(VideoSize(width: 64, height: 48))
) -> [UInt8] {
    func movie(_ offset: UInt32) -> [UInt8] {
        var writer = BoxWriter()
        writer.box("moov") { writer in
            writer.box("mvhd", version: 0) {
                $0.zeros(8)
                $0.write(UInt32(1_000))
                $0.zeros(80)
            }
            writer.box("trak") { writer in
                writer.box("tkhd", version: 0) {
                    $0.zeros(8)
                    $0.write(UInt32(7))
                    $0.zeros(68)
                }
                writer.box("edts") {
                    $0.box("elst", version: 0) {
                        $0.write(UInt32(2))
                        for number in [Int32(500), -1, 0x1_0000, 1_000, skipped, 0x1_0000] { $0.write(number) }
                    }
                }
                writer.box("mdia") { writer in
                    writer.box("mdhd", version: 0) {
                        $0.zeros(8)
                        $0.write(UInt32(90_000))
                        $0.zeros(8)
                    }
                    writer.box("hdlr", version: 0) {
                        $0.zeros(4)
                        $0.write(BoxType("vide").rawValue)
                        $0.zeros(13)
                    }
                    writer.box("minf") { writer in
                        writer.box("stbl") { writer in
                            writer.box("stsd", version: 0) {
                                $0.write(UInt32(1))
                                entry.write(to: &$0)
                            }
                            table("stts", [UInt32(sizes.count), 3_600], &writer, entries: 1)
                            if !compositions.isEmpty {
                                table("ctts", compositions.flatMap { [1, $0] }, &writer, entries: compositions.count)
                            }
                            table("stss", syncSamples, &writer, entries: syncSamples.count)
                            table("stsc", [1, UInt32(sizes.count), 1], &writer, entries: 1)
                            writer.box("stsz", version: 0) {
                                $0.write(UInt32(0))
                                $0.write(UInt32(sizes.count))
                                for size in sizes { $0.write(size) }
                            }
                            table("stco", [offset], &writer, entries: 1)
                        }
                    }
                }
            }
        }
        return writer.bytes
    }
    var start = BoxWriter()
    start.box("ftyp") { $0.write(bytes: Array("isom".utf8) + [0, 0, 2, 0]) }
    var data = BoxWriter()
    data.box("mdat") { $0.write(bytes: [1, 2, 3, 4, 5, 6]) }
    let length = UInt32(start.bytes.count + (movieFirst ? movie(0).count : 0) + 8)
    return start.bytes + (movieFirst ? movie(length) + data.bytes : data.bytes + movie(length))
}

private func table(_ type: BoxType, _ numbers: [UInt32], _ writer: inout BoxWriter, entries: Int) {
    writer.box(type, version: 0) {
        $0.write(UInt32(entries))
        for number in numbers { $0.write(number) }
    }
}

@Suite("Reading movies")
struct MovieFileReaderTests {
    @Test("The recorder's files, growing and finished, give the same samples", arguments: [false, true])
    func ownFiles(isFinished: Bool) throws {
        let entry = SampleEntry.h264(
            sequenceSets: [[0x67, 66, 0xc0, 30]], pictureSets: [[0x68, 1]], VideoSize(width: 640, height: 360))
        let bytes = recorded(entry, isFinished: isFinished)
        let track = try #require(try read(bytes).tracks.first)
        #expect(track.timescale == 90_000 && track.isVideo)
        #expect(
            track.format
                == .h264(
                    lengthSize: 4, sequenceSets: [[0x67, 66, 0xc0, 30]], pictureSets: [[0x68, 1]],
                    VideoSize(width: 640, height: 360)))
        #expect(track.samples.map(\.time) == [0, 3_000, 6_000, 9_000])
        #expect(track.samples.map(\.isSync) == [true, false, true, false])
        let content = track.samples.map { sample in
            String(decoding: bytes[Int(sample.offset)..<(Int(sample.offset) + Int(sample.length))], as: UTF8.self)
        }
        #expect(content == ["fffff", "ggg", "fffff", "ggg"])
    }

    @Test("A fragment that is torn off is left out, whatever is missing of it")
    func torn() throws {
        let bytes = recorded(.opus, isFinished: false)
        var counts = Set<Int>()
        for length in 0..<bytes.count {
            guard let movie = try? read(Array(bytes[..<length])) else { continue }
            counts.insert(movie.tracks[0].samples.count)
        }
        #expect(counts == [2])
    }

    @Test("The index at either end; the edit list delays and skips", arguments: [false, true])
    func ordinaryFiles(movieFirst: Bool) throws {
        let bytes = ordinary(movieFirst: movieFirst, skipped: 900)
        let track = try #require(try read(bytes).tracks.first)
        // Half a second later, less a hundredth.
        #expect(track.samples.map(\.time) == [44_100, 47_700])
        #expect(track.samples.map { bytes[Int($0.offset)] } == [1, 5])
        #expect(track.samples.map(\.isSync) == [true, false] && track.samples.map(\.length) == [4, 2])
        #expect(track.format == .vp8(VideoSize(width: 64, height: 48)))
    }

    @Test("Composition offsets move the times at which samples are shown")
    func compositions() throws {
        let bytes = ordinary(movieFirst: true, compositions: [7_200, 0])
        #expect(try read(bytes).tracks[0].samples.map(\.time) == [52_200, 48_600])
    }

    @Test("What contradicts itself or the file's length is refused")
    func contradictions() {
        #expect(throws: MovieFault.malformed) { try read(ordinary(movieFirst: true, sizes: [4, 3])) }
        #expect(throws: MovieFault.malformed) { try read(ordinary(movieFirst: true, sizes: [.max, 3])) }
        #expect(throws: MovieFault.malformed) { try read(ordinary(movieFirst: true, syncSamples: [3])) }
        #expect(throws: MovieFault.notMovie) { try read(Array("no movie at all, but some text".utf8)) }
        #expect(throws: MovieFault.notMovie) { try read([]) }
        #expect(throws: (any Error).self) { try read(Array(ordinary(movieFirst: true).dropLast(7))) }
    }

    @Test("No single changed byte traps, and none makes a sample lie outside of the file")
    func damaged() {
        let files = [false, true].map { recorded(.opus, isFinished: $0) } + [ordinary(movieFirst: true)]
        for bytes in files {
            for index in bytes.indices {
                for value in [UInt8(0), 1, 0x7f, 0x80, 0xff] where bytes[index] != value {
                    var damaged = bytes
                    damaged[index] = value
                    guard let movie = try? read(damaged) else { continue }
                    for sample in movie.tracks.flatMap(\.samples) {
                        #expect(sample.offset >= 0 && sample.offset + Int64(sample.length) <= Int64(bytes.count))
                    }
                }
            }
        }
    }
}
