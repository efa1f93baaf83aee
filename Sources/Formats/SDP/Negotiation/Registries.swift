/// Payload types of one connection. In a BUNDLE group a payload type means one codec configuration, name and
/// parameters together, whichever section it is in (RFC 9143 section 9.1).
struct PayloadTypeRegistry: Sendable {
    private struct Entry: Sendable {
        var codec: CodecName
        var variant: String
        var parameters: String
        var payloadType: UInt8
        var rtxPayloadType: UInt8?

        var kind: String { PayloadTypeRegistry.kind(variant, FormatParameters(parsing: parameters)) }
    }

    /// As many as there are payload types: more come only from a client that keeps giving one number new meanings.
    static let maximumEntries = 128

    private var entries: [Entry] = []
    private var used: Set<UInt8> = []

    /// Configurations that are remembered.
    var count: Int { entries.count }

    /// Ensures that no new configuration gets a payload type that the remote has used for anything.
    mutating func reserve(_ table: FormatTable) { used.formUnion(table.entries.map(\.payloadType)) }

    /// Stores a format from a section of an answer.
    mutating func learn(_ format: NegotiatedFormat, parameters: FormatParameters) {
        used.insert(format.payloadType)
        if let rtx = format.rtxPayloadType { used.insert(rtx) }
        let text = parameters.text
        if let index = index(format, text) {
            if entries[index].rtxPayloadType == nil { entries[index].rtxPayloadType = format.rtxPayloadType }
            return
        }
        // The oldest are forgotten; their numbers stay taken.
        if entries.count >= Self.maximumEntries { entries.removeFirst() }
        entries.append(
            Entry(
                codec: format.codec, variant: format.variant, parameters: text, payloadType: format.payloadType,
                rtxPayloadType: format.rtxPayloadType))
    }

    /// Payload types for a format to be offered, and the parameters that they are offered with: those of the same configuration, otherwise new ones. When all
    /// payload types are taken, or all that the codec may have, those of another configuration of the same codec and variant (for stereo a stereo one); nil if
    /// there is none either.
    mutating func assign(
        _ format: NegotiatedFormat, parameters: FormatParameters, withRetransmission: Bool
    ) -> (payloadType: UInt8, rtx: UInt8?, parameters: FormatParameters)? {
        let text = parameters.text
        if index(format, text) == nil, mayAdd(format, parameters) {
            add(format, text, withRetransmission: withRetransmission)
        }
        let other = another(format, parameters)
        guard let index = index(format, text) ?? other else { return nil }
        if withRetransmission, entries[index].rtxPayloadType == nil,
            let rtx = free(preferring: entries[index].payloadType + 1)
        {
            used.insert(rtx)
            entries[index].rtxPayloadType = rtx
        }
        let entry = entries[index]
        return (
            entry.payloadType, withRetransmission ? entry.rtxPayloadType : nil,
            FormatParameters(parsing: entry.parameters)
        )
    }

    private mutating func add(_ format: NegotiatedFormat, _ parameters: String, withRetransmission: Bool) {
        guard let payloadType = free(preferring: Self.usual(format.codec)) else { return }
        used.insert(payloadType)
        let rtx = withRetransmission ? free(preferring: payloadType + 1) : nil
        if let rtx { used.insert(rtx) }
        entries.append(
            Entry(
                codec: format.codec, variant: format.variant, parameters: parameters, payloadType: payloadType,
                rtxPayloadType: rtx))
    }

    /// In addition to the first configuration of each of its kinds, a codec may have this many more. Publishers choose their parameters: one that keeps
    /// changing them would use up the payload types of all its subscribers, and no other codec could be offered to them. With all kinds of Opus, RED, VP8,
    /// H.264, VP9 and AV1 these are 60 of the 61 payload types, retransmissions included: 5 + 5 + 2 + 22 + 14 + 12. RED has one for each of Opus.
    private static func furtherConfigurations(of codec: CodecName) -> Int { codec == .red ? 4 : 3 }

    /// The properties that are not interchangeable for receivers: the variant, and stereo, which they decode as mono if it is not announced.
    private static func kind(_ variant: String, _ parameters: FormatParameters) -> String {
        parameters["sprop-stereo"] == "1" ? variant + " stereo" : variant
    }

    /// Whether one more configuration of the format's codec may have payload types of its own.
    private func mayAdd(_ format: NegotiatedFormat, _ parameters: FormatParameters) -> Bool {
        let kinds = entries.filter { $0.codec == format.codec }.map(\.kind)
        guard kinds.contains(Self.kind(format.variant, parameters)) else { return true }
        return kinds.count - Set(kinds).count < Self.furtherConfigurations(of: format.codec)
    }

    /// Another configuration of the same kind, otherwise of the same variant.
    private func another(_ format: NegotiatedFormat, _ parameters: FormatParameters) -> Int? {
        let kind = Self.kind(format.variant, parameters)
        return entries.firstIndex { $0.codec == format.codec && $0.kind == kind }
            ?? entries.firstIndex { $0.codec == format.codec && $0.variant == format.variant }
    }

    private func index(_ format: NegotiatedFormat, _ parameters: String) -> Int? {
        entries.firstIndex {
            $0.codec == format.codec && $0.variant == format.variant && $0.parameters == parameters
        }
    }

    /// The dynamic range, then the numbers below those that read as RTCP (RFC 5761, RFC 3551 section 3).
    private func free(preferring preferred: UInt8) -> UInt8? {
        if (96...127).contains(preferred), !used.contains(preferred) { return preferred }
        return (UInt8(96)...127).first { !used.contains($0) } ?? (UInt8(35)...63).first { !used.contains($0) }
    }

    /// The numbers that most clients use, which makes captures easier to read.
    private static func usual(_ codec: CodecName) -> UInt8 {
        switch codec {
        case .opus: 111
        case .red: 112
        case .vp8: 96
        case .vp9: 98
        case .h264: 102
        case .av1: 100
        case .g722, .pcmu, .pcma: 113
        }
    }
}

/// Header extension ids of one connection; in a BUNDLE group an id means one URI (RFC 9143 section 9.2).
struct ExtensionRegistry: Sendable {
    private var ids: [String: UInt8] = [:]
    private var used: Set<UInt8> = []

    /// URIs that are remembered.
    var count: Int { ids.count }

    /// Stores the remote's ids, used or not.
    mutating func reserve(_ extensions: [ExtensionMapping]) {
        for mapping in extensions {
            used.insert(mapping.id)
            // In addition to the known URIs, as many as there are ids: a client may name new URIs for ever.
            guard ids[mapping.uri] == nil, ids.count < 255 || ExtensionURI.all.contains(mapping.uri) else { continue }
            ids[mapping.uri] = mapping.id
        }
    }

    /// The id of `uri`, a new one if it has none; ids of the one-byte form first. nil when all are taken.
    mutating func assign(_ uri: String) -> UInt8? {
        if let id = ids[uri] { return id }
        guard
            let id = (UInt8(1)...14).first(where: { !used.contains($0) })
                ?? (UInt8(16)...255).first(where: { !used.contains($0) })
        else { return nil }
        used.insert(id)
        ids[uri] = id
        return id
    }
}
