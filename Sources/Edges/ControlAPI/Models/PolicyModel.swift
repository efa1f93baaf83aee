import EdgeSupport
import MediaControl
import Primitives
public import Rooms
import SDP

/// One layer of a room's rules, as JSON shows it; in a request every member may be absent.
struct PolicyModel: Codable, Sendable, Hashable {
    /// What it says.
    var document: PolicyDocument

    /// What one layer says.
    init(_ document: PolicyDocument) { self.document = document }

    /// The rules in force; an absent member sets no limit.
    init(_ policy: RoomPolicy) { document = PolicyDocument(policy) }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, known: Self.memberNames)
        let fields = try decoder.container(keyedBy: StrictKeys.self)
        document = PolicyDocument()
        for member in Self.members { try member.read(fields, &document) }
        let bandwidth = try BandwidthMembers(fields)
        switch bandwidth.profile {
        case .success(let profile): document.bandwidth = profile
        case .failure(let wrong):
            throw JSONFault(fields.codingPath, StrictKeys(stringValue: wrong.name), .unexpected(wanted: wrong.wanted))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: StrictKeys.self)
        for member in Self.members { try member.write(document, &fields) }
        try BandwidthMembers(document.bandwidth).write(to: &fields)
    }

    /// The members' names in JSON.
    static let memberNames = members.map(\.name) + BandwidthMembers.names

    private static let members: [PolicyMember] = [
        .word("topology", \.topology),
        .number("maxParticipants", \.maxParticipants, PolicyDocument.Ranges.participants),
        .flag("countsHidden", \.countsHidden),
        .flag("countsPublishOnly", \.countsPublishOnly),
        .number("maxPublishers", \.maxPublishers, 0...1_000_000),
        .list("audioCodecs", \.audioCodecs, of: Codec.allCases.filter { $0.kind == .audio }, \.word),
        .list("videoCodecs", \.videoCodecs, of: Codec.allCases.filter { $0.kind == .video }, \.word),
        .list("h264Profiles", \.h264Profiles, of: H264Profile.allCases, \.rawValue),
        .numbers("vp9Profiles", \.vp9Profiles, 0...3),
        .numbers("av1Profiles", \.av1Profiles, 0...2),
        .flag("audioOnly", \.audioOnly),
        .bitrate("maxVideoBitrate", \.maxVideoBitrate, 10_000...1_000_000_000),
        .set("publishSources", \.publishSources, of: TrackSource.named, \.rawValue),
        .set("moderatorSources", \.moderatorSources, of: TrackSource.named, \.rawValue),
        .flag("allowSimulcast", \.allowsSimulcast),
        .flag("allowMessages", \.allowsMessages),
        .milliseconds(
            "minPlayoutDelayMilliseconds", \.minPlayoutDelay, PolicyDocument.Ranges.playoutDelayMilliseconds),
        .milliseconds(
            "maxPlayoutDelayMilliseconds", \.maxPlayoutDelay, PolicyDocument.Ranges.playoutDelayMilliseconds),
        .number("maxMicrophones", \.maxMicrophones, 1...50),
        .number("microphoneThreshold", \.microphoneThreshold, -80...(-20)),
        .identities("alwaysHeard", \.alwaysHeard, most: 64),
        .number("speakerThreshold", \.speakerThreshold, -80...(-20)),
        .number("maxSpeakers", \.maxSpeakers, 0...50),
        .subscribeRules("subscribeRules", \.subscribeRules),
        .word("recording", \.recording),
        .set("recordingSources", \.recordingSources, of: TrackSource.named, \.rawValue),
        .identities("recordingParticipants", \.recordingParticipants, most: 64),
        .word("recordingFiles", \.recordingFiles),
        .seconds("recordingSegmentSeconds", \.recordingSegmentLength, RecordingRequestModel.segmentSeconds),
        .megabytes("recordingSegmentMegabytes", \.recordingSegmentBytes, RecordingRequestModel.segmentMegabytes),
        .fileName("recordingFileName", \.recordingFileName),
        .flag("requireEncryption", \.requiresEncryption),
        .flag("waitingRoom", \.waitingRoom),
        .word("lockRight", \.lockRight),
        .word("duplicateIdentity", \.duplicateIdentity),
        .seconds("maxDurationSeconds", \.maxDuration, 1...31_622_400),
        .seconds("maxStaySeconds", \.maxStay, 1...31_622_400),
        .flag("endStayWithToken", \.endsStayWithToken),
        .seconds("emptyTimeoutSeconds", \.emptyTimeout, PolicyDocument.Ranges.emptyTimeoutSeconds),
        .seconds("departureTimeoutSeconds", \.departureTimeout, PolicyDocument.Ranges.departureTimeoutSeconds),
    ]
}

/// A policy as text, for storage.
public enum PolicyText {
    /// `document` as JSON.
    public static func encode(_ document: PolicyDocument) -> [UInt8] { JSONCoding.encode(PolicyModel(document)) }

    /// The document in `text`; nil if it is none.
    public static func decode(_ text: [UInt8]) -> PolicyDocument? {
        (try? JSONCoding.decode(PolicyModel.self, from: text))?.document
    }
}

extension TrackSource {
    /// Those that a publisher can name.
    fileprivate static let named = allCases.filter { $0 != .unknown }
}
