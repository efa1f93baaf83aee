public import Rooms

/// The description of one recording: the sidecar `recording.json` beside its files, which the API also shows.
public struct RecordingSummary: Codable, Sendable, Hashable {
    /// The state of a recording.
    public enum State: String, Codable, Sendable, Hashable, CaseIterable {
        /// It is in progress.
        case recording
        /// All its files are finished.
        case ready
        /// It has no file.
        case empty
    }

    /// A missing part of a track.
    public struct Gap: Codable, Sendable, Hashable {
        /// `loss`, `overload`, `disk` or `format`.
        public var reason: String
        /// When it begins, after the start of the recording.
        public var atMilliseconds: Int64
        public var milliseconds: Int64
        public var packets: Int
        public var frames: Int
        /// The first and last missing sequence number, as the recorder counts them.
        public var firstSequence: Int64?
        public var lastSequence: Int64?
    }

    /// One file of a track.
    public struct File: Codable, Sendable, Hashable {
        /// Its name in the recording's folder.
        public var name: String
        public var codec: String
        /// When its first sample reached the recorder, or was due if it is silence, after the start of the recording. A video begins with its last keyframe,
        /// which had arrived up to some hundred milliseconds earlier: only `senderMicroseconds` aligns files.
        public var startMilliseconds: Int64
        /// The publisher's clock at its first sample, in microseconds since 1900, by sender reports; files of one publisher are aligned by it.
        public var senderMicroseconds: Int64?
        /// RTP time of its first sample, as counted in the log beside it.
        public var rtpTime: Int64
        public var clockRate: Int
        public var width: Int?
        public var height: Int?
        /// Degrees clockwise by which a player turns it.
        public var rotation: Int
        /// Once it is finished.
        public var durationMilliseconds: Int64?
        /// While it grows: as of a second ago.
        public var bytes: Int64?
        public var samples: Int?
        /// The place of its table of samples; nil while it grows, if it is joined with others, and if the server moves no tables.
        public var index: Index?
        /// Why the table stays after the data: `disk_full` or `disk_error`.
        public var indexFault: String?

        /// The part of the recording to which it belongs, if tracks are joined.
        public var part: Int?
        /// The name of the joined file that contains it now; the file itself no longer exists.
        public var joined: String?
        /// The disk did not let the recorder finish it, which is tried again. Until then it cannot be uploaded.
        public var isUnfinished: Bool?

        /// Whether it is complete and has contents.
        var isFinished: Bool { samples ?? 0 > 0 }
    }

    /// A file into which files of several tracks are joined.
    public struct JoinedFile: Codable, Sendable, Hashable {
        /// Its state.
        public enum State: String, Codable, Sendable, Hashable, CaseIterable {
            /// It is to be made; until then the files of its tracks exist.
            case pending
            /// It has replaced them.
            case ready
            /// It cannot be made: the files of its tracks stay.
            case failed
        }

        /// Its name in the recording's folder.
        public var name: String
        public var state = State.pending
        /// The participant whose tracks are in it, `PA_…`; nil: everybody's.
        public var participant: String?
        public var identity: String?
        /// Its number among those of the participant or the recording.
        public var part: Int
        /// When it begins, after the start of the recording.
        public var startMilliseconds: Int64?
        public var durationMilliseconds: Int64?
        public var bytes: Int64?
        /// Why it cannot be made: `disk_full`, `disk_error`, `too_large` or `unreadable_file`.
        public var fault: String?
        /// The recorded track, `TR_…`, that each track of the file has, in the order of the file.
        public var content: [String]?
    }

    /// A file that is uploaded to a storage.
    public struct Upload: Codable, Sendable, Hashable {
        /// The state of the upload.
        public enum State: String, Codable, Sendable, Hashable, CaseIterable {
            /// It is tried until it succeeds.
            case pending
            /// The storage has proved by the file's checksum that it has it.
            case done
        }

        /// Its name in the recording's folder.
        public var name: String
        /// Its name in the storage.
        public var key: String
        public var state = State.pending
        /// The number of failed tries, and why the last of them failed.
        public var failures = 0
        public var fault: String?
        /// Once the storage has it.
        public var bytes: Int64?
        /// Milliseconds since 1970.
        public var uploadedAt: Int64?
        /// It is no longer in the recording's folder.
        public var isRemoved: Bool?

        init(name: String, key: String) {
            self.name = name
            self.key = key
        }
    }

    /// The place of a finished file's table.
    public enum Index: String, Codable, Sendable, Hashable, CaseIterable {
        /// After the data; it is to be moved.
        case pending
        /// Before the data: a player can show the first frame before it has the whole file.
        case front
        /// After the data, where it stays unless the disk had no room (`indexFault`) and has room later.
        case end
    }

    /// One track.
    public struct Track: Codable, Sendable, Hashable {
        /// `TR_…`.
        public var sid: String
        /// `PA_…`.
        public var participant: String
        public var identity: String
        public var name: String
        public var source: String
        public var kind: String
        public var files: [File] = []
        /// The first gaps; `gapCount` is the total.
        public var gaps: [Gap] = []
        public var gapCount = 0
        public var framesWritten = 0
        public var framesLost = 0
        /// Why it is not recorded, or no longer.
        public var fault: String?
        /// The video has more samples per frame than its level permits.
        public var levelExceeded: Bool?
        /// Nothing more arrives.
        public var ended = false

        /// Whether only amounts have changed: after a crash the files show those, too.
        func differsOnlyInCounts(from other: Self) -> Bool {
            gapCount == other.gapCount && fault == other.fault && levelExceeded == other.levelExceeded
                && ended == other.ended && files.count == other.files.count
                && zip(files, other.files).allSatisfy { mine, others in
                    mine.senderMicroseconds == others.senderMicroseconds && mine.width == others.width
                        && mine.height == others.height && mine.rotation == others.rotation
                }
        }

        /// Further gaps are counted, but only listed in the log.
        static let maximumGaps = 1_000
    }

    /// The version of this form.
    public var version = 1
    /// `RC_…`.
    public var sid: String
    public var state: State
    /// The room's name, and its sid, which identifies this life of the room.
    public var room: String
    public var roomSid: String
    /// The requested scope: the only participant, the only track, the sources; nil: all.
    public var participant: String?
    public var track: String?
    public var sources: [String]?
    /// The only participants, by sid or identity, if the room's policy names some.
    public var participants: [String]?
    /// Whether the room's policy began it; nil: it did not.
    public var byPolicy: Bool?
    /// What is recorded into one file; nil: each track has its own files.
    public var files: RecordingOptions.Files?
    /// The template of its files' names.
    public var fileName: String?
    /// When another file of a track begins.
    public var segmentSeconds: Int?
    public var segmentBytes: Int64?
    /// Milliseconds since 1970.
    public var startedAt: Int64
    public var endedAt: Int64?
    /// `stopped`; `crash`: the server ended without finishing the files, which was done at its next start.
    public var ended: String?
    /// When it ended by a clock that was set during or after the recording, in milliseconds since 1970: retention begins then, while `startedAt` and `endedAt`
    /// are by the earlier clock.
    public var keptSince: Int64?
    public var tracks: [Track] = []
    /// Files into which those of tracks are joined.
    public var joined: [JoinedFile]?
    /// Files that are uploaded to a storage, if the server has one.
    public var uploads: [Upload]?
    /// The jobs on its files.
    public var jobs: [RecordingJob]?

    /// Its files are finished: the tables of files that a crash left open are to be moved, too.
    mutating func markForIndex() {
        for track in tracks.indices {
            for file in tracks[track].files.indices where tracks[track].files[file].isFinished {
                tracks[track].files[file].index = tracks[track].files[file].index ?? .pending
            }
        }
    }

    /// When its retention begins; nil while it is in progress.
    var retainedFrom: Int64? { keptSince ?? endedAt }

    /// Bytes of its files.
    public var bytes: Int64 { readableFiles.reduce(0) { $0 + $1.bytes } }
}
