/// Writes a file of one track that any player opens while it grows and after a crash.
///
/// ```text
/// ftyp  free (16 bytes, later the header of one big mdat)  moov without samples
/// moof mdat   moof mdat   moof mdat …
/// ```
/// The data of a fragment is written before its `moof`, so that a crash in between leaves zeros where a box would begin, which
/// readers take for the end. An incomplete `moof` would make ffmpeg and Chromium refuse the whole file.
public struct FragmentWriter: Sendable {
    /// Bytes of the file so far.
    public private(set) var length: Int64 = 0
    /// Fragments so far.
    public private(set) var fragments: UInt32 = 0

    /// A file without content.
    public init() {}

    /// The beginning of the file.
    public mutating func begin(_ format: TrackFormat) -> FileWrite {
        precondition(length == 0, "a file begins once")
        let bytes = Movie.beginning(of: format)
        length = Int64(bytes.count)
        return FileWrite(offset: 0, bytes: bytes)
    }

    /// The writes for a fragment of `samples`, whose bytes are `data`, in the order in which they must happen; `decodeTime` is that of the first sample, in
    /// units of the timescale.
    public mutating func append(_ samples: [Sample], data: [UInt8], decodeTime: UInt64) -> [FileWrite] {
        precondition(length > 0 && !samples.isEmpty, "a fragment has samples and follows the beginning")
        fragments += 1
        let header = Movie.fragment(number: fragments, decodeTime: decodeTime, samples: samples)
        let writes = [
            FileWrite(offset: length + Int64(header.count), bytes: data), FileWrite(offset: length, bytes: header),
        ]
        length += Int64(header.count + data.count)
        return writes
    }
}
