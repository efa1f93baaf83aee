import Primitives

/// Writes the m-sections of the server's descriptions.
struct SectionWriter {
    let transport: LocalTransport
    let setup: SetupRole
    let longestMessage: Int

    /// Every offer leaves the role open, and no answer does (RFC 8842 section 5).
    private var isOffer: Bool { setup == .actpass }

    /// `isTagged`: the first section of the BUNDLE group, which carries the candidates for all (RFC 9143 section 7).
    func section(_ line: MediaLine, isTagged: Bool) -> DescriptionSection {
        guard !line.isRejected else { return rejected(line) }
        var section = DescriptionSection(
            media: line.media, port: defaultCandidate?.port ?? 9, proto: line.proto, formats: formatWords(line))
        section.headers.append(DescriptionLine("c", connection))
        if let bitrate = line.maximumBitrate {
            section.headers.append(DescriptionLine("b", "AS:\(max(1, bitrate.kilobitsPerSecond))"))
            section.headers.append(DescriptionLine("b", "TIAS:\(bitrate.bitsPerSecond)"))
        }
        section.attributes = transportAttributes(line, isTagged: isTagged)
        if line.kind == .application {
            section.attributes += [
                DescriptionAttribute("sctp-port", "5000"),
                DescriptionAttribute("max-message-size", String(longestMessage)),
            ]
        } else {
            section.attributes += mediaAttributes(line)
        }
        return section
    }

    /// Port 0 and the formats that the other side named (RFC 3264 section 6).
    private func rejected(_ line: MediaLine) -> DescriptionSection {
        var section = DescriptionSection(
            media: line.media, port: 0, proto: line.proto,
            formats: line.formatWords.isEmpty ? ["0"] : line.formatWords,
            headers: [DescriptionLine("c", "IN IP4 0.0.0.0")])
        if line.writesMid { section.attributes.append(DescriptionAttribute("mid", line.mid)) }
        section.attributes.append(DescriptionAttribute("inactive"))
        section.attributes += line.formatLines
        return section
    }

    private var defaultCandidate: Candidate? { transport.candidates.first { $0.transport == .udp } }

    /// The default candidate (RFC 8839 section 4.2.1.2); 0.0.0.0 and port 9 if there is none yet.
    private var connection: String {
        guard let address = defaultCandidate?.address else { return "IN IP4 0.0.0.0" }
        return "IN \(address.utf8.contains(UInt8(ascii: ":")) ? "IP6" : "IP4") \(address)"
    }

    private func formatWords(_ line: MediaLine) -> [String] {
        guard line.kind != .application else { return ["webrtc-datachannel"] }
        return line.formats.flatMap { format in
            [String(format.payloadType)] + (format.rtxPayloadType.map { [String($0)] } ?? [])
        }
    }

    private func transportAttributes(_ line: MediaLine, isTagged: Bool) -> [DescriptionAttribute] {
        var attributes = [
            DescriptionAttribute("ice-ufrag", transport.iceUfrag),
            DescriptionAttribute("ice-pwd", transport.icePassword),
            DescriptionAttribute("fingerprint", Fingerprint.text(sha256: transport.fingerprintSHA256)),
            DescriptionAttribute("setup", setup.rawValue),
        ]
        if line.writesMid { attributes.append(DescriptionAttribute("mid", line.mid)) }
        if isTagged, !transport.candidates.isEmpty {
            attributes += transport.candidates.map(\.attribute)
            attributes.append(DescriptionAttribute("end-of-candidates"))
        }
        return attributes
    }

    private func mediaAttributes(_ line: MediaLine) -> [DescriptionAttribute] {
        var attributes: [DescriptionAttribute] = []
        if line.allowsMixedExtensions { attributes.append(DescriptionAttribute("extmap-allow-mixed")) }
        attributes += line.extensions.map { DescriptionAttribute("extmap", $0.text) }
        attributes.append(DescriptionAttribute(line.direction.rawValue))
        if let sending = line.sending { attributes.append(DescriptionAttribute("msid", sending.msid)) }
        attributes.append(DescriptionAttribute("rtcp-mux"))
        if line.hasReducedSizeRTCP { attributes.append(DescriptionAttribute("rtcp-rsize")) }
        if line.hasReceiverReferenceTime { attributes.append(DescriptionAttribute("rtcp-xr", "rcvr-rtt=all")) }
        for format in line.formats { attributes += formatAttributes(format, sends: line.sending != nil) }
        if let time = line.sending?.packetTime { attributes.append(DescriptionAttribute("ptime", String(time))) }
        if line.receives { attributes += simulcastAttributes(line) }
        if let sending = line.sending { attributes += sourceAttributes(sending, line) }
        return attributes
    }

    private func formatAttributes(_ format: NegotiatedFormat, sends: Bool) -> [DescriptionAttribute] {
        var attributes = [DescriptionAttribute("rtpmap", "\(format.payloadType) \(format.encoding)")]
        for (kind, value) in FeedbackSet.wireValues where format.feedback.contains(kind) {
            attributes.append(DescriptionAttribute("rtcp-fb", "\(format.payloadType) \(value)"))
        }
        let parameters = format.written(sends: sends)
        if !parameters.isEmpty {
            attributes.append(DescriptionAttribute("fmtp", "\(format.payloadType) \(parameters.text)"))
        }
        if let rtx = format.rtxPayloadType {
            attributes.append(DescriptionAttribute("rtpmap", "\(rtx) rtx/\(format.clockRateHz)"))
            attributes.append(DescriptionAttribute("fmtp", "\(rtx) apt=\(format.payloadType)"))
        }
        return attributes
    }

    /// RFC 8851 and 8853, the server's side: every layer that it takes. An offer pauses none: layers that were paused in the client's last offer may be sent by
    /// now.
    private func simulcastAttributes(_ line: MediaLine) -> [DescriptionAttribute] {
        var attributes = line.rids.map { rid in
            let restrictions = FormatParameters(rid.restrictions).text
            return DescriptionAttribute("rid", "\(rid.id) recv" + (restrictions.isEmpty ? "" : " " + restrictions))
        }
        if line.isSimulcast {
            let streams = line.rids.map { (!isOffer && line.pausedRIDs.contains($0.id) ? "~" : "") + $0.id }
            attributes.append(DescriptionAttribute("simulcast", "recv " + streams.joined(separator: ";")))
        }
        return attributes
    }

    private func sourceAttributes(_ sending: LocalSending, _ line: MediaLine) -> [DescriptionAttribute] {
        let rtx = line.formats.contains { $0.rtxPayloadType != nil } ? sending.rtxSSRC : nil
        var attributes: [DescriptionAttribute] = []
        if let rtx { attributes.append(DescriptionAttribute("ssrc-group", "FID \(sending.ssrc) \(rtx)")) }
        for ssrc in [sending.ssrc] + (rtx.map { [$0] } ?? []) {
            attributes.append(DescriptionAttribute("ssrc", "\(ssrc) cname:\(sending.cname.asToken)"))
            attributes.append(DescriptionAttribute("ssrc", "\(ssrc) msid:\(sending.msid)"))
        }
        return attributes
    }
}

extension LocalSending {
    /// Stream and track as one attribute value (RFC 8830 section 2).
    var msid: String { "\(streamID.asToken) \(trackID.asToken)" }
}

extension Candidate {
    /// As an attribute of a description.
    var attribute: DescriptionAttribute { DescriptionAttribute(parsing: text) }
}

extension String {
    /// The text itself if it can be one word of an attribute, otherwise with every other character replaced; names come from applications and must not break a
    /// line apart.
    var asToken: String {
        if isEmpty { return "-" }
        if utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) { return self }
        return String(decoding: utf8.map { $0 > 0x20 && $0 != 0x7f ? $0 : UInt8(ascii: "_") }, as: UTF8.self)
    }
}
