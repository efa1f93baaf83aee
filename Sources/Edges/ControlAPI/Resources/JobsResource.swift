import AccessTokens
import EdgeSupport
import HTTPServing
import OfflineJobs
import Recorder
import Rooms

/// Jobs that make files of finished recordings: started and cancelled by an operator, or by a moderator or a bearer of the grant `recorder` for the recording's
/// room.
struct JobsResource: Resource {
    let access: APIAccess
    private let recorder: FileRecorder?
    private let jobs: JobRunner?

    init(access: APIAccess, recorder: FileRecorder?, jobs: JobRunner?) {
        self.access = access
        self.recorder = recorder
        self.jobs = jobs
    }

    var operations: [Operation] {
        [
            .post("/v1/recordings/{recording}/jobs", createJob),
            .get("/v1/jobs", listJobs),
            .get("/v1/jobs/{job}", showJob),
            .delete("/v1/jobs/{job}", removeJob),
        ]
    }

    func createJob(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let claims = try authorize(request) { $0.roomAdmin || $0.recorder }
        let wanted = try body(JobRequestModel.self, of: request)
        guard let jobs, let recording = recorder?[try request.parameter("recording")],
            Self.covers(claims.video, recording.room)
        else { throw Problem(404, "recording_not_found", "There is no such recording.") }
        let job = try await asking { () async throws(RoomError) in
            try await jobs.add(wanted.request, on: recording)
        }
        var response = HTTPResponse.json(job, status: 201)
        response.headers["Location"] = "/v1/jobs/\(job.sid)"
        return response
    }

    func listJobs(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let claims = try authorize(request) { $0.roomAdmin || $0.recorder }
        let recording = request.query["recording"]
        let all = (jobs?.all ?? []).filter {
            (recording ?? $0.recording) == $0.recording && isCovered($0, by: claims.video)
        }
        return try ListPage(of: all, request) { String(sortableMoment: $0.createdAt) + "-" + $0.sid }
            .response("jobs") { $0 }
    }

    func showJob(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse { .json(try job(request)) }

    /// Cancels a job that waits or runs; removes one that is over, with its file. The query's `state` says which of these is meant.
    func removeJob(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let job = try job(request)
        let stage: JobRunner.Stage? =
            switch request.query["state"] {
            case nil: nil
            case "open": .open
            case "ended": .ended
            default: throw Problem(400, "invalid_request", "The query's state must be open or ended.")
            }
        let removal = try await asking { () async throws(RoomError) in try await jobs?.remove(job, in: stage) }
        switch removal ?? .notFound {
        case .done: return HTTPResponse(status: 204)
        case .conflict(.ended): throw Problem(409, "conflict", "The job is over already.")
        case .conflict(.open): throw Problem(409, "conflict", "The job goes on.")
        case .notFound: throw Self.noSuchJob
        }
    }

    private static let noSuchJob = Problem(404, "job_not_found", "There is no such job.")

    private func job(_ request: HTTPRequest) throws(Problem) -> RecordingJob {
        let claims = try authorize(request) { $0.roomAdmin || $0.recorder }
        guard let job = jobs?[try request.parameter("job")], isCovered(job, by: claims.video) else {
            throw Self.noSuchJob
        }
        return job
    }

    private func isCovered(_ job: RecordingJob, by grant: VideoGrant) -> Bool {
        recorder?[job.recording].map { Self.covers(grant, $0.room) } ?? false
    }
}

/// The file that is to be made from a recording.
struct JobRequestModel: Decodable {
    let request: JobRunner.Request

    static let widths = 160...3_840
    static let heights = 90...2_160
    static let frameRates = 1...60
    static let bitrates: ClosedRange<Int64> = 50_000...50_000_000
    /// The defaults of a composition.
    static let (width, height, frameRate, bitrate) = (1_280, 720, 30, Int64(2_000_000))

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case kind, layout, file, container, codec, width, height, frameRate, bitrate
    }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        guard let kind: RecordingJob.Kind = try Self.word(.kind, fields) else {
            throw JSONFault(fields.codingPath, CodingKeys.kind, .missing)
        }
        var request = JobRunner.Request(kind)
        request.layout = try Self.word(.layout, fields)
        request.source = try fields.text(.file, upTo: Bounds.path)
        request.container = try Self.word(.container, fields)
        request.width = try fields.decodeIfPresent(Int.self, forKey: .width)
        request.height = try fields.decodeIfPresent(Int.self, forKey: .height)
        let codec: RecordingJob.VideoCodec? = try Self.word(.codec, fields)
        let frameRate = try fields.decodeIfPresent(Int.self, forKey: .frameRate)
        let bitrate = try fields.decodeIfPresent(Int64.self, forKey: .bitrate)
        let encoding = RecordingJob.Encoding(
            codec: codec ?? .h264, frameRate: frameRate ?? Self.frameRate, bitrate: bitrate ?? Self.bitrate)
        switch kind {
        case .composition:
            request.layout = request.layout ?? .grid
            request.width = request.width ?? Self.width
            request.height = request.height ?? Self.height
            request.encoding = encoding
            try Self.refuse(request.source != nil, fields, .file, "nothing: a composition has all files")
            try Self.refuse(encoding.codec != .h264, fields, .codec, "h264")
        case .transcode:
            if bitrate == nil { throw JSONFault(fields.codingPath, CodingKeys.bitrate, .missing) }
            request.encoding = encoding
            try Self.refuse(request.layout != nil, fields, .layout, "nothing: one file has no layout")
        case .copy:
            request.container = request.container ?? .webm
            for key in [CodingKeys.layout, .codec, .width, .height, .frameRate, .bitrate] {
                let isThere = try fields.contains(key) && !fields.decodeNil(forKey: key)
                try Self.refuse(isThere, fields, key, "nothing: a copy has what its file has")
            }
        }
        if kind != .composition, request.source == nil { throw JSONFault(fields.codingPath, CodingKeys.file, .missing) }
        if kind != .copy {
            try Self.refuse(request.container != nil, fields, .container, "nothing: what is compressed becomes MP4")
        }
        try Self.check(request.width, Self.widths, fields, .width)
        try Self.check(request.height, Self.heights, fields, .height)
        try Self.check(frameRate, Self.frameRates, fields, .frameRate)
        try Self.refuse(!Self.bitrates.contains(encoding.bitrate), fields, .bitrate, "50000 to 50000000")
        for (size, key) in [(request.width, CodingKeys.width), (request.height, .height)] {
            try Self.refuse((size ?? 0) % 2 != 0, fields, key, "an even number")
        }
        self.request = request
    }

    private static func word<Word: RawRepresentable<String> & CaseIterable>(
        _ key: CodingKeys, _ fields: Fields
    ) throws -> Word? {
        guard let text = try fields.decodeIfPresent(String.self, forKey: key) else { return nil }
        guard let word = Word(rawValue: text) else {
            throw JSONFault(fields.codingPath, key, .unexpected(wanted: Word.allWords))
        }
        return word
    }

    private typealias Fields = KeyedDecodingContainer<CodingKeys>

    private static func check(_ value: Int?, _ range: ClosedRange<Int>, _ fields: Fields, _ key: CodingKeys) throws {
        try refuse(
            value.map { !range.contains($0) } ?? false, fields, key, "\(range.lowerBound) to \(range.upperBound)")
    }

    private static func refuse(_ isWrong: Bool, _ fields: Fields, _ key: CodingKeys, _ wanted: String) throws {
        guard isWrong else { return }
        throw JSONFault(fields.codingPath, key, .unexpected(wanted: wanted))
    }
}
