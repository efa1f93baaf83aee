import CLiveKitProtocol
import Recorder

/// A recording, shown to LiveKit's clients as an egress.
struct EgressModel {
    /// A file of it; times in nanoseconds, since 1970 where they are moments.
    struct File {
        var name: String
        var location: String
        var startedAt: Int64
        var endedAt: Int64
        var duration: Int64
        var size: Int64
    }

    let summary: RecordingSummary
    let status: Livekit__EgressStatus
    /// Why it has failed; empty: it has not.
    let error: String
    let files: [File]
    /// The participant, if the recording contains the tracks of one only: its identity, or its sid while there are no tracks yet.
    let identity: String?

    /// `isEnding`: its room has ended it, and its files are being finished. `identity` is the one in the call that began it.
    init(_ summary: RecordingSummary, identity: String? = nil, isEnding: Bool = false) {
        self.summary = summary
        self.identity = identity ?? summary.tracks.first?.identity ?? summary.participant
        let fault = summary.tracks.compactMap(\.fault).first
        switch summary.state {
        case .recording:
            status = isEnding ? LIVEKIT__EGRESS_STATUS__EGRESS_ENDING : LIVEKIT__EGRESS_STATUS__EGRESS_ACTIVE
        case .ready:
            status =
                summary.awaitsJoining
                ? LIVEKIT__EGRESS_STATUS__EGRESS_ENDING : LIVEKIT__EGRESS_STATUS__EGRESS_COMPLETE
        case .empty:
            // LiveKit calls an egress aborted if it was stopped before any media arrived.
            status = fault == nil ? LIVEKIT__EGRESS_STATUS__EGRESS_ABORTED : LIVEKIT__EGRESS_STATUS__EGRESS_FAILED
        }
        error = summary.state == .empty ? fault ?? "" : ""
        files = summary.storedFiles.map { file in
            let started = summary.startedAt + file.startMilliseconds
            let duration = file.durationMilliseconds ?? 0
            return File(
                name: file.name, location: "/v1/recordings/\(summary.sid)/file?name=\(file.name)",
                startedAt: started * 1_000_000, endedAt: duration > 0 ? (started + duration) * 1_000_000 : 0,
                duration: duration * 1_000_000, size: file.bytes)
        }
    }

    /// Whether a list of active ones contains it: LiveKit's server omits those that are over, and no egress is over before its files are finished.
    var isActive: Bool {
        status == LIVEKIT__EGRESS_STATUS__EGRESS_ACTIVE || status == LIVEKIT__EGRESS_STATUS__EGRESS_ENDING
    }

    /// LiveKit's clients expect ids with this prefix; the rest is the recording's id.
    private static let prefix = "EG_"

    static func id(of summary: RecordingSummary) -> String { prefix + summary.sid.dropFirst(3) }

    /// The sid of the recording that clients know by `id`; nil where it is none.
    static func recording(of id: String) -> String? {
        id.hasPrefix(prefix) ? "RC_" + id.dropFirst(prefix.count) : nil
    }
}

extension MessageArena {
    func egress(_ model: EgressModel) -> UnsafeMutablePointer<Livekit__EgressInfo> {
        let summary = model.summary
        return make(livekit__egress_info__init) { message in
            message.egress_id = text(EgressModel.id(of: summary))
            message.room_id = text(summary.roomSid)
            message.room_name = text(summary.room)
            message.source_type = LIVEKIT__EGRESS_SOURCE_TYPE__EGRESS_SOURCE_TYPE_SDK
            message.status = model.status
            message.started_at = summary.startedAt * 1_000_000
            message.ended_at = (summary.endedAt ?? 0) * 1_000_000
            message.updated_at = (summary.endedAt ?? summary.startedAt) * 1_000_000
            message.error = text(model.error)
            request(model, &message)
            let files = model.files.map { self.file($0) }
            message.n_file_results = files.count
            message.file_results = list(files)
            guard let first = files.first, summary.track != nil else { return }
            message.result_case = LIVEKIT__EGRESS_INFO__RESULT_FILE
            message.file = first
        }
    }

    /// The original request, in the form in which LiveKit's clients make it.
    private func request(_ model: EgressModel, _ message: inout Livekit__EgressInfo) {
        let summary = model.summary
        if let track = summary.track {
            message.request_case = LIVEKIT__EGRESS_INFO__REQUEST_TRACK
            message.track = make(livekit__track_egress_request__init) {
                $0.room_name = text(summary.room)
                $0.track_id = text(track)
            }
        } else if summary.participant != nil, let identity = model.identity {
            message.request_case = LIVEKIT__EGRESS_INFO__REQUEST_PARTICIPANT
            message.participant = make(livekit__participant_egress_request__init) {
                $0.room_name = text(summary.room)
                $0.identity = text(identity)
                $0.screen_share = summary.sources?.contains("screen") == true ? 1 : 0
            }
        } else {
            message.request_case = LIVEKIT__EGRESS_INFO__REQUEST_ROOM_COMPOSITE
            message.room_composite = make(livekit__room_composite_egress_request__init) {
                $0.room_name = text(summary.room)
            }
        }
    }

    private func file(_ file: EgressModel.File) -> UnsafeMutablePointer<Livekit__FileInfo> {
        make(livekit__file_info__init) {
            $0.filename = text(file.name)
            $0.location = text(file.location)
            $0.started_at = file.startedAt
            $0.ended_at = file.endedAt
            $0.duration = file.duration
            $0.size = file.size
        }
    }
}
