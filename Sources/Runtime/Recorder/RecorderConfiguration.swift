public import ObjectStorage
public import Primitives
public import Rooms

/// Where recordings are stored, and their limits.
public struct RecorderConfiguration: Sendable, Hashable {
    /// The folder; it is created if it does not exist.
    public var directory: String
    /// The maximum number of tracks that are recorded at a time.
    public var maximumTracks = 500
    /// Bytes of the disk that recordings leave free.
    public var reserveBytes: Int64 = 1 << 30
    /// Finished recordings are deleted after this; zero: never.
    public var keptFor = TimeSpan.zero
    /// Total bytes of recordings that are kept: beyond them the oldest finished ones are deleted; zero: no limit.
    public var maximumBytes: Int64 = 0
    /// Whether tables of samples are moved to the front of finished files.
    public var movesIndexes = true
    /// When another file of a track begins, unless a recording specifies otherwise.
    public var segmentLength = TimeSpan.seconds(3_600)
    public var segmentBytes: Int64 = 2 << 30
    /// What is recorded into one file, unless a recording specifies otherwise.
    public var files = RecordingOptions.Files.tracks
    /// Where finished files are uploaded to; nil: nowhere.
    public var storage: ObjectStore.Configuration?
    /// Whether files stay here after the storage has them.
    public var keepsUploaded = true
    /// The size of parts in which large files are uploaded; nil: the default.
    var uploadPartLength: Int?
    /// The template of file names, unless a recording specifies otherwise.
    public var fileName = FileNameTemplate.usual

    /// Recordings in `directory`.
    public init(directory: String) { self.directory = directory }
}

/// Counters and gauges of the recorder, for metrics.
public struct RecorderStatistics: Sendable, Hashable {
    /// Recordings in progress.
    public var recordings = 0
    /// Tracks that are being recorded.
    public var tracks = 0
    public var bytesWritten: UInt64 = 0
    public var filesFinished: UInt64 = 0
    public var gaps: UInt64 = 0
    public var failures: UInt64 = 0
    /// Tracks that a recording demanded and that were not recorded, by the reason.
    public var tracksRefused: [RecordingRefusal: UInt64] = [:]
    /// Files that were joined from those of tracks, and those that could not be made.
    public var filesJoined: UInt64 = 0
    public var filesNotJoined: UInt64 = 0
    /// Files that a storage has proved to have, their bytes, and failed tries.
    public var filesUploaded: UInt64 = 0
    public var bytesUploaded: UInt64 = 0
    public var uploadFailures: UInt64 = 0
    /// Files that are to be uploaded.
    public var uploadsPending = 0
    /// Files whose table of samples was moved to the front, and those whose table stays at the end for lack of disk space.
    public var filesIndexed: UInt64 = 0
    public var filesNotIndexed: UInt64 = 0
    /// Recordings that were deleted because of their age, and for lack of space.
    public var deletedByAge: UInt64 = 0
    public var deletedForSpace: UInt64 = 0
    /// Bytes of all recordings.
    public var storedBytes: Int64 = 0
    /// Bytes in the workers' rings, at the last check.
    public var queuedBytes = 0
    /// The longest that a record waited in a ring within the last second, or waits while the recorder's thread hangs in a write.
    public var lag = TimeSpan.zero
    /// Free bytes on the disk, at the last check.
    public var freeBytes: Int64 = 0

    /// All zero.
    public init() {}
}
