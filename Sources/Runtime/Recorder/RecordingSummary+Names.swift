import MediaControl
import Primitives
import Recording
import Rooms

extension RecordingSummary {
    /// A new recording, with its own layout values and the server's settings for the others.
    init(_ info: RecordingInfo, room: String, roomSID: String, _ configuration: RecorderConfiguration) {
        let options = info.options
        let length = options.segmentLength ?? configuration.segmentLength
        self.init(
            sid: info.sid, state: .recording, room: room, roomSid: roomSID, participant: info.scope.participant,
            track: info.scope.track, sources: info.scope.sources.map { $0.map(\.rawValue).sorted() },
            participants: info.scope.participants.map { $0.sorted() }, byPolicy: info.isByPolicy ? true : nil,
            files: options.files ?? configuration.files, fileName: options.fileName ?? configuration.fileName.text,
            segmentSeconds: Int(length.nanoseconds / 1_000_000_000),
            segmentBytes: options.segmentBytes ?? configuration.segmentBytes, startedAt: info.startedAt)
    }

    /// When another file of a track begins.
    var segments: SegmentLimit {
        SegmentLimit(
            length: segmentSeconds.map { .seconds(Int64($0)) } ?? SegmentLimit.usual.length,
            bytes: segmentBytes ?? SegmentLimit.usual.bytes)
    }
}

/// The values of those fields of file names that are the same for all files of a track.
struct FileNameFields {
    private let template: FileNameTemplate
    private let room: String
    private let recording: String
    private let participant: String
    private let track: String
    private let source: String

    /// The name by the template of the recording, or by another one.
    init(
        _ recording: RecordingSummary, template: FileNameTemplate? = nil, participant: String, track: String,
        source: String
    ) {
        self.template = template ?? recording.fileName.flatMap { FileNameTemplate($0) } ?? .usual
        room = recording.room
        self.recording = recording.sid
        self.participant = participant
        self.track = track
        self.source = source
    }

    /// The name of file number `segment`, which begins at `moment` (milliseconds since 1970), without `.mp4`.
    func name(segment: Int, at moment: Int64) -> String {
        template.name { field in
            switch field {
            case .room: room
            case .recording: recording
            case .participant: participant
            case .track: track
            case .source: source
            case .time: FileNameTemplate.moment(moment)
            case .segment: FileNameTemplate.digits(segment)
            }
        }
    }
}

extension RecordingSummary.File {
    /// Records the contents that were found in it when it was finished.
    mutating func note(_ content: (samples: Int, duration: UInt64, timescale: UInt32)) {
        samples = content.samples
        durationMilliseconds = Int64(content.duration * 1_000 / UInt64(content.timescale))
    }
}
