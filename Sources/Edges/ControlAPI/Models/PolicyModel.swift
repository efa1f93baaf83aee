import EdgeSupport
import MediaControl
import Primitives
import Rooms

/// What `POST /v1/rooms` takes.
struct RoomCreation: Decodable {
    var name: String?
    var metadata: String?
    var preset: String?
    var policy: PolicyModel?

    private enum CodingKeys: String, CodingKey, CaseIterable { case name, metadata, preset, policy }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(
            decoder, CodingKeys.self, below: ["policy": PolicyModel.CodingKeys.allCases.map(\.stringValue)])
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        name = try fields.text(.name, .identifier)
        metadata = try fields.text(.metadata, .metadata)
        preset = try fields.text(.preset, .identifier)
        policy = try fields.decodeIfPresent(PolicyModel.self, forKey: .policy)
    }
}

extension KeyedDecodingContainer {
    /// A text that keeps to `rule`; nil where there is none.
    func text(_ key: Key, _ rule: TextRule) throws -> String? {
        guard let text = try decodeIfPresent(String.self, forKey: key) else { return nil }
        if let fault = rule.fault(in: text) { throw JSONFault(codingPath, key, .refused("\(fault)")) }
        return text
    }
}

/// A room's policy as JSON shows it; in a request every member may be absent.
struct PolicyModel: Codable, Sendable, Hashable {
    var topology: String?
    var maxParticipants: Int?
    var countsHidden: Bool?
    var countsPublishOnly: Bool?
    var maxPublishers: Int?
    var maxVideoSubscriptions: Int?
    var audioCodecs: [String]?
    var videoCodecs: [String]?
    var audioOnly: Bool?
    /// Bits a second.
    var maxVideoBitrate: Int64?
    var bandwidthMode: String?
    /// Bits a second.
    var maxDownlinkBitrate: Int64?
    var maxUplinkBitrate: Int64?
    var shortage: String?
    var oversendBitrate: Int64?
    /// `microphone`, `camera`, `screen`, `screenAudio`.
    var publishSources: [String]?
    var allowSimulcast: Bool?
    /// `operators`, `moderators` or `members`.
    var lockRight: String?
    /// `replace` or `refuse`.
    var duplicateIdentity: String?
    var maxDurationSeconds: Int64?
    var maxStaySeconds: Int64?
    var endStayWithToken: Bool?
    var emptyTimeoutSeconds: Int64?
    var departureTimeoutSeconds: Int64?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case topology, maxParticipants, countsHidden, countsPublishOnly, maxPublishers, maxVideoSubscriptions
        case audioCodecs, videoCodecs, audioOnly, maxVideoBitrate, emptyTimeoutSeconds, departureTimeoutSeconds
        case bandwidthMode, maxDownlinkBitrate, maxUplinkBitrate, shortage, oversendBitrate
        case lockRight, publishSources, allowSimulcast, duplicateIdentity, maxDurationSeconds, maxStaySeconds,
            endStayWithToken
    }

    /// What is in force; a member that is absent sets no limit.
    init(_ policy: RoomPolicy) { self.init(PolicyDocument(policy)) }

    /// What one layer says.
    init(_ document: PolicyDocument) {
        topology = document.topology?.rawValue
        maxParticipants = document.maxParticipants
        countsHidden = document.countsHidden
        countsPublishOnly = document.countsPublishOnly
        maxPublishers = document.maxPublishers
        audioCodecs = document.audioCodecs?.map(\.word)
        videoCodecs = document.videoCodecs?.map(\.word)
        audioOnly = document.audioOnly
        maxVideoBitrate = document.maxVideoBitrate?.bitsPerSecond
        publishSources = document.publishSources?.map(\.rawValue).sorted()
        allowSimulcast = document.allowsSimulcast
        lockRight = document.lockRight?.rawValue
        duplicateIdentity = document.duplicateIdentity?.rawValue
        maxDurationSeconds = document.maxDuration.map { Int64($0.seconds) }
        maxStaySeconds = document.maxStay.map { Int64($0.seconds) }
        endStayWithToken = document.endsStayWithToken
        emptyTimeoutSeconds = document.emptyTimeout.map { Int64($0.seconds) }
        departureTimeoutSeconds = document.departureTimeout.map { Int64($0.seconds) }
        bandwidth = BandwidthModel(document.bandwidth)
    }

    /// What it says.
    var document: PolicyDocument {
        var document = PolicyDocument()
        document.topology = topology.flatMap(RoomPolicy.Topology.init)
        document.maxParticipants = maxParticipants
        document.countsHidden = countsHidden
        document.countsPublishOnly = countsPublishOnly
        document.maxPublishers = maxPublishers
        if case .success(let profile) = bandwidth.profile { document.bandwidth = profile }
        document.audioCodecs = audioCodecs?.compactMap { Codec(word: $0) }
        document.videoCodecs = videoCodecs?.compactMap { Codec(word: $0) }
        document.audioOnly = audioOnly
        document.maxVideoBitrate = maxVideoBitrate.map { .bitsPerSecond($0) }
        document.publishSources = publishSources.map { Set($0.compactMap(TrackSource.init)) }
        document.allowsSimulcast = allowSimulcast
        document.lockRight = lockRight.flatMap(RoomPolicy.LockRight.init)
        document.duplicateIdentity = duplicateIdentity.flatMap(RoomPolicy.DuplicateIdentity.init)
        document.maxDuration = maxDurationSeconds.map { .seconds($0) }
        document.maxStay = maxStaySeconds.map { .seconds($0) }
        document.endsStayWithToken = endStayWithToken
        document.emptyTimeout = emptyTimeoutSeconds.map { .seconds($0) }
        document.departureTimeout = departureTimeoutSeconds.map { .seconds($0) }
        return document
    }

    /// The members about bandwidth, which a participant's own preferences have too.
    var bandwidth: BandwidthModel {
        get {
            var model = BandwidthModel()
            model.mode = bandwidthMode
            model.maxVideoSubscriptions = maxVideoSubscriptions
            model.maxDownlinkBitrate = maxDownlinkBitrate
            model.maxUplinkBitrate = maxUplinkBitrate
            model.shortage = shortage
            model.oversendBitrate = oversendBitrate
            return model
        }
        set {
            bandwidthMode = newValue.mode
            maxVideoSubscriptions = newValue.maxVideoSubscriptions
            maxDownlinkBitrate = newValue.maxDownlinkBitrate
            maxUplinkBitrate = newValue.maxUplinkBitrate
            shortage = newValue.shortage
            oversendBitrate = newValue.oversendBitrate
        }
    }
}

extension PolicyModel {
    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        topology = try fields.decodeIfPresent(String.self, forKey: .topology)
        if let topology {
            let words = RoomPolicy.Topology.allCases.map(\.rawValue).joined(separator: " or ")
            try fields.demand(RoomPolicy.Topology(rawValue: topology) != nil, .topology, wanted: words)
        }
        maxParticipants = try fields.number(.maxParticipants, 1...1_000_000)
        countsHidden = try fields.decodeIfPresent(Bool.self, forKey: .countsHidden)
        countsPublishOnly = try fields.decodeIfPresent(Bool.self, forKey: .countsPublishOnly)
        maxPublishers = try fields.number(.maxPublishers, 0...1_000_000)
        maxVideoSubscriptions = try fields.wholeNumber(.maxVideoSubscriptions)
        audioCodecs = try fields.codecs(.audioCodecs, .audio)
        videoCodecs = try fields.codecs(.videoCodecs, .video)
        audioOnly = try fields.decodeIfPresent(Bool.self, forKey: .audioOnly)
        maxVideoBitrate = try fields.number(.maxVideoBitrate, 10_000...1_000_000_000)
        publishSources = try fields.sources(.publishSources)
        allowSimulcast = try fields.decodeIfPresent(Bool.self, forKey: .allowSimulcast)
        lockRight = try fields.decodeIfPresent(String.self, forKey: .lockRight)
        if let lockRight {
            let words = RoomPolicy.LockRight.allCases.map(\.rawValue).joined(separator: ", ")
            try fields.demand(RoomPolicy.LockRight(rawValue: lockRight) != nil, .lockRight, wanted: words)
        }
        duplicateIdentity = try fields.decodeIfPresent(String.self, forKey: .duplicateIdentity)
        if let duplicateIdentity {
            let words = RoomPolicy.DuplicateIdentity.allCases.map(\.rawValue).joined(separator: " or ")
            let isKnown = RoomPolicy.DuplicateIdentity(rawValue: duplicateIdentity) != nil
            try fields.demand(isKnown, .duplicateIdentity, wanted: words)
        }
        maxDurationSeconds = try fields.number(.maxDurationSeconds, 1...31_622_400)
        maxStaySeconds = try fields.number(.maxStaySeconds, 1...31_622_400)
        endStayWithToken = try fields.decodeIfPresent(Bool.self, forKey: .endStayWithToken)
        emptyTimeoutSeconds = try fields.number(.emptyTimeoutSeconds, 1...86_400)
        departureTimeoutSeconds = try fields.number(.departureTimeoutSeconds, 0...86_400)
        bandwidthMode = try fields.decodeIfPresent(String.self, forKey: .bandwidthMode)
        maxDownlinkBitrate = try fields.wholeNumber(.maxDownlinkBitrate)
        maxUplinkBitrate = try fields.wholeNumber(.maxUplinkBitrate)
        shortage = try fields.decodeIfPresent(String.self, forKey: .shortage)
        oversendBitrate = try fields.wholeNumber(.oversendBitrate)
        if case .failure(let member) = bandwidth.profile {
            try fields.demand(false, CodingKeys(rawValue: member.name) ?? .bandwidthMode, wanted: member.wanted)
        }
    }
}

extension KeyedDecodingContainer<PolicyModel.CodingKeys> {
    fileprivate func demand(_ condition: Bool, _ key: Key, wanted: @autoclosure () -> String) throws {
        guard !condition else { return }
        throw JSONFault(codingPath, key, .unexpected(wanted: wanted()))
    }

    fileprivate func number<Number: FixedWidthInteger>(
        _ key: Key, _ range: ClosedRange<Number>
    ) throws -> Number? {
        guard let number: Number = try wholeNumber(key) else { return nil }
        try demand(range.contains(number), key, wanted: "\(range.lowerBound) to \(range.upperBound)")
        return number
    }

    /// Read as any number first: the decoder does not name the place of one that is no integer.
    fileprivate func wholeNumber<Number: FixedWidthInteger>(_ key: Key) throws -> Number? {
        let wrong = JSONFault(codingPath, key, .unexpected(wanted: "a whole number"))
        do {
            guard let number = try decodeIfPresent(Double.self, forKey: key) else { return nil }
            guard let whole = Number(exactly: number) else { throw wrong }
            return whole
        } catch DecodingError.typeMismatch {
            throw wrong
        }
    }

    fileprivate func sources(_ key: Key) throws -> [String]? {
        guard let words = try decodeIfPresent([String].self, forKey: key) else { return nil }
        let known = TrackSource.allCases.filter { $0 != .unknown }.map(\.rawValue)
        try demand(words.allSatisfy(known.contains), key, wanted: "a list of: \(known.joined(separator: ", "))")
        return words
    }

    fileprivate func codecs(_ key: Key, _ kind: MediaKind) throws -> [String]? {
        guard let words = try decodeIfPresent([String].self, forKey: key) else { return nil }
        let known = Codec.allCases.filter { $0.kind == kind }.map(\.word).joined(separator: ", ")
        try demand(words.allSatisfy { Codec(word: $0)?.kind == kind }, key, wanted: "a list of: \(known)")
        return words
    }
}
