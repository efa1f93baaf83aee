public import MediaControl
public import Primitives
public import SDP

/// What one layer specifies about a room's rules; nil: not specified.
///
/// Layers are stacked: the server's defaults, a preset, the room's own document. The topmost layer that specifies a rule decides it.
public struct PolicyDocument: Sendable, Hashable {
    /// The permitted ranges of those values of a document that more than one interface sets.
    public enum Ranges {
        public static let participants = 1...1_000_000
        public static let emptyTimeoutSeconds: ClosedRange<Int64> = 1...86_400
        public static let departureTimeoutSeconds: ClosedRange<Int64> = 0...86_400
        public static let playoutDelayMilliseconds: ClosedRange<Int64> = 0...10_000
    }

    public var topology: RoomPolicy.Topology?
    public var maxParticipants: Int?
    public var countsHidden: Bool?
    public var countsPublishOnly: Bool?
    public var maxPublishers: Int?
    public var bandwidth = BandwidthProfile()
    public var audioCodecs: [Codec]?
    public var videoCodecs: [Codec]?
    public var h264Profiles: [H264Profile]?
    public var vp9Profiles: [Int]?
    public var av1Profiles: [Int]?
    public var audioOnly: Bool?
    public var maxVideoBitrate: Bitrate?
    public var publishSources: Set<TrackSource>?
    public var moderatorSources: Set<TrackSource>?
    public var allowsSimulcast: Bool?
    public var allowsMessages: Bool?
    public var minPlayoutDelay: TimeSpan?
    public var maxPlayoutDelay: TimeSpan?
    public var maxMicrophones: Int?
    public var microphoneThreshold: Int?
    public var alwaysHeard: Set<String>?
    public var speakerThreshold: Int?
    public var maxSpeakers: Int?
    public var subscribeRules: [SubscribeRule]?
    public var recording: RoomPolicy.RecordingStart?
    public var recordingSources: Set<TrackSource>?
    public var recordingParticipants: Set<String>?
    public var recordingFiles: RecordingOptions.Files?
    public var recordingSegmentLength: TimeSpan?
    public var recordingSegmentBytes: Int64?
    public var recordingFileName: String?
    public var requiresEncryption: Bool?
    public var waitingRoom: Bool?
    public var lockRight: RoomPolicy.LockRight?
    public var duplicateIdentity: RoomPolicy.DuplicateIdentity?
    public var maxDuration: TimeSpan?
    public var maxStay: TimeSpan?
    public var endsStayWithToken: Bool?
    public var emptyTimeout: TimeSpan?
    public var departureTimeout: TimeSpan?

    /// Nothing specified.
    public init() {}

    /// Specifies all rules that are in force.
    public init(_ policy: RoomPolicy) {
        for rule in Self.rules { rule.read(policy, &self) }
    }

    /// `base`, overridden by what this layer specifies.
    public func applied(to base: RoomPolicy) -> RoomPolicy {
        var policy = base
        for rule in Self.rules { rule.apply(self, &policy) }
        return policy
    }

    /// Every rule, with its place in the rules in force.
    private static let rules: [Rule] = [
        Rule(\.topology, \.topology),
        Rule(\.maxParticipants, \.maxParticipants),
        Rule(\.countsHidden, \.countsHidden),
        Rule(\.countsPublishOnly, \.countsPublishOnly),
        Rule(\.maxPublishers, \.maxPublishers),
        Rule(\.bandwidth.mode, \.bandwidth.mode),
        Rule(\.bandwidth.maxVideoSubscriptions, \.bandwidth.maxVideoSubscriptions),
        Rule(\.bandwidth.maxDownlinkBitrate, \.bandwidth.maxDownlinkBitrate),
        Rule(\.bandwidth.maxUplinkBitrate, \.bandwidth.maxUplinkBitrate),
        Rule(\.bandwidth.shortage, \.bandwidth.shortage),
        Rule(\.audioCodecs, \.audioCodecs),
        Rule(\.videoCodecs, \.videoCodecs),
        Rule(\.h264Profiles, \.h264Profiles),
        Rule(\.vp9Profiles, \.vp9Profiles),
        Rule(\.av1Profiles, \.av1Profiles),
        Rule(\.audioOnly, \.audioOnly),
        Rule(\.maxVideoBitrate, \.maxVideoBitrate),
        Rule(\.publishSources, \.publishSources),
        Rule(\.moderatorSources, \.moderatorSources),
        Rule(\.allowsSimulcast, \.allowsSimulcast),
        Rule(\.allowsMessages, \.allowsMessages),
        Rule(\.minPlayoutDelay, \.minPlayoutDelay),
        Rule(\.maxPlayoutDelay, \.maxPlayoutDelay),
        Rule(\.maxMicrophones, \.audio.maximumMicrophones),
        Rule(\.microphoneThreshold, \.audio.microphoneThreshold),
        Rule(\.alwaysHeard, \.alwaysHeard),
        Rule(\.speakerThreshold, \.audio.voiceThreshold),
        Rule(\.maxSpeakers, \.audio.maximumSpeakers),
        Rule(\.subscribeRules, \.subscribeRules),
        Rule(\.recording, \.recording),
        Rule(\.recordingSources, \.recordingSources),
        Rule(\.recordingParticipants, \.recordingParticipants),
        Rule(\.recordingFiles, \.recordingOptions.files),
        Rule(\.recordingSegmentLength, \.recordingOptions.segmentLength),
        Rule(\.recordingSegmentBytes, \.recordingOptions.segmentBytes),
        Rule(\.recordingFileName, \.recordingOptions.fileName),
        Rule(\.requiresEncryption, \.requiresEncryption),
        Rule(\.waitingRoom, \.waitingRoom),
        Rule(\.lockRight, \.lockRight),
        Rule(\.duplicateIdentity, \.duplicateIdentity),
        Rule(\.maxDuration, \.maxDuration),
        Rule(\.maxStay, \.maxStay),
        Rule(\.endsStayWithToken, \.endsStayWithToken),
        Rule(\.emptyTimeout, \.emptyTimeout),
        Rule(\.departureTimeout, \.departureTimeout),
    ]

    /// One rule in a layer and in force. A rule that may be absent in force, too, sets no limit then.
    private struct Rule: Sendable {
        let read: @Sendable (RoomPolicy, inout PolicyDocument) -> Void
        let apply: @Sendable (PolicyDocument, inout RoomPolicy) -> Void

        init<Value>(
            _ said: any WritableKeyPath<PolicyDocument, Value?> & Sendable,
            _ inForce: any WritableKeyPath<RoomPolicy, Value> & Sendable
        ) {
            read = { $1[keyPath: said] = $0[keyPath: inForce] }
            apply = { if let value = $0[keyPath: said] { $1[keyPath: inForce] = value } }
        }

        init<Value>(
            _ said: any WritableKeyPath<PolicyDocument, Value?> & Sendable,
            _ inForce: any WritableKeyPath<RoomPolicy, Value?> & Sendable
        ) {
            read = { $1[keyPath: said] = $0[keyPath: inForce] }
            apply = { if let value = $0[keyPath: said] { $1[keyPath: inForce] = value } }
        }
    }
}
