/// The formats of a section that the server offers to send.
struct OfferFormats {
    let policy: NegotiationPolicy

    /// Formats for `sending` with their payload types. If the publisher is not known, all that the policy allows.
    ///
    /// A publisher may still send a format that the policy no longer allows. If there is no other, it is offered, too, and refused when it is answered: a
    /// section needs a format (RFC 8866 section 5.14), and browsers refuse the whole offer without one.
    func formats(for sending: LocalSending, registry: inout PayloadTypeRegistry) -> [NegotiatedFormat] {
        let allowed = policy.codecs(for: sending.kind).allowed
        let known = (sending.formats?.flatMap(Self.withAlternative) ?? defaults(sending.kind))
            .filter { $0.codec.kind == sending.kind }
        let formats = assigned(known.filter { allowed.contains($0.codec) }, sending, &registry)
        return formats.isEmpty ? assigned(known, sending, &registry) : formats
    }

    private func assigned(
        _ wanted: [NegotiatedFormat], _ sending: LocalSending, _ registry: inout PayloadTypeRegistry
    ) -> [NegotiatedFormat] {
        var formats: [NegotiatedFormat] = []
        // RED names the payload type of its Opus, and so comes after it here, but not on the m-line.
        for format in wanted where format.codec != .red {
            guard let assigned = assign(format, sending, &registry) else { continue }
            if !formats.contains(where: { $0.payloadType == assigned.payloadType }) { formats.append(assigned) }
        }
        guard let red = wanted.firstIndex(where: { $0.codec == .red }),
            let opus = formats.firstIndex(where: { $0.codec == .opus })
        else { return formats }
        var format = wanted[red]
        let inner = String(formats[opus].payloadType)
        format.parameters = FormatParameters([FormatParameters.Parameter("\(inner)/\(inner)")])
        guard let assigned = assign(format, sending, &registry) else { return formats }
        formats.insert(assigned, at: red == 0 ? 0 : formats.count)
        return formats
    }

    private func assign(
        _ format: NegotiatedFormat, _ sending: LocalSending, _ registry: inout PayloadTypeRegistry
    ) -> NegotiatedFormat? {
        var offered = format
        offered.feedback = feedback(format.codec)
        let retransmits = sending.rtxSSRC != nil && sending.kind == .video && offered.feedback.contains(.nack)
        guard
            let types = registry.assign(
                format, parameters: format.written(sends: true), withRetransmission: retransmits)
        else { return nil }
        offered.parameters = types.parameters
        offered.payloadType = types.payloadType
        offered.rtxPayloadType = types.rtx
        return offered
    }

    private func feedback(_ codec: CodecName) -> FeedbackSet {
        var feedback: FeedbackSet
        switch codec.kind {
        case .video: feedback = policy.feedback.intersection([.transportCC, .remb, .fir, .nack, .pli])
        case .audio where codec == .red: feedback = []
        default: feedback = policy.feedback.intersection([.transportCC, .nack])
        }
        if !policy.extensions.contains(ExtensionURI.transportSequence) { feedback.remove(.transportCC) }
        if feedback.contains(.transportCC) { feedback.remove(.remb) }
        return feedback
    }

    /// Some receivers know only constrained baseline by name; offer it next to plain baseline, with the same level.
    private static func withAlternative(_ format: NegotiatedFormat) -> [NegotiatedFormat] {
        guard format.codec == .h264, let h264 = H264Format(format.parameters), h264.profile == .baseline else {
            return [format]
        }
        var alternative = format
        let level = (format.parameters["profile-level-id"] ?? "42000a").suffix(2)
        alternative.parameters["profile-level-id"] = "42e0" + level
        return [format, alternative]
    }

    private func defaults(_ kind: SectionKind) -> [NegotiatedFormat] {
        policy.codecs(for: kind).allowed.flatMap { codec -> [NegotiatedFormat] in
            switch codec {
            case .opus: [format(codec, 48000, channels: 2, "minptime=10;useinbandfec=1")]
            case .red: [format(codec, 48000, channels: 2, "")]
            case .vp8: [format(codec, 90000, "")]
            case .vp9: [format(codec, 90000, "profile-id=0", variant: "0")]
            case .av1: [format(codec, 90000, "profile=0;level-idx=5;tier=0", variant: "0")]
            case .h264: h264Defaults
            case .g722, .pcmu, .pcma: []
            }
        }
    }

    /// Level 3.1; with level asymmetry a level limits neither side.
    private var h264Defaults: [NegotiatedFormat] {
        let profiles: [(H264Profile, String)] = [
            (.constrainedBaseline, "42e01f"), (.main, "4d001f"), (.constrainedHigh, "640c1f"), (.high, "64001f"),
        ]
        return [1, 0].flatMap { mode in
            profiles.filter { policy.h264Profiles.contains($0.0) && (mode == 1 || $0.0 == .constrainedBaseline) }
                .map { profile, id in
                    format(
                        .h264, 90000,
                        "level-asymmetry-allowed=1;packetization-mode=\(mode);profile-level-id=\(id)",
                        variant: H264Format(profile: profile, packetizationMode: mode).variant)
                }
        }
    }

    private func format(
        _ codec: CodecName, _ clock: UInt32, channels: Int = 1, _ parameters: String, variant: String = ""
    ) -> NegotiatedFormat {
        NegotiatedFormat(
            codec: codec, clockRateHz: clock, channels: channels, parameters: FormatParameters(parsing: parameters),
            variant: variant)
    }
}
