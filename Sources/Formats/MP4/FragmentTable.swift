import Movies
import Primitives

/// The samples of a file's complete fragments, and how to turn the file into an ordinary one.
///
/// An ordinary file has one table of all samples. It is made of the fragments on the disk, so that recording keeps no memory per sample:
/// ```text
/// ftyp  mdat [moov moof mdat moof mdat …]  moov
///        ^ 16 bytes, written last            ^ appended first
/// ```
public struct FragmentTable: Sendable, Hashable {
    /// A run of samples of equal duration, as `stts` has it.
    struct Run: Sendable, Hashable {
        var count: UInt32
        var value: UInt32
    }

    /// Bytes up to the end of the last complete fragment.
    public private(set) var end: Int64
    /// Units of time per second.
    public let timescale: UInt32
    /// Samples in complete fragments.
    public private(set) var sampleCount = 0

    private let isVideo: Bool
    private let size: VideoSize?
    private let rotation: Rotation
    /// The sample entry's box.
    private let description: [UInt8]
    private var durations: [Run] = []
    private var offsets: [Run] = []
    private var hasOffsets = false
    private var sizes: [UInt32] = []
    /// From 1.
    private var syncSamples: [UInt32] = []
    /// Where the data of each fragment is, and how many samples it has.
    private var chunks: [(offset: Int64, samples: UInt32)] = []
    /// The decode time of the first sample, and that after the last.
    private var first: UInt64?
    private var next: UInt64 = 0

    /// By what was found; the rest follows from it.
    public static func == (a: Self, b: Self) -> Bool {
        a.end == b.end && a.sizes == b.sizes && a.durations == b.durations && a.description == b.description
    }

    /// By the length alone.
    public func hash(into hasher: inout Hasher) { hasher.combine(end) }

    /// Length of all samples, in units of the timescale.
    public var duration: UInt64 { next - (first ?? next) }

    /// Reads the `moov` at a file's beginning, whose last byte is before `end`; nil when it is not what `FragmentWriter` writes.
    init?(moov: RawSpan, end: Int64) {
        self.end = end
        var top = BoxReader(offset: 8, length: moov.byteCount - 8)
        guard let track = top.first("trak", in: moov) else { return nil }
        var boxes = BoxReader(in: track)
        guard let header = boxes.first("tkhd", in: moov), header.length >= Movie.matrixOffset + 36 + 8,
            let media = boxes.first("mdia", in: moov)
        else { return nil }
        rotation = Movie.rotation(
            a: Int32(bitPattern: moov.readUInt32(header.offset + Movie.matrixOffset)),
            b: Int32(bitPattern: moov.readUInt32(header.offset + Movie.matrixOffset + 4)))
        let dimensions = header.offset + Movie.matrixOffset + 36
        var parts = BoxReader(in: media)
        guard let mediaHeader = parts.first("mdhd", in: moov), mediaHeader.length >= 24,
            let handler = parts.first("hdlr", in: moov), handler.length >= 12,
            let information = parts.first("minf", in: moov)
        else { return nil }
        timescale = moov.readUInt32(mediaHeader.offset + 20)
        isVideo = BoxType(rawValue: moov.readUInt32(handler.offset + 8)) == "vide"
        size =
            isVideo
            ? VideoSize(
                width: Int(moov.readUInt32(dimensions) >> 16), height: Int(moov.readUInt32(dimensions + 4) >> 16))
            : nil
        var tables = BoxReader(in: information)
        guard let table = tables.first("stbl", in: moov) else { return nil }
        var tableBoxes = BoxReader(in: table)
        guard let entries = tableBoxes.first("stsd", in: moov) else { return nil }
        var entryBoxes = BoxReader(in: entries, skipping: 8)
        guard timescale > 0, let entry = entryBoxes.next(in: moov) else { return nil }
        description = moov.extracting((entry.offset - 8)..<(entry.offset + entry.length)).withUnsafeBytes { Array($0) }
    }

    // MARK: - Fragments

    /// Adds the samples of a `moof` with `dataLength` bytes of data at `dataOffset`; false, and nothing is added, when it does not describe them.
    mutating func append(moof: RawSpan, dataOffset: Int64, dataLength: Int64) -> Bool {
        var top = BoxReader(offset: 8, length: moof.byteCount - 8)
        guard let fragment = top.first("traf", in: moof) else { return false }
        var boxes = BoxReader(in: fragment)
        guard let time = boxes.first("tfdt", in: moof), time.length >= 12, let run = boxes.first("trun", in: moof),
            run.length >= 12
        else { return false }
        let flags = moof.readUInt32(run.offset)
        let count = Int(moof.readUInt32(run.offset + 4))
        let length = flags & 0x800 != 0 ? 16 : 12
        guard flags & 0x701 == 0x701, count > 0, run.length == 12 + count * length else { return false }
        let decodeTime = moof.readUInt64(time.offset + 4)
        guard decodeTime >= next || first == nil, sizesSum(moof, run, count, length) == dataLength else { return false }
        if first == nil { first = decodeTime } else { extendLast(to: decodeTime) }
        next = decodeTime
        for index in 0..<count { add(moof, at: run.offset + 12 + index * length, hasOffset: length == 16) }
        chunks.append((dataOffset, UInt32(count)))
        end = dataOffset + dataLength
        return true
    }

    private func sizesSum(_ moof: RawSpan, _ run: BoxReader.Box, _ count: Int, _ length: Int) -> Int64 {
        (0..<count).reduce(Int64(0)) { $0 + Int64(moof.readUInt32(run.offset + 12 + $1 * length + 4)) }
    }

    private mutating func add(_ moof: RawSpan, at offset: Int, hasOffset: Bool) {
        let duration = moof.readUInt32(offset)
        sampleCount += 1
        Self.add(duration, to: &durations)
        sizes.append(moof.readUInt32(offset + 4))
        if isVideo, moof.readUInt32(offset + 8) & 0x1_0000 == 0 { syncSamples.append(UInt32(sampleCount)) }
        let composition = hasOffset ? moof.readUInt32(offset + 12) : 0
        hasOffsets = hasOffsets || composition != 0
        Self.add(composition, to: &offsets)
        next += UInt64(duration)
    }

    private static func add(_ value: UInt32, to runs: inout [Run]) {
        if let last = runs.indices.last, runs[last].value == value {
            runs[last].count += 1
        } else {
            runs.append(Run(count: 1, value: value))
        }
    }

    /// A fragment begins later than the last ended (a gap): the last sample is shown until then.
    private mutating func extendLast(to decodeTime: UInt64) {
        guard decodeTime > next, let last = durations.indices.last else { return }
        let longer = UInt32(clamping: UInt64(durations[last].value) + decodeTime - next)
        durations[last].count -= 1
        if durations[last].count == 0 { durations.removeLast() }
        Self.add(longer, to: &durations)
    }

    // MARK: - Finishing

    /// The two writes that make the file an ordinary one: first the table of all samples after the last fragment, which must be on the disk before the second
    /// write, the header that hides the fragments. The file ends with the table.
    ///
    /// nil without samples.
    public func finish() -> (table: FileWrite, header: FileWrite)? {
        guard sampleCount > 0 else { return nil }
        let moov = Movie.complete(
            rotation: rotation, size: size, timescale: timescale, duration: duration, description: description
        ) { writeTables(&$0) }
        var header = BoxWriter()
        header.write(UInt32(1))
        header.write(BoxType("mdat").rawValue)
        header.write(UInt64(end - Movie.placeholderOffset))
        return (
            FileWrite(offset: end, bytes: moov), FileWrite(offset: Movie.placeholderOffset, bytes: header.bytes)
        )
    }

    private func writeTables(_ writer: inout BoxWriter) {
        writer.box("stts", version: 0) { Self.write(durations, &$0) }
        if hasOffsets { writer.box("ctts", version: 1) { Self.write(offsets, &$0) } }
        if isVideo, syncSamples.count < sampleCount {
            writer.box("stss", version: 0) {
                $0.write(UInt32(syncSamples.count))
                for sample in syncSamples { $0.write(sample) }
            }
        }
        writer.box("stsc", version: 0) { writeChunks(&$0) }
        writer.box("stsz", version: 0) {
            $0.write(UInt32(0))
            $0.write(UInt32(sizes.count))
            for size in sizes { $0.write(size) }
        }
        writer.box("co64", version: 0) {
            $0.write(UInt32(chunks.count))
            for chunk in chunks { $0.write(UInt64(chunk.offset)) }
        }
    }

    private static func write(_ runs: [Run], _ writer: inout BoxWriter) {
        writer.write(UInt32(runs.count))
        for run in runs {
            writer.write(run.count)
            writer.write(run.value)
        }
    }

    private func writeChunks(_ writer: inout BoxWriter) {
        let changes = chunks.indices.filter { $0 == 0 || chunks[$0].samples != chunks[$0 - 1].samples }
        writer.write(UInt32(changes.count))
        for index in changes {
            writer.write(UInt32(index + 1))
            writer.write(chunks[index].samples)
            writer.write(UInt32(1))
        }
    }
}
