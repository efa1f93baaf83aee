/// Which formats of a remote section the policy allows, in order of preference, and which of those an answer accepts.
struct FormatChooser {
    let policy: NegotiationPolicy
    let kind: SectionKind
    /// Allowed codecs in order of preference, if the caller overrides the policy.
    var codecs: [CodecName]?

    /// Every allowed format, best first: by codec, then by how many decoders accept it, then in the remote's order.
    func allowed(in reading: SectionReading) -> [NegotiatedFormat] {
        let table = reading.formats
        let understood = table.entries.compactMap { format($0, in: table, reading: reading) }
        return order(understood).flatMap { codec in
            understood.enumerated().filter { $0.element.codec == codec }
                .sorted { (rank($0.element), $0.offset) < (rank($1.element), $1.offset) }.map(\.element)
        }
    }

    /// The formats in `allowed` that an answer accepts: one codec in its best format, for audio RED and Opus together. For an offer that may list video codecs
    /// that its client cannot send, one format of each codec, unless the caller knows which codec the track uses.
    func answered(of allowed: [NegotiatedFormat], in reading: SectionReading) -> [NegotiatedFormat] {
        guard !policy.answersAllCodecs, let first = allowed.first else { return allowed }
        if kind == .video, codecs == nil, reading.formats.mayExceedTrack {
            var taken: Set<CodecName> = []
            return allowed.filter { taken.insert($0.codec).inserted }
        }
        guard first.codec == .opus || first.codec == .red else { return [first] }
        let second: CodecName = first.codec == .opus ? .red : .opus
        return [first] + (allowed.first { $0.codec == second }.map { [$0] } ?? [])
    }

    private func order(_ understood: [NegotiatedFormat]) -> [CodecName] {
        let rule = policy.codecs(for: kind)
        let allowed = codecs ?? rule.allowed
        if codecs != nil || rule.order == .policy { return allowed }
        var seen: [CodecName] = []
        for format in understood where allowed.contains(format.codec) && !seen.contains(format.codec) {
            seen.append(format.codec)
        }
        return seen
    }

    private func rank(_ format: NegotiatedFormat) -> Int {
        guard format.codec == .h264, let h264 = H264Format(format.parameters) else { return Int(format.variant) ?? 0 }
        let profile = policy.h264Profiles.firstIndex(of: h264.profile) ?? policy.h264Profiles.count
        return (1 - h264.packetizationMode) * 16 + profile
    }

    private func format(
        _ entry: FormatTable.Entry, in table: FormatTable, reading: SectionReading
    ) -> NegotiatedFormat? {
        guard let codec = CodecName(name: entry.name), codec.kind == kind else { return nil }
        var entry = entry
        if codec == .h264 { entry.parameters.correctProfileLevelID() }
        guard let variant = variant(codec, entry) else { return nil }
        switch codec {
        case .opus: guard entry.clockRateHz == 48000 else { return nil }
        case .red: guard entry.clockRateHz == 48000, table.wrapsOpus(entry) else { return nil }
        case .vp8, .vp9, .h264, .av1: guard entry.clockRateHz == 90000 else { return nil }
        case .g722, .pcmu, .pcma: guard entry.clockRateHz == 8000 else { return nil }
        }
        let feedback = accepted(entry.feedback, reading: reading)
        let retransmission = feedback.contains(.nack) ? table.retransmission(of: entry.payloadType) : nil
        return NegotiatedFormat(
            codec: codec, payloadType: entry.payloadType, rtxPayloadType: retransmission,
            clockRateHz: entry.clockRateHz, channels: entry.channels, parameters: entry.parameters, variant: variant,
            feedback: feedback)
    }

    /// nil where the profile is not allowed or the parameters are malformed.
    private func variant(_ codec: CodecName, _ entry: FormatTable.Entry) -> String? {
        switch codec {
        case .h264:
            guard let h264 = H264Format(entry.parameters), policy.h264Profiles.contains(h264.profile) else {
                return nil
            }
            return h264.variant
        // Absent means 0 (RFC 9628 section 7, AV1 RTP specification section 7.2).
        case .vp9: return profile(entry.parameters["profile-id"], of: policy.vp9Profiles)
        case .av1: return profile(entry.parameters["profile"], of: policy.av1Profiles)
        default: return ""
        }
    }

    private func profile(_ text: String?, of allowed: [Int]) -> String? {
        guard let number = Int(text ?? "0"), allowed.contains(number) else { return nil }
        return String(number)
    }

    /// Feedback that both sides have. Transport-wide feedback means nothing without its header extension (GStreamer offers the one without the other). REMB is
    /// kept next to it for what the client sends: it signals a cap to a publisher during the call.
    private func accepted(_ offered: FeedbackSet, reading: SectionReading) -> FeedbackSet {
        var feedback = offered.intersection(policy.feedback)
        let hasSequence =
            policy.extensions.contains(ExtensionURI.transportSequence)
            && reading.extensions.contains { $0.uri == ExtensionURI.transportSequence }
        if !hasSequence { feedback.remove(.transportCC) }
        if feedback.contains(.transportCC), !reading.direction.sends { feedback.remove(.remb) }
        return feedback
    }
}

/// Which formats of a subscriber can show what a publisher sends.
enum FormatMatcher {
    /// For each format of `publisher` the best of `subscriber`, under the publisher's variant and parameters. If the publisher is not known, every variant that
    /// some format of the subscriber decodes.
    static func agreed(
        publisher: [NegotiatedFormat]?, subscriber: [NegotiatedFormat], withRetransmission: Bool
    ) -> [NegotiatedFormat] {
        let wanted = publisher ?? subscriber.flatMap(variants)
        var agreed: [NegotiatedFormat] = []
        for format in wanted {
            if agreed.contains(where: { $0.codec == format.codec && $0.variant == format.variant }) { continue }
            guard var match = best(for: format, of: subscriber) else { continue }
            if publisher != nil { match.parameters = merged(match, from: format) }
            match.variant = format.variant
            if !withRetransmission { match.rtxPayloadType = nil }
            agreed.append(match)
        }
        return agreed
    }

    private static func best(for format: NegotiatedFormat, of subscriber: [NegotiatedFormat]) -> NegotiatedFormat? {
        let codecs = subscriber.filter { $0.codec == format.codec }
        return codecs.first { $0.variant == format.variant }
            ?? codecs.first { decodableVariants($0).contains(format.variant) }
    }

    private static func decodableVariants(_ format: NegotiatedFormat) -> [String] {
        format.codec == .h264 ? H264Format(format.parameters)?.decodableVariants ?? [] : [format.variant]
    }

    private static func variants(_ format: NegotiatedFormat) -> [NegotiatedFormat] {
        decodableVariants(format).map {
            var copy = format
            copy.variant = $0
            return copy
        }
    }

    /// Opus: the publisher's parameters about its stream override the subscriber's. Video parameters describe the receiver's decoder and stay the subscriber's.
    static func merged(_ match: NegotiatedFormat, from publisher: NegotiatedFormat) -> FormatParameters {
        guard match.codec == .opus else { return match.parameters }
        var parameters = match.parameters
        for parameter in publisher.parameters.parameters where parameter.isReadable {
            parameters[parameter.name] = parameter.value
        }
        return parameters
    }
}
