import EdgeSupport
import MediaControl
import Primitives
import Rooms

/// What `POST /v1/rooms` takes.
struct RoomCreation: Decodable {
    var name: String?
    var metadata: String?
    var policy: PolicyModel?

    fileprivate enum CodingKeys: String, CodingKey, CaseIterable { case name, metadata, policy }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(
            decoder, CodingKeys.self, below: ["policy": PolicyModel.CodingKeys.allCases.map(\.stringValue)])
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        name = try fields.text(.name, .identifier)
        metadata = try fields.text(.metadata, .metadata)
        policy = try fields.decodeIfPresent(PolicyModel.self, forKey: .policy)
    }
}

extension KeyedDecodingContainer<RoomCreation.CodingKeys> {
    fileprivate func text(_ key: Key, _ rule: TextRule) throws -> String? {
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
    var emptyTimeoutSeconds: Int64?
    var departureTimeoutSeconds: Int64?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case topology, maxParticipants, countsHidden, countsPublishOnly, maxPublishers, maxVideoSubscriptions
        case audioCodecs, videoCodecs, audioOnly, maxVideoBitrate, emptyTimeoutSeconds, departureTimeoutSeconds
        case bandwidthMode, maxDownlinkBitrate, maxUplinkBitrate, shortage, oversendBitrate
    }

    init(_ policy: RoomPolicy) {
        topology = policy.topology.rawValue
        maxParticipants = policy.maxParticipants
        countsHidden = policy.countsHidden
        countsPublishOnly = policy.countsPublishOnly
        maxPublishers = policy.maxPublishers
        audioCodecs = policy.audioCodecs.map(\.word)
        videoCodecs = policy.videoCodecs.map(\.word)
        audioOnly = policy.audioOnly
        maxVideoBitrate = policy.maxVideoBitrate?.bitsPerSecond
        emptyTimeoutSeconds = Int64(policy.emptyTimeout.seconds)
        departureTimeoutSeconds = Int64(policy.departureTimeout.seconds)
        bandwidth = BandwidthModel(policy.bandwidth)
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

    /// `base` with what is named here in its place.
    func value(over base: RoomPolicy) -> RoomPolicy {
        var policy = base
        if let topology = topology.flatMap(RoomPolicy.Topology.init) { policy.topology = topology }
        policy.maxParticipants = maxParticipants ?? base.maxParticipants
        policy.countsHidden = countsHidden ?? base.countsHidden
        policy.countsPublishOnly = countsPublishOnly ?? base.countsPublishOnly
        policy.maxPublishers = maxPublishers ?? base.maxPublishers
        if case .success(let bandwidth) = bandwidth.profile {
            policy.bandwidth.mode = bandwidth.mode ?? base.bandwidth.mode
            policy.bandwidth.maxVideoSubscriptions =
                bandwidth.maxVideoSubscriptions ?? base.bandwidth.maxVideoSubscriptions
            policy.bandwidth.maxDownlinkBitrate = bandwidth.maxDownlinkBitrate ?? base.bandwidth.maxDownlinkBitrate
            policy.bandwidth.maxUplinkBitrate = bandwidth.maxUplinkBitrate ?? base.bandwidth.maxUplinkBitrate
            policy.bandwidth.shortage = bandwidth.shortage ?? base.bandwidth.shortage
        }
        if let audioCodecs { policy.audioCodecs = audioCodecs.compactMap { Codec(word: $0) } }
        if let videoCodecs { policy.videoCodecs = videoCodecs.compactMap { Codec(word: $0) } }
        policy.audioOnly = audioOnly ?? base.audioOnly
        if let maxVideoBitrate { policy.maxVideoBitrate = .bitsPerSecond(maxVideoBitrate) }
        if let emptyTimeoutSeconds { policy.emptyTimeout = .seconds(emptyTimeoutSeconds) }
        if let departureTimeoutSeconds { policy.departureTimeout = .seconds(departureTimeoutSeconds) }
        return policy
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

    fileprivate func codecs(_ key: Key, _ kind: MediaKind) throws -> [String]? {
        guard let words = try decodeIfPresent([String].self, forKey: key) else { return nil }
        let known = Codec.allCases.filter { $0.kind == kind }.map(\.word).joined(separator: ", ")
        try demand(words.allSatisfy { Codec(word: $0)?.kind == kind }, key, wanted: "a list of: \(known)")
        return words
    }
}
