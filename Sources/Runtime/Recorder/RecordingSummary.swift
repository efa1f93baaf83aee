public import Rooms

/// What is known of one recording: the sidecar `recording.json` beside its files, and what the API shows.
public struct RecordingSummary: Codable, Sendable, Hashable {
    /// How far a recording has come.
    public enum State: String, Codable, Sendable, Hashable, CaseIterable {
        /// It goes on.
        case recording
        /// All its files are finished.
        case ready
        /// It has no file.
        case empty
    }

    /// A part of a track that is missing.
    public struct Gap: Codable, Sendable, Hashable {
        /// `loss`, `overload`, `disk` or `format`.
        public var reason: String
        /// When it begins, after the recording's first moment.
        public var atMilliseconds: Int64
        public var milliseconds: Int64
        public var packets: Int
        public var frames: Int
        /// First and last sequence number that are missing, as the recorder counts them.
        public var firstSequence: Int64?
        public var lastSequence: Int64?
    }

    /// One file of a track.
    public struct File: Codable, Sendable, Hashable {
        /// Its name in the recording's folder.
        public var name: String
        public var codec: String
        /// When its first sample reached the recorder, or was due where it is silence, after the recording's first moment. A video begins with its last keyframe, which had arrived up to some
        /// hundred milliseconds earlier: only `senderMicroseconds` aligns files.
        public var startMilliseconds: Int64
        /// The publisher's clock at its first sample, in microseconds since 1900, by sender reports; files of one publisher are aligned by it.
        public var senderMicroseconds: Int64?
        /// RTP time of its first sample, as the log beside it counts.
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
        /// Where its table of samples lies; nil while it grows, where it is joined with others, and where the server moves none.
        public var index: Index?
        /// Why the table stays behind the data: `disk_full` or `disk_error`.
        public var indexFault: String?

        /// The part of the recording to which it belongs, where tracks are joined.
        public var part: Int?
        /// The name of the joined file in which it is now; the file itself is no more.
        public var joined: String?
        /// The disk did not let it be finished, which is tried again. Until then it cannot be uploaded.
        public var isUnfinished: Bool?

        /// Whether it is whole and has something in it.
        var isFinished: Bool { samples ?? 0 > 0 }
    }

    /// A file into which files of several tracks are joined.
    public struct JoinedFile: Codable, Sendable, Hashable {
        /// How far that has come.
        public enum State: String, Codable, Sendable, Hashable, CaseIterable {
            /// It is to be made; until then there are the files of its tracks.
            case pending
            /// It is there instead of them.
            case ready
            /// It cannot be made: the files of its tracks stay.
            case failed
        }

        /// Its name in the recording's folder.
        public var name: String
        public var state = State.pending
        /// Whose tracks are in it, `PA_…`; nil: everybody's.
        public var participant: String?
        public var identity: String?
        /// Its number among those of the participant or recording.
        public var part: Int
        /// When it begins, after the recording's first moment.
        public var startMilliseconds: Int64?
        public var durationMilliseconds: Int64?
        public var bytes: Int64?
        /// Why it cannot be made: `disk_full`, `disk_error`, `too_large` or `unreadable_file`.
        public var fault: String?
        /// The recorded track, `TR_…`, that each track of the file has, in the order of the file.
        public var content: [String]?
    }

    /// A file that is brought to a storage elsewhere.
    public struct Upload: Codable, Sendable, Hashable {
        /// How far that has come.
        public enum State: String, Codable, Sendable, Hashable, CaseIterable {
            /// It is tried until it succeeds.
            case pending
            /// The storage has proved by the file's checksum that it has it.
            case done
        }

        /// Its name in the recording's folder.
        public var name: String
        /// What it is called in the storage.
        public var key: String
        public var state = State.pending
        /// Tries that have failed, and why the last of them did.
        public var failures = 0
        public var fault: String?
        /// Once the storage has it.
        public var bytes: Int64?
        /// Milliseconds since 1970.
        public var uploadedAt: Int64?
        /// It is no more in the recording's folder.
        public var isRemoved: Bool?

        init(name: String, key: String) {
            self.name = name
            self.key = key
        }
    }

    /// Where the table of a finished file lies.
    public enum Index: String, Codable, Sendable, Hashable, CaseIterable {
        /// Behind the data; it is to be moved.
        case pending
        /// Before the data: a player shows the first frame before it has the whole file.
        case front
        /// Behind the data, where it stays unless the disk had no room (`indexFault`) and has later.
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
        /// The first of them; `gapCount` says how many there are.
        public var gaps: [Gap] = []
        public var gapCount = 0
        public var framesWritten = 0
        public var framesLost = 0
        /// Why it is not recorded, or not any more.
        public var fault: String?
        /// The video has more samples per frame than its level permits.
        public var levelExceeded: Bool?
        /// Nothing more comes.
        public var ended = false

        /// Whether nothing but how much there is has changed: after a crash the files say that, too.
        func differsOnlyInCounts(from other: Self) -> Bool {
            gapCount == other.gapCount && fault == other.fault && levelExceeded == other.levelExceeded
                && ended == other.ended && files.count == other.files.count
                && zip(files, other.files).allSatisfy { mine, others in
                    mine.senderMicroseconds == others.senderMicroseconds && mine.width == others.width
                        && mine.height == others.height && mine.rotation == others.rotation
                }
        }

        /// More gaps than these are counted and stand in the log only.
        static let maximumGaps = 1_000
    }

    /// Of this form.
    public var version = 1
    /// `RC_…`.
    public var sid: String
    public var state: State
    /// The room's name, and which life of it.
    public var room: String
    public var roomSid: String
    /// What was asked for: the only participant, the only track, the sources; nil: all.
    public var participant: String?
    public var track: String?
    public var sources: [String]?
    /// The only participants, by sid or identity, where the room's policy names some.
    public var participants: [String]?
    /// Whether the room's policy began it; nil: it did not.
    public var byPolicy: Bool?
    /// What is recorded into one file; nil: each track has files of its own.
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
    /// When it ended by a clock that was set meanwhile or since, in milliseconds since 1970: it is kept from then on, while `startedAt` and `endedAt` are by the clock from before.
    public var keptSince: Int64?
    public var tracks: [Track] = []
    /// Files into which those of tracks are joined.
    public var joined: [JoinedFile]?
    /// Files that are brought to a storage elsewhere, where the server has one.
    public var uploads: [Upload]?
    /// What is made, or was to be made, of its files.
    public var jobs: [RecordingJob]?

    /// Its files are finished: the tables of those that a crash left open are to be moved, too.
    mutating func markForIndex() {
        for track in tracks.indices {
            for file in tracks[track].files.indices where tracks[track].files[file].isFinished {
                tracks[track].files[file].index = tracks[track].files[file].index ?? .pending
            }
        }
    }

    /// When its retention begins; nil while it goes on.
    var retainedFrom: Int64? { keptSince ?? endedAt }

    /// Bytes of its files.
    public var bytes: Int64 { readableFiles.reduce(0) { $0 + $1.bytes } }
}
