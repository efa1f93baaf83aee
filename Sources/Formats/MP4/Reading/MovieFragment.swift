import Movies
import Primitives

/// Adds the samples of a `moof` to the tracks of its movie (ISO/IEC 14496-12 section 8.8).
struct MovieFragment {
    private let bytes: BoxReader.Box
    /// Where the `moof` begins in the file.
    private let position: Int64
    private let fileLength: Int64
    /// Where the data of the last run ended.
    private var dataEnd: Int64

    init(length: Int, at position: Int64, fileLength: Int64) {
        bytes = BoxReader.Box(type: "moof", offset: 8, length: length - 8)
        self.position = position
        self.fileLength = fileLength
        dataEnd = position
    }

    /// The values of a `tfhd`.
    private struct Track {
        var index: Int
        var base: Int64
        var defaults: MovieHeader.Defaults
        var time: Int64
    }

    /// Reads the fragment; `next` holds the decode time that follows in each track.
    mutating func append(
        _ moof: RawSpan, to file: inout MovieFile, defaults: [UInt32: MovieHeader.Defaults], next: inout [UInt32: Int64]
    ) throws(MovieFault) {
        var boxes = BoxReader(in: bytes)
        while let box = boxes.next(in: moof) {
            guard box.type == "traf" else { continue }
            guard var track = try header(box, moof, file, defaults, next) else { continue }
            var runs = BoxReader(in: box)
            while let run = runs.next(in: moof) {
                if run.type == "trun" { try append(run, moof, of: &track, to: &file) }
            }
            next[file.tracks[track.index].id] = track.time
        }
    }

    /// nil for a track that is neither audio nor video.
    private func header(
        _ box: BoxReader.Box, _ moof: RawSpan, _ file: MovieFile, _ defaults: [UInt32: MovieHeader.Defaults],
        _ next: [UInt32: Int64]
    ) throws(MovieFault) -> Track? {
        var boxes = BoxReader(in: box)
        guard let header = boxes.first("tfhd", in: moof), header.length >= 8 else { throw .malformed }
        let flags = moof.readUInt32(header.offset) & 0xff_ffff, id = moof.readUInt32(header.offset + 4)
        guard let index = file.tracks.firstIndex(where: { $0.id == id }) else { return nil }
        var track = Track(
            index: index, base: flags & 0x2_0000 != 0 ? position : dataEnd,
            defaults: defaults[id] ?? MovieHeader.Defaults(), time: next[id] ?? 0)
        var place = header.offset + 8
        let end = header.offset + header.length
        func field(_ flag: UInt32, _ length: Int) throws(MovieFault) -> Int? {
            guard flags & flag != 0 else { return nil }
            guard place + length <= end else { throw .malformed }
            defer { place += length }
            return place
        }
        if let at = try field(1, 8) { track.base = Int64(clamping: moof.readUInt64(at)) }
        if let at = try field(2, 4), moof.readUInt32(at) != 1 { throw .severalFormats }
        if let at = try field(8, 4) { track.defaults.duration = moof.readUInt32(at) }
        if let at = try field(0x10, 4) { track.defaults.length = moof.readUInt32(at) }
        if let at = try field(0x20, 4) { track.defaults.flags = moof.readUInt32(at) }
        var again = BoxReader(in: box)
        if let time = again.first("tfdt", in: moof) {
            let isLong = time.length > 0 && moof.readUInt8(time.offset) == 1
            guard time.length >= (isLong ? 12 : 8) else { throw .malformed }
            let value = isLong ? moof.readUInt64(time.offset + 4) : UInt64(moof.readUInt32(time.offset + 4))
            // Half of what fits: the sum with durations stays in range.
            guard value < 1 << 62 else { throw .malformed }
            track.time = Int64(value)
        }
        return track
    }

    private mutating func append(
        _ run: BoxReader.Box, _ moof: RawSpan, of track: inout Track, to file: inout MovieFile
    ) throws(MovieFault) {
        guard run.length >= 8 else { throw .malformed }
        let flags = moof.readUInt32(run.offset) & 0xff_ffff, count = Int(moof.readUInt32(run.offset + 4))
        var place = run.offset + 8
        let fields = [0x100, 0x200, 0x400, 0x800].count { flags & UInt32($0) != 0 }
        let head = (flags & 1 != 0 ? 4 : 0) + (flags & 4 != 0 ? 4 : 0)
        guard run.length >= 8 + head else { throw .malformed }
        // Samples without fields of their own cost the file nothing, so their number is bounded by the file's length.
        let total = file.tracks.reduce(0) { $0 + $1.samples.count }
        guard count <= MovieFile.maximumSamples - total else { throw .tooLarge }
        guard Int64(count) <= fileLength else { throw .malformed }
        guard count <= (fields > 0 ? (run.length - 8 - head) / (4 * fields) : count) else { throw .malformed }
        var offset = dataEnd
        if flags & 1 != 0 {
            let (sum, overflow) = track.base.addingReportingOverflow(
                Int64(Int32(bitPattern: moof.readUInt32(place))))
            guard !overflow else { throw .malformed }
            offset = sum
            place += 4
        } else if dataEnd == position {
            offset = track.base
        }
        let firstFlags = flags & 4 != 0 ? moof.readUInt32(place) : nil
        if firstFlags != nil { place += 4 }
        let shift = file.tracks[track.index].shift
        for index in 0..<count {
            let sample = try self.sample(
                moof, &place, flags, index == 0 ? firstFlags : nil, track, shift: shift, offset: offset)
            offset += Int64(sample.length)
            file.tracks[track.index].samples.append(sample)
            track.time += Int64(sample.duration)
        }
        dataEnd = offset
    }

    private func sample(
        _ moof: RawSpan, _ place: inout Int, _ flags: UInt32, _ firstFlags: UInt32?, _ track: Track, shift: Int64,
        offset: Int64
    ) throws(MovieFault) -> MovieSample {
        func field(_ flag: UInt32) -> UInt32? {
            guard flags & flag != 0 else { return nil }
            defer { place += 4 }
            return moof.readUInt32(place)
        }
        let duration = field(0x100) ?? track.defaults.duration
        let length = field(0x200) ?? track.defaults.length
        let own = field(0x400) ?? firstFlags ?? track.defaults.flags
        let composition = Int64(Int32(bitPattern: field(0x800) ?? 0))
        guard length > 0, offset >= 0, offset <= fileLength - Int64(length), track.time < 1 << 62 else {
            throw .malformed
        }
        // sample_is_non_sync_sample
        return MovieSample(
            offset: offset, time: track.time + composition + shift, length: length, duration: duration,
            isSync: own & 0x1_0000 == 0)
    }
}
