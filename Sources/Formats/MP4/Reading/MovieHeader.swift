import Movies
import Primitives

/// A `moov`: the tracks with the samples of their tables, and the defaults for fragments (`trex`).
struct MovieHeader {
    /// The defaults for samples that a fragment does not describe.
    struct Defaults {
        var duration: UInt32 = 0
        var length: UInt32 = 0
        var flags: UInt32 = 0
    }

    private(set) var file = MovieFile()
    /// By track.
    private(set) var defaults: [UInt32: Defaults] = [:]
    private let fileLength: Int64

    /// Reads a whole `moov` of a file of `fileLength` bytes.
    init(_ moov: RawSpan, fileLength: Int64) throws(MovieFault) {
        self.fileLength = fileLength
        var boxes = BoxReader(offset: 8, length: moov.byteCount - 8)
        var movieTimescale: UInt32 = 1
        var left = MovieFile.maximumSamples
        while let box = boxes.next(in: moov) {
            switch box.type {
            case "mvhd":
                movieTimescale = try Self.timescale(box, moov)
            case "trak":
                guard file.tracks.count < MovieFile.maximumTracks else { throw .tooLarge }
                if let track = try track(box, moov, movieTimescale: movieTimescale, limit: left) {
                    left -= track.samples.count
                    file.tracks.append(track)
                }
            case "mvex": readDefaults(box, moov)
            default: break
            }
        }
    }

    /// Of `mvhd` and `mdhd`, which begin alike.
    private static func timescale(_ box: BoxReader.Box, _ moov: RawSpan) throws(MovieFault) -> UInt32 {
        let offset = box.length > 0 && moov.readUInt8(box.offset) == 1 ? 20 : 12
        guard box.length >= offset + 4 else { throw .malformed }
        let timescale = moov.readUInt32(box.offset + offset)
        guard timescale > 0 else { throw .malformed }
        return timescale
    }

    /// nil for a track that is neither audio nor video.
    private func track(
        _ box: BoxReader.Box, _ moov: RawSpan, movieTimescale: UInt32, limit: Int
    ) throws(MovieFault) -> MovieTrack? {
        var boxes = BoxReader(in: box)
        guard let header = boxes.first("tkhd", in: moov), header.length >= 24 else { throw .malformed }
        let id = moov.readUInt32(header.offset + (moov.readUInt8(header.offset) == 1 ? 20 : 12))
        var again = BoxReader(in: box)
        guard let media = again.first("mdia", in: moov) else { throw .malformed }
        var parts = BoxReader(in: media)
        guard let mediaHeader = parts.first("mdhd", in: moov) else { throw .malformed }
        let timescale = try Self.timescale(mediaHeader, moov)
        var handlers = BoxReader(in: media)
        guard let handler = handlers.first("hdlr", in: moov), handler.length >= 12 else { throw .malformed }
        let kind = BoxType(rawValue: moov.readUInt32(handler.offset + 8))
        guard kind == "vide" || kind == "soun" else { return nil }
        var information = BoxReader(in: media)
        guard let info = information.first("minf", in: moov) else { throw .malformed }
        var tables = BoxReader(in: info)
        guard let table = tables.first("stbl", in: moov) else { throw .malformed }
        var entries = BoxReader(in: table)
        guard let descriptions = entries.first("stsd", in: moov) else { throw .malformed }
        var list = BoxReader(in: descriptions, skipping: 8)
        guard let entry = list.next(in: moov), let format = MovieFormat(entry, in: moov) else { throw .malformed }
        let shift = Self.shift(box, moov, timescale: timescale, movieTimescale: movieTimescale)
        var track = MovieTrack(
            id: id, isVideo: kind == "vide", format: format,
            description: moov.extracting((entry.offset - 8)..<(entry.offset + entry.length)).withUnsafeBytes {
                Array($0)
            }, rotation: Self.rotation(header, moov), timescale: timescale, shift: shift)
        track.samples = try SampleTables(table, in: moov).samples(
            moov, fileLength: fileLength, shift: shift, limit: limit)
        return track
    }

    /// The rotation in the matrix of a `tkhd`.
    private static func rotation(_ header: BoxReader.Box, _ moov: RawSpan) -> Rotation {
        // With 32-bit times it is twelve bytes shorter.
        let matrix = Movie.matrixOffset - (moov.readUInt8(header.offset) == 1 ? 0 : 12)
        guard header.length >= matrix + 8 else { return .none }
        return Movie.rotation(
            a: Int32(bitPattern: moov.readUInt32(header.offset + matrix)),
            b: Int32(bitPattern: moov.readUInt32(header.offset + matrix + 4)))
    }

    /// What the edit list adds to each time: the length of an empty first edit, minus the start of the first non-empty one.
    private static func shift(
        _ track: BoxReader.Box, _ moov: RawSpan, timescale: UInt32, movieTimescale: UInt32
    ) -> Int64 {
        var boxes = BoxReader(in: track)
        guard let edits = boxes.first("edts", in: moov) else { return 0 }
        var lists = BoxReader(in: edits)
        guard let list = lists.first("elst", in: moov), list.length >= 8 else { return 0 }
        let isLong = moov.readUInt8(list.offset) == 1
        let length = isLong ? 20 : 12
        let count = min(Int(moov.readUInt32(list.offset + 4)), (list.length - 8) / length)
        var delay: Int64 = 0
        for index in 0..<count {
            let place = list.offset + 8 + length * index
            let duration =
                isLong ? Int64(clamping: moov.readUInt64(place)) : Int64(moov.readUInt32(place))
            let start =
                isLong
                ? Int64(bitPattern: moov.readUInt64(place + 8)) : Int64(Int32(bitPattern: moov.readUInt32(place + 4)))
            // At most a year: no file is longer, and the sums below stay in range.
            let limit = Int64(timescale) * 31_536_000
            guard start < 0 else { return delay - min(start, limit) }
            let scaled = duration.multipliedReportingOverflow(by: Int64(timescale))
            if !scaled.overflow { delay = min(delay + min(scaled.partialValue / Int64(movieTimescale), limit), limit) }
        }
        return delay
    }

    private mutating func readDefaults(_ box: BoxReader.Box, _ moov: RawSpan) {
        var boxes = BoxReader(in: box)
        while let next = boxes.next(in: moov) {
            guard next.type == "trex", next.length >= 24, defaults.count < MovieFile.maximumTracks else { continue }
            defaults[moov.readUInt32(next.offset + 4)] = Defaults(
                duration: moov.readUInt32(next.offset + 12), length: moov.readUInt32(next.offset + 16),
                flags: moov.readUInt32(next.offset + 20))
        }
    }
}
