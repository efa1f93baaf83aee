import EdgeSupport
import HTTPServing
import MediaControl
import Primitives
import Recorder
import Rooms

/// What is to be recorded, and into which files; by default everything, with the server's settings.
struct RecordingRequestModel: Decodable {
    private let participant: String?
    private let track: String?
    private let sources: [String]?
    private let files: String?
    private let segmentSeconds: Int64?
    private let segmentMegabytes: Int64?
    private let fileName: String?

    static let segmentSeconds: ClosedRange<Int64> = 10...86_400
    static let segmentMegabytes: ClosedRange<Int64> = 1...2_048

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case participant, track, sources, files, segmentSeconds, segmentMegabytes, fileName
    }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        let container = try decoder.container(keyedBy: CodingKeys.self)
        participant = try container.text(.participant, upTo: Bounds.name)
        track = try container.text(.track, upTo: Bounds.name)
        sources = try container.texts(.sources, upTo: Bounds.words)
        files = try container.decodeIfPresent(String.self, forKey: .files)
        segmentSeconds = try container.decodeIfPresent(Int64.self, forKey: .segmentSeconds)
        segmentMegabytes = try container.decodeIfPresent(Int64.self, forKey: .segmentMegabytes)
        fileName = try container.decodeIfPresent(String.self, forKey: .fileName)
    }

    func scope() throws(Problem) -> RecordingScope {
        var scope = RecordingScope(participant: participant, track: track)
        guard let sources else { return scope }
        var wanted = Set<TrackSource>()
        for word in sources {
            guard let source = TrackSource(rawValue: word) else {
                throw Problem(400, "invalid_request", "\(word) is no source of a track.")
            }
            wanted.insert(source)
        }
        guard !wanted.isEmpty else {
            throw Problem(400, "invalid_request", "A recording of no source at all would be empty.")
        }
        scope.sources = wanted
        return scope
    }

    func options() throws(Problem) -> RecordingOptions {
        var options = RecordingOptions()
        if let files {
            guard let known = RecordingOptions.Files(rawValue: files) else {
                throw Problem(400, "invalid_request", "files must be tracks, participant or room.")
            }
            options.files = known
        }
        if let segmentSeconds {
            guard Self.segmentSeconds.contains(segmentSeconds) else {
                throw Problem(400, "invalid_request", "segmentSeconds must be 10 to 86400.")
            }
            options.segmentLength = .seconds(segmentSeconds)
        }
        if let segmentMegabytes {
            guard Self.segmentMegabytes.contains(segmentMegabytes) else {
                throw Problem(400, "invalid_request", "segmentMegabytes must be 1 to 2048.")
            }
            options.segmentBytes = segmentMegabytes << 20
        }
        if let fileName {
            guard FileNameTemplate(fileName) != nil else {
                throw Problem(400, "invalid_request", "fileName may have \(FileNameTemplate.form).")
            }
            options.fileName = fileName
        }
        return options
    }
}

extension FileNameTemplate {
    /// A description of a template, for messages.
    static var form: String {
        let fields = Field.allCases.map { "{\($0.rawValue)}" }.joined(separator: ", ")
        return "letters, digits, _, -, . (not in front) and \(fields), 128 characters at most"
    }
}
