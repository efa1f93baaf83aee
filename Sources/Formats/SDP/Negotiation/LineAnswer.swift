/// The answer to one section of an offer: the m-line and the facts that follow from the caller's request.
struct LineAnswer {
    let policy: NegotiationPolicy
    let reading: SectionReading
    let offered: OfferedSection

    func line(_ answer: SectionAnswer, after old: MediaLine?) -> (MediaLine, NegotiatedSection) {
        var line = MediaLine(mid: offered.mid, media: reading.media, kind: reading.kind, proto: reading.proto)
        line.writesMid = reading.mid != nil
        line.formatWords = reading.formatWords
        if let old, old.mid == line.mid {
            line.inherit(old)
            line.isLocal = old.isLocal
        }
        guard offered.refusal == nil, !answer.rejects else {
            return rejected(line, offered.refusal ?? .refusedByPolicy)
        }
        guard reading.kind != .application else { return (line, facts(line)) }
        let chooser = FormatChooser(policy: policy, kind: offered.kind, codecs: answer.codecs)
        let allowed = chooser.allowed(in: reading)
        guard !allowed.isEmpty else { return rejected(line, .noCommonCodec) }
        fill(&line, answer)
        var chosen = chooser.answered(of: allowed, in: reading)
        if answer.takesStereo { chosen = chosen.map(\.sentInStereo) }
        let (taken, sent) = decide(&line, answer, allowed: allowed, chosen: chosen)
        // Only in the answer: it is what the server would like to receive, and not for those who receive from the server.
        if answer.asksForDTX, line.receives { line.formats = line.formats.map(\.receivedWithDTX) }
        var section = facts(line)
        if line.receives { section.receiving = reading.remoteSending(formats: taken, policy: policy) }
        if let local = line.sending { section.sending = agreed(local, sent) }
        return (line, section)
    }

    private func rejected(_ line: MediaLine, _ reason: SectionRefusal) -> (MediaLine, NegotiatedSection) {
        var line = line
        line.reject(reason)
        line.formatLines = reading.formatLines
        return (line, facts(line))
    }

    /// Everything that does not depend on formats.
    private func fill(_ line: inout MediaLine, _ answer: SectionAnswer) {
        line.remoteReceives = reading.direction.receives
        line.extensions = reading.accepted(policy).map(\.reversed)
        line.hasReducedSizeRTCP = reading.hasReducedSizeRTCP
        line.allowsMixedExtensions = reading.allowsMixedExtensionsItself
        line.hasReceiverReferenceTime = reading.usesReceiverReferenceTime(policy)
        line.maximumBitrate = answer.maximumBitrate
    }

    /// Directions and formats. Returns the formats that may come in and those that may go out.
    private func decide(
        _ line: inout MediaLine, _ answer: SectionAnswer, allowed: [NegotiatedFormat], chosen: [NegotiatedFormat]
    ) -> (taken: [NegotiatedFormat], sent: [NegotiatedFormat]) {
        line.receives = reading.direction.sends && answer.receives
        var sent: [NegotiatedFormat] = []
        if let sending = answer.sending {
            if !reading.direction.receives {
                line.refusal = .notWantedByRemote
            } else {
                sent = FormatMatcher.agreed(
                    publisher: sending.formats, subscriber: sending.kind == offered.kind ? allowed : [],
                    withRetransmission: sending.rtxSSRC != nil)
                if sent.isEmpty { line.refusal = .noCommonCodec } else { line.send(sending) }
            }
        }
        // A section that carries nothing yet still lists formats and, with them, the extensions of the whole bundle.
        let taken = line.receives || sent.isEmpty ? chosen : []
        line.formats = Self.union(taken, sent)
        if line.receives {
            line.rids = reading.acceptedRIDs(formats: taken, policy: policy)
            line.isSimulcast = reading.simulcast.map { !$0.send.isEmpty } ?? false && !line.rids.isEmpty
            line.pausedRIDs = reading.simulcast?.paused ?? []
        }
        return (
            Self.union(taken, allowed.filter { format in sent.contains { $0.payloadType == format.payloadType } }), sent
        )
    }

    /// Formats of both directions, one entry per payload type; the parameters of a stream that is sent override those of one that is received.
    static func union(_ taken: [NegotiatedFormat], _ sent: [NegotiatedFormat]) -> [NegotiatedFormat] {
        var formats = taken
        for format in sent {
            if let index = formats.firstIndex(where: { $0.payloadType == format.payloadType }) {
                formats[index].parameters = format.parameters
            } else {
                formats.append(format)
            }
        }
        return formats
    }

    private func agreed(_ local: LocalSending, _ formats: [NegotiatedFormat]) -> AgreedSending {
        AgreedSending(
            local: local, formats: formats,
            extensions: reading.accepted(policy).filter { $0.direction.receives }.map(\.reversed),
            feedback: reading.feedback(formats, policy: policy))
    }

    private func facts(_ line: MediaLine) -> NegotiatedSection {
        NegotiatedSection(
            index: offered.index, mid: line.mid, kind: offered.kind, direction: line.direction,
            isRejected: line.isRejected, refusal: line.refusal)
    }
}
