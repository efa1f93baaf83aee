import Movies
import Primitives

/// The sample tables of one track in a `moov` (ISO/IEC 14496-12 section 8.6 and 8.7), turned into a list of samples.
struct SampleTables {
    private let bytes: Tables
    private let table: BoxReader.Box

    /// Where the existing tables are.
    private struct Tables {
        var durations: BoxReader.Box?
        var offsets: BoxReader.Box?
        var syncSamples: BoxReader.Box?
        var chunks: BoxReader.Box?
        var sizes: BoxReader.Box?
        var places: BoxReader.Box?
        var placeLength = 4
    }

    /// The tables in `stbl`.
    init(_ table: BoxReader.Box, in span: RawSpan) {
        self.table = table
        var found = Tables()
        var boxes = BoxReader(in: table)
        while let box = boxes.next(in: span) {
            switch box.type {
            case "stts": found.durations = box
            case "ctts": found.offsets = box
            case "stss": found.syncSamples = box
            case "stsc": found.chunks = box
            case "stsz": found.sizes = box
            case "stco": (found.places, found.placeLength) = (box, 4)
            case "co64": (found.places, found.placeLength) = (box, 8)
            default: break
            }
        }
        bytes = found
    }

    /// The samples, whose data is within `fileLength` bytes, at most `limit`; none if there are only fragments.
    func samples(
        _ span: RawSpan, fileLength: Int64, shift: Int64, limit: Int
    ) throws(MovieFault) -> [MovieSample] {
        guard let sizes = bytes.sizes else { return [] }
        guard sizes.length >= 12 else { throw .malformed }
        let common = span.readUInt32(sizes.offset + 4), count = Int(span.readUInt32(sizes.offset + 8))
        guard count > 0 else { return [] }
        guard count <= limit else { throw .tooLarge }
        // Memory follows the file's length, not what a few bytes claim.
        guard Int64(count) * Int64(max(common, 1)) <= fileLength else { throw .malformed }
        guard common > 0 || sizes.length >= 12 + 4 * count else { throw .malformed }
        var samples = [MovieSample](
            repeating: MovieSample(
                offset: 0, time: shift, length: common, duration: 0, isSync: bytes.syncSamples == nil), count: count)
        if common == 0 {
            for index in 0..<count { samples[index].length = span.readUInt32(sizes.offset + 12 + 4 * index) }
        }
        try place(&samples, span, fileLength)
        try time(&samples, span, shift)
        try compose(&samples, span)
        try markSync(&samples, span)
        return samples
    }

    /// The entries of a table of `length` bytes each; nil when they do not fit.
    private func entries(_ box: BoxReader.Box?, _ length: Int, _ span: RawSpan) -> (start: Int, count: Int)? {
        guard let box, box.length >= 8 else { return nil }
        let count = Int(span.readUInt32(box.offset + 4))
        guard count <= (box.length - 8) / length else { return nil }
        return (box.offset + 8, count)
    }

    /// Chunk by chunk: the samples of each are contiguous.
    private func place(
        _ samples: inout [MovieSample], _ span: RawSpan, _ fileLength: Int64
    ) throws(MovieFault) {
        let width = bytes.placeLength
        guard let runs = entries(bytes.chunks, 12, span), let places = entries(bytes.places, width, span),
            runs.count > 0
        else { throw .malformed }
        var sample = 0, run = 0
        for chunk in 0..<places.count where sample < samples.count {
            while run + 1 < runs.count, Int(span.readUInt32(runs.start + 12 * (run + 1))) <= chunk + 1 { run += 1 }
            let perChunk = Int(span.readUInt32(runs.start + 12 * run + 4))
            guard span.readUInt32(runs.start + 12 * run + 8) == 1 else { throw .severalFormats }
            let place = places.start + width * chunk
            var offset =
                width == 4 ? Int64(span.readUInt32(place)) : Int64(clamping: span.readUInt64(place))
            for _ in 0..<min(perChunk, samples.count - sample) {
                let length = Int64(samples[sample].length)
                guard offset <= fileLength - length else { throw .malformed }
                samples[sample].offset = offset
                offset += length
                sample += 1
            }
        }
        guard sample == samples.count else { throw .malformed }
    }

    private func time(_ samples: inout [MovieSample], _ span: RawSpan, _ shift: Int64) throws(MovieFault) {
        guard let runs = entries(bytes.durations, 8, span) else { throw .malformed }
        var sample = 0
        var time = shift
        for run in 0..<runs.count where sample < samples.count {
            let count = Int(span.readUInt32(runs.start + 8 * run)), duration = span.readUInt32(runs.start + 8 * run + 4)
            for _ in 0..<min(count, samples.count - sample) {
                samples[sample].time = time
                samples[sample].duration = duration
                time += Int64(duration)
                sample += 1
            }
        }
        guard sample == samples.count else { throw .malformed }
    }

    /// How long after decoding each is shown; version 0 is read as signed, too, as all readers do.
    private func compose(_ samples: inout [MovieSample], _ span: RawSpan) throws(MovieFault) {
        guard bytes.offsets != nil else { return }
        guard let runs = entries(bytes.offsets, 8, span) else { throw .malformed }
        var sample = 0
        for run in 0..<runs.count where sample < samples.count {
            let count = Int(span.readUInt32(runs.start + 8 * run))
            let offset = Int64(Int32(bitPattern: span.readUInt32(runs.start + 8 * run + 4)))
            for _ in 0..<min(count, samples.count - sample) {
                samples[sample].time += offset
                sample += 1
            }
        }
    }

    private func markSync(_ samples: inout [MovieSample], _ span: RawSpan) throws(MovieFault) {
        guard bytes.syncSamples != nil else { return }
        guard let numbers = entries(bytes.syncSamples, 4, span) else { throw .malformed }
        for index in 0..<numbers.count {
            let number = Int(span.readUInt32(numbers.start + 4 * index))
            guard (1...samples.count).contains(number) else { throw .malformed }
            samples[number - 1].isSync = true
        }
    }
}
