public import Movies

/// The properties of a track that are known before its first sample.
public struct TrackFormat: Sendable, Hashable {
    /// The format of its samples.
    public var entry: SampleEntry
    /// How the video is to be rotated.
    public var rotation: Rotation

    /// A track of `entry`.
    public init(entry: SampleEntry, rotation: Rotation = .none) {
        self.entry = entry
        self.rotation = rotation
    }
}

/// One sample (a frame, or an audio packet) without its bytes.
public struct Sample: Sendable, Hashable {
    /// Until the next sample, in units of the track's timescale.
    public var duration: UInt32
    /// Bytes of it.
    public var size: UInt32
    /// Presentation minus decode time, in units of the track's timescale.
    public var compositionOffset: Int32
    /// A decoder can start with it.
    public var isSync: Bool

    /// A sample of these values.
    public init(duration: UInt32, size: UInt32, compositionOffset: Int32 = 0, isSync: Bool) {
        self.duration = duration
        self.size = size
        self.compositionOffset = compositionOffset
        self.isSync = isSync
    }
}

/// Bytes to be written at a place in a file.
public struct FileWrite: Sendable, Hashable {
    /// Where, from the file's start.
    public var offset: Int64
    /// What.
    public var bytes: [UInt8]

    /// `bytes` at `offset`.
    public init(offset: Int64, bytes: [UInt8]) {
        self.offset = offset
        self.bytes = bytes
    }
}

/// The parts of a movie.
enum Movie {
    /// The properties of a `trak` besides its sample tables.
    struct Track {
        var id: UInt32 = 1
        /// nil: it is audio.
        var size: VideoSize?
        var rotation = Rotation.none
        /// Units of time per second.
        var timescale: UInt32
        /// Length of its samples, in these units.
        var duration: UInt64 = 0
        /// When its first sample is shown, and its length, in units of the movie.
        var start: UInt64 = 0
        var movieDuration: UInt64 = 0
    }

    /// Where the header is that turns the fragments into the data of an ordinary file.
    static let placeholderOffset: Int64 = 28
    /// A header with a 64-bit size.
    static let placeholderLength = 16
    private static let trackID: UInt32 = 1

    /// `ftyp`, the placeholder and a `moov` without samples, which fragments follow.
    static func beginning(of format: TrackFormat) -> [UInt8] {
        var writer = BoxWriter()
        writer.box("ftyp") {
            $0.write(BoxType("isom").rawValue)
            $0.write(UInt32(512))
            for brand: BoxType in ["isom", "iso6", "mp41"] { $0.write(brand.rawValue) }
        }
        writer.box("free") { $0.zeros(8) }
        writer.box("moov") {
            movieHeader(duration: 0, timescale: format.entry.timescale, nextTrack: trackID + 1, &$0)
            track(
                Track(size: format.entry.size, rotation: format.rotation, timescale: format.entry.timescale), &$0
            ) {
                $0.box("stts", version: 0) { $0.zeros(4) }
                $0.box("stsc", version: 0) { $0.zeros(4) }
                $0.box("stsz", version: 0) { $0.zeros(8) }
                $0.box("stco", version: 0) { $0.zeros(4) }
            } description: {
                format.entry.write(to: &$0)
            }
            $0.box("mvex") {
                $0.box("trex", version: 0) {
                    $0.write(trackID)
                    $0.write(UInt32(1))
                    $0.zeros(12)
                }
            }
        }
        return writer.bytes
    }

    /// A whole `moov`; `tables` writes the boxes of the sample table behind `stsd`, and `description` the sample entry.
    static func complete(
        rotation: Rotation, size: VideoSize?, timescale: UInt32, duration: UInt64, description: [UInt8],
        tables: (inout BoxWriter) -> Void
    ) -> [UInt8] {
        var writer = BoxWriter()
        writer.box("moov") {
            movieHeader(duration: duration, timescale: timescale, nextTrack: trackID + 1, &$0)
            track(
                Track(
                    size: size, rotation: rotation, timescale: timescale, duration: duration, movieDuration: duration),
                &$0, tables: tables
            ) { $0.write(bytes: description) }
        }
        return writer.bytes
    }

    static func movieHeader(duration: UInt64, timescale: UInt32, nextTrack: UInt32, _ writer: inout BoxWriter) {
        writer.box("mvhd", version: 1) {
            $0.zeros(16)  // No dates: the log beside the file has them.
            $0.write(timescale)
            $0.write(duration)
            $0.write(UInt32(0x1_0000))  // rate
            $0.write(UInt16(0x100))  // volume
            $0.zeros(10)
            matrix(.none, &$0)
            $0.zeros(24)
            $0.write(nextTrack)
        }
    }

    /// A `trak`; `tables` writes the boxes of the sample table behind `stsd`, and `description` the sample entry.
    static func track(
        _ track: Track, _ writer: inout BoxWriter, tables: (inout BoxWriter) -> Void,
        description: (inout BoxWriter) -> Void
    ) {
        let size = track.size
        writer.box("trak") {
            $0.box("tkhd", version: 1, flags: 3) {
                $0.zeros(16)
                $0.write(track.id)
                $0.zeros(4)
                $0.write(track.start + track.movieDuration)
                $0.zeros(12)
                $0.write(UInt16(size == nil ? 0x100 : 0))  // volume
                $0.zeros(2)
                matrix(track.rotation, &$0)
                $0.write(UInt32(clamping: size?.width ?? 0) << 16)
                $0.write(UInt32(clamping: size?.height ?? 0) << 16)
            }
            if track.start > 0 { edits(track, &$0) }
            $0.box("mdia") {
                $0.box("mdhd", version: 1) {
                    $0.zeros(16)
                    $0.write(track.timescale)
                    $0.write(track.duration)
                    $0.write(UInt32(0x55c4_0000))  // Language "und".
                }
                $0.box("hdlr", version: 0) {
                    $0.zeros(4)
                    $0.write((size == nil ? BoxType("soun") : BoxType("vide")).rawValue)
                    $0.zeros(13)
                }
                $0.box("minf") {
                    if size == nil {
                        $0.box("smhd", version: 0) { $0.zeros(4) }
                    } else {
                        $0.box("vmhd", version: 0, flags: 1) { $0.zeros(8) }
                    }
                    $0.box("dinf") {
                        $0.box("dref", version: 0) {
                            $0.write(UInt32(1))
                            $0.box("url ", version: 0, flags: 1) { _ in }
                        }
                    }
                    $0.box("stbl") {
                        $0.box("stsd", version: 0) {
                            $0.write(UInt32(1))
                            description(&$0)
                        }
                        tables(&$0)
                    }
                }
            }
        }
    }

    /// An edit list (ISO/IEC 14496-12 section 8.6.6): an empty edit for the time by which the track begins later than the movie, then all of the track.
    private static func edits(_ track: Track, _ writer: inout BoxWriter) {
        writer.box("edts") {
            $0.box("elst", version: 1) {
                $0.write(UInt32(2))
                $0.write(track.start)
                $0.write(Int64(-1))
                $0.write(UInt32(0x1_0000))
                $0.write(track.movieDuration)
                $0.write(Int64(0))
                $0.write(UInt32(0x1_0000))
            }
        }
    }

    /// Where the matrix is in the content of a `tkhd` of version 1.
    static let matrixOffset = 4 + 16 + 4 + 4 + 8 + 12 + 4

    /// `{a, b, u, c, d, v, x, y, w}` as 16.16 and 2.30 fixed point numbers (ISO/IEC 14496-12 section 6.2.2).
    private static func matrix(_ rotation: Rotation, _ writer: inout BoxWriter) {
        let one: Int32 = 0x1_0000
        let (a, b): (Int32, Int32) =
            switch rotation {
            case .none: (one, 0)
            case .quarter: (0, one)
            case .half: (-one, 0)
            case .threeQuarters: (0, -one)
            }
        for value in [a, b, 0, -b, a, 0, 0, 0, 0x4000_0000] { writer.write(value) }
    }

    /// The rotation of a matrix that begins with `a` and `b`.
    static func rotation(a: Int32, b: Int32) -> Rotation {
        if b > 0 { return .quarter }
        if b < 0 { return .threeQuarters }
        return a < 0 ? .half : .none
    }

    /// One fragment's `moof` and the header of its `mdat`.
    static func fragment(number: UInt32, decodeTime: UInt64, samples: [Sample]) -> [UInt8] {
        let hasOffsets = samples.contains { $0.compositionOffset != 0 }
        var writer = BoxWriter()
        var dataOffset = 0
        writer.box("moof") {
            $0.box("mfhd", version: 0) { $0.write(number) }
            $0.box("traf") {
                // default-base-is-moof
                $0.box("tfhd", version: 0, flags: 0x02_0000) { $0.write(trackID) }
                $0.box("tfdt", version: 1) { $0.write(decodeTime) }
                // The data offset; duration, size, flags and, if there are any, composition offset of each sample.
                $0.box("trun", version: hasOffsets ? 1 : 0, flags: hasOffsets ? 0xf01 : 0x701) {
                    $0.write(UInt32(samples.count))
                    dataOffset = $0.bytes.count
                    $0.write(UInt32(0))
                    for sample in samples {
                        $0.write(sample.duration)
                        $0.write(sample.size)
                        // depends on nothing; depends on others and is no sync sample
                        $0.write(UInt32(sample.isSync ? 0x0200_0000 : 0x0101_0000))
                        if hasOffsets { $0.write(sample.compositionOffset) }
                    }
                }
            }
        }
        writer.patch(UInt32(writer.bytes.count + 8), at: dataOffset)
        writer.write(samples.reduce(UInt32(8)) { $0 + $1.size })
        writer.write(BoxType("mdat").rawValue)
        return writer.bytes
    }
}
