/// A range of a file.
public struct FileRange: Sendable, Hashable {
    /// Where it starts.
    public var offset: Int64
    /// Bytes of it.
    public var length: Int

    /// `length` bytes from `offset` on.
    public init(offset: Int64, length: Int) {
        self.offset = offset
        self.length = length
    }
}

/// Finds the tracks and samples of a file of one kind of container. The media itself is not read.
///
/// Sans-IO: the caller reads the range that `wanted` requests from the file and passes it to `receive`, until `isDone`.
public protocol MovieReading {
    /// A reader of a file of `fileLength` bytes.
    init(fileLength: Int64)

    /// What to read next; fewer bytes only at the file's end.
    var wanted: FileRange { get }

    /// Nothing more is wanted.
    var isDone: Bool { get }

    /// Takes the bytes of `wanted`.
    mutating func receive(_ bytes: RawSpan)

    /// The movie, once `isDone`. Throws the reason if there is none.
    func movie() throws(MovieFault) -> MovieFile
}

/// Why a file cannot be read. `rawValue` is the stable word.
public enum MovieFault: String, Error, Sendable, Hashable, CaseIterable {
    /// It does not begin like a movie, or nothing in it describes its tracks.
    case notMovie = "not_a_movie"
    /// An element or a table contradicts itself or the length of the file.
    case malformed
    /// More samples, or a larger table, than is read.
    case tooLarge = "too_large"
    /// A track changes its format within the file (several sample entries in use), or its data is in another file.
    case severalFormats = "several_formats"
    /// It has no track for audio or video.
    case noTracks = "no_tracks"
    /// Several samples are in one block (Matroska lacing), and have no times of their own.
    case lacing = "laced_blocks"
    /// Samples are compressed or encrypted by the container (Matroska ContentEncodings).
    case encoded = "encoded_samples"
}
