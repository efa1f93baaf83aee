public import MediaControl
public import Primitives

/// What of a room is recorded.
public struct RecordingScope: Sendable, Hashable {
    /// The sid of the only participant; nil: everybody.
    public var participant: String?
    /// The identity of the only participant, who may come back under another sid; nil where the sid alone counts.
    public var identity: String?
    /// The sid of the only track; nil: every track that fits.
    public var track: String?
    /// Sources; nil: all.
    public var sources: Set<TrackSource>?
    /// The only participants, by sid or identity, where the room's policy names some; nil: no such bound.
    public var participants: Set<String>?

    /// Everything.
    public init(
        participant: String? = nil, track: String? = nil, sources: Set<TrackSource>? = nil,
        participants: Set<String>? = nil
    ) {
        self.participant = participant
        self.track = track
        self.sources = sources
        self.participants = participants
    }

    /// As much of it as the rules of the room have recorded.
    func bounded(by policy: RoomPolicy) -> Self {
        var scope = self
        if let permitted = policy.recordingSources { scope.sources = sources?.intersection(permitted) ?? permitted }
        scope.participants = policy.recordingParticipants
        return scope
    }

    /// Whether it has the track.
    func contains(_ info: TrackInfo) -> Bool {
        (participant.map { $0 == info.participant || identity == info.identity } ?? true)
            && (track ?? info.sid) == info.sid && sources?.contains(info.source) ?? true
            && participants.map { $0.contains(info.participant) || $0.contains(info.identity) } ?? true
    }
}

/// How a recording lies on the disk. nil: as the server's settings have it.
public struct RecordingOptions: Sendable, Hashable {
    /// What is recorded into one file. `rawValue` is the stable word.
    public enum Files: String, Codable, Sendable, Hashable, CaseIterable {
        /// Each track has files of its own.
        case tracks
        /// The tracks of a participant are joined.
        case participant
        /// All tracks are joined.
        case room
    }

    /// What is recorded into one file.
    public var files: Files?
    /// Another file begins after this.
    public var segmentLength: TimeInterval?
    /// Another file begins after so many bytes.
    public var segmentBytes: Int64?
    /// A template of the files' names, which whoever asks has checked.
    public var fileName: String?

    /// As the server's settings have it.
    public init() {}

    /// With what `others` say where it says nothing.
    func completed(by others: Self) -> Self {
        var options = self
        options.files = files ?? others.files
        options.segmentLength = segmentLength ?? others.segmentLength
        options.segmentBytes = segmentBytes ?? others.segmentBytes
        options.fileName = fileName ?? others.fileName
        return options
    }
}

/// A recording in progress, as members are told.
public struct RecordingInfo: Sendable, Hashable {
    /// `RC_…`.
    public var sid: String
    public var scope: RecordingScope
    /// Milliseconds since 1970.
    public var startedAt: Int64
    /// Whether the room's policy began it.
    public var isByPolicy: Bool
    /// How it lies on the disk.
    public var options: RecordingOptions

    /// A recording of `scope`.
    public init(
        sid: String, scope: RecordingScope, startedAt: Int64, isByPolicy: Bool = false,
        options: RecordingOptions = RecordingOptions()
    ) {
        self.options = options
        self.sid = sid
        self.scope = scope
        self.startedAt = startedAt
        self.isByPolicy = isByPolicy
    }
}

/// What the recorder has to know, in order, and before the media.
public enum RecordingEffect: Sendable, Hashable {
    case started(RecordingInfo)
    /// A track's packets come from now on under the number `stream`. `track` has it in the media plane.
    case track(recording: String, stream: SubscriptionID, track: TrackID, TrackInfo)
    /// A track of the recording cannot be recorded.
    case refused(recording: String, TrackInfo, RecordingRefusal)
    /// No further tracks come; those that there are end.
    case stopped(RecordingInfo)
}

/// Why a track is not recorded. `rawValue` is the stable word.
public enum RecordingRefusal: String, Sendable, Hashable, CaseIterable {
    /// Its publisher encrypts end to end.
    case endToEndEncrypted = "e2ee"
    /// Files have no form for any of its codecs.
    case codecNotRecordable = "codec_not_recordable"
    /// The disk has too little room beside what recordings leave free.
    case diskFull = "disk_full"
    /// The server records as many tracks as it may.
    case tooManyTracks = "too_many_tracks"
    /// What is recorded already is more than the disk or the processor keeps up with.
    case recorderBehind = "recorder_behind"
    /// The server has no folder for recordings.
    case disabled = "recording_disabled"
}

extension RecordingRefusal {
    /// Whether it may pass while the track is there, so that the track is tried again.
    var isTemporary: Bool {
        switch self {
        case .diskFull, .tooManyTracks, .recorderBehind: true
        case .endToEndEncrypted, .codecNotRecordable, .disabled: false
        }
    }

    /// As whoever asked for the recording is told.
    public var error: RoomError {
        switch self {
        case .endToEndEncrypted:
            RoomError(.notRecordable, "\(rawValue): the participant encrypts its media end to end")
        case .codecNotRecordable: RoomError(.notRecordable, "\(rawValue): files have no form for the codec")
        case .diskFull:
            RoomError(
                .diskFull, "the disk has too little room beside what recordings leave free", retryAfter: .seconds(60))
        case .tooManyTracks:
            RoomError(
                .overloaded, "as many tracks are recorded as the server may record", retryAfter: .seconds(30))
        case .recorderBehind:
            RoomError(
                .overloaded, "the recorder does not keep up with what is recorded already", retryAfter: .seconds(10))
        case .disabled:
            RoomError(.recordingDisabled, "the server has no folder for recordings: set recording.directory")
        }
    }
}

/// What a server can record beside what it records already.
public struct RecordingAdmission: Sendable, Hashable {
    private let obstacle: RecordingRefusal?
    private var tracksLeft: Int

    /// So many further tracks, unless an obstacle stands in the way of any.
    public init(tracksLeft: Int = .max, obstacle: RecordingRefusal? = nil) {
        self.tracksLeft = tracksLeft
        self.obstacle = obstacle
    }

    /// Why no further track can be recorded; nil: one can.
    public var refusal: RecordingRefusal? { obstacle ?? (tracksLeft > 0 ? nil : .tooManyTracks) }

    /// Reserves the place of one track, or says why there is none.
    mutating func reservePlace() -> RecordingRefusal? {
        if let refusal { return refusal }
        tracksLeft -= 1
        return nil
    }

    /// Returns the place of a track.
    mutating func returnPlace() { if tracksLeft < .max { tracksLeft += 1 } }
}

/// What happens to a recording, for the event log.
public struct RecordingEvent: Sendable, Hashable {
    /// The kinds.
    public enum Kind: Sendable, Hashable {
        case started, stopped
        /// A part of a track is missing.
        case gap
        /// All files are finished.
        case ready
        /// A track, or without one everything, cannot be recorded any more.
        case failed
        /// Something is being made of its files, has been made, or cannot be.
        case jobStarted, jobFinished, jobFailed
    }

    public var kind: Kind
    /// `RC_…`.
    public var recording: String
    /// The sid of the track that it is about.
    public var track: String?
    /// A stable word.
    public var reason: String?
    /// Length of what is missing.
    public var milliseconds: Int64?
    /// `JB_…`, the job that it is about.
    public var job: String?

    /// An event of a recording.
    public init(
        _ kind: Kind, recording: String, track: String? = nil, reason: String? = nil, milliseconds: Int64? = nil
    ) {
        self.kind = kind
        self.recording = recording
        self.track = track
        self.reason = reason
        self.milliseconds = milliseconds
    }
}
