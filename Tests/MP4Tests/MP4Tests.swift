import MP4
import Movies
import Primitives
import Testing

/// A file in memory.
struct MemoryFile {
    var bytes: [UInt8] = []

    mutating func apply(_ write: FileWrite) {
        let end = Int(write.offset) + write.bytes.count
        if bytes.count < end { bytes += Array(repeating: 0, count: end - bytes.count) }
        bytes.replaceSubrange(Int(write.offset)..<end, with: write.bytes)
    }

    /// What a scan finds in the first `length` bytes.
    func scan(length: Int? = nil) -> MovieScan.Outcome {
        let end = length ?? bytes.count
        var scan = MovieScan(fileLength: Int64(end))
        while scan.outcome == nil {
            let start = min(Int(scan.wanted.offset), end)
            let part = Array(bytes[start..<min(start + scan.wanted.length, end)])
            scan.receive(part.span.bytes)
        }
        return scan.outcome ?? .empty
    }
}

private let format = TrackFormat(entry: .vp8(VideoSize(width: 640, height: 360)), rotation: .quarter)

/// Three fragments of two frames each, the second with a pause before it; the lengths after each write.
private func recorded() -> (file: MemoryFile, writes: [FileWrite]) {
    var writer = FragmentWriter()
    var writes = [writer.begin(format)]
    for fragment in 0..<3 {
        let samples = [Sample(duration: 3_000, size: 5, isSync: true), Sample(duration: 3_000, size: 3, isSync: false)]
        let time = UInt64(fragment) * 6_000 + (fragment > 0 ? 90_000 : 0)
        writes += writer.append(samples, data: Array("fffffggg".utf8), decodeTime: time)
    }
    var file = MemoryFile()
    for write in writes { file.apply(write) }
    #expect(Int64(file.bytes.count) == writer.length)
    return (file, writes)
}

@Suite
struct FragmentWriterTests {
    @Test("A file begins with ftyp, a placeholder of 16 bytes and moov, and fragments follow")
    func layout() {
        let (file, _) = recorded()
        var offset = 0
        var types: [String] = []
        while offset < file.bytes.count {
            let size = file.bytes[offset..<(offset + 4)].reduce(0) { $0 << 8 | Int($1) }
            types.append(String(decoding: file.bytes[(offset + 4)..<(offset + 8)], as: UTF8.self))
            offset += size
        }
        #expect(types == ["ftyp", "free", "moov", "moof", "mdat", "moof", "mdat", "moof", "mdat"])
        #expect(Array(file.bytes[28..<36]) == [0, 0, 0, 16] + Array("free".utf8))
    }

    @Test("The data of a fragment is written before its moof, which is the only thing that makes it visible")
    func order() {
        let (_, writes) = recorded()
        #expect(writes[1].offset > writes[2].offset)
        var file = MemoryFile()
        for write in writes[0...1] { file.apply(write) }
        guard case .fragments(let table) = file.scan() else {
            Issue.record("no beginning")
            return
        }
        #expect(table.sampleCount == 0)
        #expect(Int(table.end) == writes[0].bytes.count)
    }
}

@Suite
struct MovieScanTests {
    @Test("E16: cut off at every byte, a file keeps exactly the fragments that are whole")
    func everyCut() {
        let (file, writes) = recorded()
        let beginning = writes[0].bytes.count
        var ends = [beginning]
        for index in stride(from: 2, to: writes.count, by: 2) {
            ends.append(ends[ends.count - 1] + writes[index].bytes.count + writes[index - 1].bytes.count)
        }
        #expect(ends.last == file.bytes.count)
        for length in 0...file.bytes.count {
            let outcome = file.scan(length: length)
            guard length >= beginning else {
                #expect(outcome == .empty, "at \(length)")
                continue
            }
            guard case .fragments(let table) = outcome else {
                Issue.record("nothing at \(length)")
                continue
            }
            let whole = ends.lastIndex { $0 <= length } ?? 0
            #expect(table.sampleCount == 2 * whole, "at \(length)")
            #expect(Int(table.end) == ends[whole], "at \(length)")
        }
    }

    @Test("A fragment whose moof was not written, or lies, ends the scan")
    func holes() {
        let (file, writes) = recorded()
        var hole = file
        let second = Int(writes[4].offset)
        for index in second..<(second + 24) { hole.bytes[index] = 0 }
        guard case .fragments(let table) = hole.scan() else {
            Issue.record("no fragments")
            return
        }
        #expect(table.sampleCount == 2)
        // Any single byte of the second moof changed: never a crash, never more than there is.
        for index in second..<(second + writes[4].bytes.count) {
            var damaged = file
            damaged.bytes[index] ^= 0xff
            if case .fragments(let table) = damaged.scan() { #expect(table.sampleCount <= 6) }
        }
    }
}

@Suite
struct FragmentTableTests {
    @Test(
        "Finishing hides the fragments in one mdat and adds one table of all samples; a scan knows the file as finished"
    )
    func finish() throws {
        var (file, _) = recorded()
        let recordedBytes = file.bytes
        guard case .fragments(let table) = file.scan() else {
            Issue.record("no fragments")
            return
        }
        #expect(table.timescale == 90_000)
        #expect(table.duration == 90_000 + 18_000)
        let (moov, header) = try #require(table.finish())
        #expect(Int(moov.offset) == recordedBytes.count)
        #expect(header.offset == 28)
        #expect(header.bytes.count == 16)
        file.apply(moov)
        // A crash before the header is written: fragments as before, and the table that is not in use is behind the end.
        guard case .fragments(let again) = file.scan() else {
            Issue.record("no fragments after the table")
            return
        }
        #expect(again.end == moov.offset)
        #expect(again == table)
        file.apply(header)
        #expect(file.scan() == .finished)
        let boxes = boxTypes(moov.bytes, offset: 0)
        #expect(boxes == ["moov"])
        // stts: the sample before the pause lasts until the next fragment.
        #expect(content("stts", moov.bytes) == [0, 3, 1, 3_000, 1, 93_000 - 0, 4, 3_000])
        #expect(content("stss", moov.bytes) == [0, 3, 1, 3, 5])
        #expect(content("stsz", moov.bytes) == [0, 0, 6, 5, 3, 5, 3, 5, 3])
        #expect(content("stsc", moov.bytes) == [0, 1, 1, 2, 1])
        #expect(content("ctts", moov.bytes) == nil)
    }

    @Test("The rotation is a matrix of the track, kept when the file is finished")
    func rotation() throws {
        let (file, _) = recorded()
        guard case .fragments(let table) = file.scan() else {
            Issue.record("no fragments")
            return
        }
        let moov = try #require(table.finish()).table.bytes
        let tkhd = try #require(content("tkhd", moov))
        // Flags, dates, id, duration: the matrix begins with word 14.
        #expect(
            Array(tkhd[13..<22]).map { Int32(bitPattern: $0) } == [0, 0x1_0000, 0, -0x1_0000, 0, 0, 0, 0, 0x4000_0000])
    }

    @Test("A recording without samples is not finished")
    func empty() {
        var writer = FragmentWriter()
        var file = MemoryFile()
        file.apply(writer.begin(format))
        guard case .fragments(let table) = file.scan() else {
            Issue.record("no beginning")
            return
        }
        #expect(table.finish() == nil)
    }
}

@Suite
struct SampleEntryTests {
    @Test(
        "E2, E17: avcC has the parameter sets, profile, compatibility and level of the SPS, and lengths of four bytes")
    func avcC() throws {
        let sps: [UInt8] = [0x67, 0x42, 0xe0, 0x1f, 1, 2, 3]
        let pps: [UInt8] = [0x68, 9, 9]
        var writer = FragmentWriter()
        let bytes = writer.begin(
            TrackFormat(
                entry: .h264(sequenceSets: [sps], pictureSets: [pps], VideoSize(width: 1_280, height: 720)))
        ).bytes
        let expected: [UInt8] =
            Array("avcC".utf8) + [1, 0x42, 0xe0, 0x1f, 0xff, 0xe1, 0, 7] + sps + [1, 0, 3] + pps
        #expect(contains(bytes, expected))
    }

    @Test("dOps has the pre-skip of libopus and 48 kHz; VP8 and AV1 have their configuration")
    func others() {
        var opus = FragmentWriter()
        let audio = opus.begin(TrackFormat(entry: .opus)).bytes
        #expect(contains(audio, Array("dOps".utf8) + [0, 2, 1, 56, 0, 0, 0xbb, 0x80, 0, 0, 0]))
        var vp8 = FragmentWriter()
        let video = vp8.begin(format).bytes
        #expect(contains(video, Array("vpcC".utf8) + [1, 0, 0, 0, 0, 10, 0x82, 2, 2, 2, 0, 0]))
        var av1 = FragmentWriter()
        let header: [UInt8] = [0x0a, 2, 5, 6]
        let entry = SampleEntry.av1(
            profile: 0, level: 5, isHighTier: false, sequenceHeader: header, VideoSize(width: 2, height: 2))
        #expect(contains(av1.begin(TrackFormat(entry: entry)).bytes, Array("av1C".utf8) + [0x81, 5, 0x0c, 0] + header))
    }
}

private func contains(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
    (0...(bytes.count - part.count)).contains { bytes[$0..<($0 + part.count)].elementsEqual(part) }
}

private func boxTypes(_ bytes: [UInt8], offset: Int) -> [String] {
    var types: [String] = []
    var position = offset
    while position + 8 <= bytes.count {
        types.append(String(decoding: bytes[(position + 4)..<(position + 8)], as: UTF8.self))
        position += max(8, bytes[position..<(position + 4)].reduce(0) { $0 << 8 | Int($1) })
    }
    return types
}

/// The content of the first box of a type as 32-bit words; nil when there is none.
private func content(_ type: String, _ bytes: [UInt8]) -> [UInt32]? {
    let name = Array(type.utf8)
    guard let start = (4..<(bytes.count - 4)).first(where: { bytes[$0..<($0 + 4)].elementsEqual(name) }) else {
        return nil
    }
    let size = bytes[(start - 4)..<start].reduce(0) { $0 << 8 | Int($1) }
    let content = bytes[(start + 4)..<(start - 4 + size)]
    return stride(from: content.startIndex, to: content.endIndex - 3, by: 4).map { index in
        content[index..<(index + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    }
}
