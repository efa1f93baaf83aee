public import MediaControl
public import Primitives

/// The part of a room that is recorded.
public struct RecordingScope: Sendable, Hashable {
    /// The sid of the only participant; nil: everybody.
    public var participant: String?
    /// The identity of the only participant, who may come back under another sid; nil if only the sid counts.
    public var identity: String?
    /// The sid of the only track; nil: every track that matches.
    public var track: String?
    /// Sources; nil: all.
    public var sources: Set<TrackSource>?
    /// The only participants, by sid or identity, if the room's policy names some; nil: not restricted.
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

    /// The scope within the limits of the room's rules.
    func bounded(by policy: RoomPolicy) -> Self {
        var scope = self
        if let permitted = policy.recordingSources { scope.sources = sources?.intersection(permitted) ?? permitted }
        scope.participants = policy.recordingParticipants
        return scope
    }

    /// Whether it includes the track.
    func contains(_ info: TrackInfo) -> Bool {
        (participant.map { $0 == info.participant || identity == info.identity } ?? true)
            && (track ?? info.sid) == info.sid && sources?.contains(info.source) ?? true
            && participants.map { $0.contains(info.participant) || $0.contains(info.identity) } ?? true
    }
}

/// The file layout of a recording. nil: the server's settings apply.
public struct RecordingOptions: Sendable, Hashable {
    /// What is recorded into one file. `rawValue` is the stable word.
    public enum Files: String, Codable, Sendable, Hashable, CaseIterable {
        /// Each track has its own files.
        case tracks
        /// The tracks of a participant are joined.
        case participant
        /// All tracks are joined.
        case room
    }

    /// What is recorded into one file.
    public var files: Files?
    /// A new file begins after this.
    public var segmentLength: TimeSpan?
    /// A new file begins after this many bytes.
    public var segmentBytes: Int64?
    /// A template of the files' names, which the caller has checked.
    public var fileName: String?

    /// The server's settings apply.
    public init() {}

    /// Missing values are taken from `others`.
    func completed(by others: Self) -> Self {
        var options = self
        options.files = files ?? others.files
        options.segmentLength = segmentLength ?? others.segmentLength
        options.segmentBytes = segmentBytes ?? others.segmentBytes
        options.fileName = fileName ?? others.fileName
        return options
    }
}

/// A recording in progress, as members see it.
public struct RecordingInfo: Sendable, Hashable {
    /// `RC_…`.
    public var sid: String
    public var scope: RecordingScope
    /// Milliseconds since 1970.
    public var startedAt: Int64
    /// Whether the room's policy began it.
    public var isByPolicy: Bool
    /// Its file layout.
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

/// What the recorder must know, in order, and before the media arrives.
public enum RecordingEffect: Sendable, Hashable {
    case started(RecordingInfo)
    /// From now on a track's packets arrive under the number `stream`. `track` is its id in the media plane.
    case track(recording: String, stream: SubscriptionID, track: TrackID, TrackInfo)
    /// A track of the recording cannot be recorded.
    case refused(recording: String, TrackInfo, RecordingRefusal)
    /// No further tracks follow; the existing ones end.
    case stopped(RecordingInfo)
}

/// Why a track is not recorded. `rawValue` is the stable word.
public enum RecordingRefusal: String, Sendable, Hashable, CaseIterable {
    /// Its publisher encrypts end to end.
    case endToEndEncrypted = "e2ee"
    /// None of its codecs can be stored in files.
    case codecNotRecordable = "codec_not_recordable"
    /// The disk has too little space besides the reserve that recordings leave free.
    case diskFull = "disk_full"
    /// The server records as many tracks as it is allowed to.
    case tooManyTracks = "too_many_tracks"
    /// The current recordings are more than the disk or the processor keeps up with.
    case recorderBehind = "recorder_behind"
    /// The server has no folder for recordings.
    case disabled = "recording_disabled"
}

extension RecordingRefusal {
    /// Whether the obstacle may disappear while the track exists, so that the track is tried again.
    var isTemporary: Bool {
        switch self {
        case .diskFull, .tooManyTracks, .recorderBehind: true
        case .endToEndEncrypted, .codecNotRecordable, .disabled: false
        }
    }

    /// The reason as reported to the client that requested the recording.
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

/// How many more tracks a server can record.
public struct RecordingAdmission: Sendable, Hashable {
    private let obstacle: RecordingRefusal?
    private var tracksLeft: Int

    /// Up to this many more tracks, unless an obstacle prevents all of them.
    public init(tracksLeft: Int = .max, obstacle: RecordingRefusal? = nil) {
        self.tracksLeft = tracksLeft
        self.obstacle = obstacle
    }

    /// Why no further track can be recorded; nil: one can.
    public var refusal: RecordingRefusal? { obstacle ?? (tracksLeft > 0 ? nil : .tooManyTracks) }

    /// Reserves the place of one track, or returns why there is none.
    mutating func reservePlace() -> RecordingRefusal? {
        if let refusal { return refusal }
        tracksLeft -= 1
        return nil
    }

    /// Returns the place of a track.
    mutating func returnPlace() { if tracksLeft < .max { tracksLeft += 1 } }
}

/// An event of a recording, for the event log.
public struct RecordingEvent: Sendable, Hashable {
    /// The kinds.
    public enum Kind: Sendable, Hashable {
        case started, stopped
        /// A part of a track is missing.
        case gap
        /// All files are finished.
        case ready
        /// A track, or without one the whole recording, can no longer be recorded.
        case failed
        /// A job makes something from its files, has made it, or failed.
        case jobStarted, jobFinished, jobFailed
    }

    public var kind: Kind
    /// `RC_…`.
    public var recording: String
    /// The sid of the track that the event is about.
    public var track: String?
    /// A stable word.
    public var reason: String?
    /// Duration of the missing part.
    public var milliseconds: Int64?
    /// `JB_…`, the job that the event is about.
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
