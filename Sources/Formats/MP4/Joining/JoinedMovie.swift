public import Movies
import Primitives

/// One movie from the samples of several finished files, each in its place: what is copied from where, and the table in front of it.
///
/// Nothing is encoded anew. Files of one stream follow each other in one track if decoders accept that; otherwise another track begins, which its edit list
/// puts in its place. The tracks are interleaved in chunks of a second, so that a player reads in one place.
public struct JoinedMovie: Sendable {
    /// Why files cannot be joined. `rawValue` is the stable word.
    public enum Fault: String, Error, Sendable, Hashable, CaseIterable {
        /// More samples or tracks, or a larger table, than `MovieFileReader` accepts.
        case tooLarge = "too_large"
        /// There is no sample.
        case empty
        /// A file cannot be read, or is of a kind that is not joined.
        case unreadable = "unreadable_file"
    }

    /// What is done to write the movie, in order.
    public enum Step: Sendable, Hashable {
        /// These bytes follow.
        case write([UInt8])
        /// Bytes of source number `source` follow.
        case copy(source: Int, offset: Int64, length: Int)
    }

    /// The whole movie.
    public struct Plan: Sendable, Hashable {
        /// What is written, in order.
        public var steps: [Step]
        /// Bytes of the movie.
        public var length: Int64
        /// When it begins, and how long it is, on the timeline on which its files were placed, in microseconds.
        public var start: Int64
        public var duration: Int64
        /// Which stream each of its tracks has, in the order of the file.
        public var streams: [Int]
    }

    /// Units of time of the movie: those of video.
    static let timescale: UInt32 = 90_000

    private var tracks: [JoinedTrack] = []
    /// With the silence between files.
    private var sampleCount: Int { tracks.reduce(0) { $0 + $1.sampleCount } }

    /// A movie without tracks.
    public init() {}

    /// Adds the samples of a file. `source` is the file's number, `stream` identifies what continues from file to file: the files of one stream must be added
    /// in order. `place` returns the microsecond at which a time of the file's track is shown.
    public mutating func append(
        _ file: MovieFile, source: Int, stream: Int, place: (Int64) -> Int64
    ) throws(Fault) {
        guard file.tracks.count == 1, let track = file.tracks.first, let piece = JoinedPiece(track) else {
            throw .unreadable
        }
        // The files are removed afterwards: a movie that no reader accepts would be lost.
        guard track.samples.count <= MovieFile.maximumSamples - sampleCount else { throw .tooLarge }
        if let last = tracks.lastIndex(where: { $0.stream == stream }),
            tracks[last].continues(with: piece, from: place(track.samples[0].time))
        {
            tracks[last].append(piece, source: source, place: place)
            guard sampleCount <= MovieFile.maximumSamples else { throw .tooLarge }
        } else {
            guard tracks.count < MovieFile.maximumTracks else { throw .tooLarge }
            var track = JoinedTrack(piece, stream: stream)
            track.append(piece, source: source, place: place)
            tracks.append(track)
        }
    }

    /// What is to be written.
    public func plan() throws(Fault) -> Plan {
        guard let start = tracks.map(\.start).min(), let end = tracks.map(\.end).max() else { throw .empty }
        let order = tracks.indices.flatMap { track in tracks[track].chunks.indices.map { (track, $0) } }.sorted {
            (tracks[$0.0].chunks[$0.1].time, $0.0, $0.1) < (tracks[$1.0].chunks[$1.1].time, $1.0, $1.1)
        }
        // The offset of each chunk from the first.
        var offsets = tracks.map { [Int64](repeating: 0, count: $0.chunks.count) }
        var steps: [Step] = []
        var length: Int64 = 0
        for (track, chunk) in order {
            offsets[track][chunk] = length
            for step in tracks[track].steps(of: chunk) {
                switch step {
                case .write(let bytes): length += Int64(bytes.count)
                case .copy(_, _, let count): length += Int64(count)
                }
                if case .copy(let source, let offset, let count) = step,
                    case .copy(source, let before, let more)? = steps.last,
                    before + Int64(more) == offset
                {
                    steps[steps.count - 1] = .copy(source: source, offset: before, length: more + count)
                } else {
                    steps.append(step)
                }
            }
        }
        let head = head(offsets, start: start, end: end, dataLength: length)
        guard head.count <= MovieFileReader.maximumMovie else { throw .tooLarge }
        return Plan(
            steps: [.write(head)] + steps, length: Int64(head.count) + length, start: start, duration: end - start,
            streams: tracks.map(\.stream))
    }

    /// `ftyp`, `moov` and the header of the data.
    private func head(_ offsets: [[Int64]], start: Int64, end: Int64, dataLength: Int64) -> [UInt8] {
        // The table's length does not depend on the offsets in it.
        let shift = Int64(head(offsets, shift: 0, start: start, end: end, dataLength: dataLength).count)
        return head(offsets, shift: shift, start: start, end: end, dataLength: dataLength)
    }

    private func head(
        _ offsets: [[Int64]], shift: Int64, start: Int64, end: Int64, dataLength: Int64
    ) -> [UInt8] {
        var writer = BoxWriter()
        writer.box("ftyp") {
            $0.write(BoxType("isom").rawValue)
            $0.write(UInt32(512))
            for brand: BoxType in ["isom", "iso6", "mp41"] { $0.write(brand.rawValue) }
        }
        writer.box("moov") {
            Movie.movieHeader(
                duration: UInt64(Self.units(end - start)), timescale: Self.timescale,
                nextTrack: UInt32(tracks.count + 1), &$0)
            for (index, track) in tracks.enumerated() {
                track.write(
                    id: UInt32(index + 1), after: start, offsets: offsets[index].map { $0 + shift }, &$0)
            }
        }
        writer.write(UInt32(1))
        writer.write(BoxType("mdat").rawValue)
        writer.write(UInt64(dataLength + 16))
        return writer.bytes
    }

    /// Microseconds as units of the movie.
    static func units(_ microseconds: Int64) -> Int64 { (microseconds * Int64(timescale) + 500_000) / 1_000_000 }
}

/// A file's track on its way into a joined one.
struct JoinedPiece {
    let track: MovieTrack
    /// The parameter sets that precede each sync sample if a track has several of them; empty for codecs that have them in their samples.
    let sets: [UInt8]

    /// nil for a format that is not joined.
    init?(_ track: MovieTrack) {
        guard !track.samples.isEmpty else { return nil }
        switch track.format {
        case .h264(let lengthSize, let sequenceSets, let pictureSets, _):
            guard lengthSize == 4 else { return nil }
            var writer = BoxWriter()
            for set in sequenceSets + pictureSets {
                writer.write(UInt32(set.count))
                writer.write(bytes: set)
            }
            sets = writer.bytes
        case .vp8, .vp9, .av1, .opus: sets = []
        case .other: return nil
        }
        self.track = track
    }

    /// The type of its sample entry.
    var entry: ArraySlice<UInt8> { track.description[4..<8] }
}
