extension SectionReading {
    /// What the remote sends here, in `formats`.
    func remoteSending(formats: [NegotiatedFormat], policy: NegotiationPolicy) -> RemoteSending {
        let layers = acceptedRIDs(formats: formats, policy: policy)
        return RemoteSending(
            formats: formats, encodings: encodings(layers, policy: policy),
            extensions: accepted(policy).filter { $0.direction.sends }, feedback: feedback(formats, policy: policy),
            streamID: msid.flatMap { $0.stream == "-" ? nil : $0.stream },
            trackID: msid.flatMap { $0.track.isEmpty ? nil : $0.track },
            cname: sources.sources.lazy.compactMap(\.cname).first, contentHint: contentHint, packetTime: packetTime)
    }

    /// Extensions that both sides know, from the remote's point of view.
    func accepted(_ policy: NegotiationPolicy) -> [ExtensionMapping] {
        extensions.filter { policy.extensions.contains($0.uri) }
    }

    /// The feedback of all formats together, and that of the section as a whole.
    func feedback(_ formats: [NegotiatedFormat], policy: NegotiationPolicy) -> FeedbackSet {
        var feedback = formats.reduce(into: FeedbackSet()) { $0.formUnion($1.feedback) }
        if usesReceiverReferenceTime(policy) { feedback.insert(.receiverReferenceTime) }
        return feedback
    }

    func usesReceiverReferenceTime(_ policy: NegotiationPolicy) -> Bool {
        hasReceiverReferenceTime && policy.feedback.contains(.receiverReferenceTime)
    }

    /// Layers that an answer accepts, in the remote's order. A rid that is bound to payload types is accepted if one of them is.
    func acceptedRIDs(formats: [NegotiatedFormat], policy: NegotiationPolicy) -> [RID] {
        let sent = rids.filter { $0.direction == .sendonly }
        guard let simulcast, !simulcast.send.isEmpty else { return Array(sent.prefix(1)) }
        guard policy.maximumEncodings > 1 else { return [] }
        var taken: [RID] = []
        for id in simulcast.send where !taken.contains(where: { $0.id == id }) {
            guard let rid = sent.first(where: { $0.id == id }) else { continue }
            if let types = rid.payloadTypes, !formats.contains(where: { types.contains($0.payloadType) }) { continue }
            taken.append(rid)
            if taken.count == policy.maximumEncodings { break }
        }
        return taken
    }

    /// Several `msid` values, distinguished only by SSRC lines, in one section: every track but the first would be lost.
    var isPlanB: Bool { !hasMediaLevelMsid && direction.sends && sources.holdsSeveralTracks }

    private func encodings(_ layers: [RID], policy: NegotiationPolicy) -> [RemoteEncoding] {
        // With rids, the packets reveal which SSRC belongs to which layer: lists of SSRCs in addition have no guaranteed order.
        if !layers.isEmpty { return layers.map { RemoteEncoding(rid: $0.id) } }
        let ssrcs: [UInt32]
        if let group = sources.simulcastGroup, policy.maximumEncodings > 1 {
            ssrcs = Array(group.prefix(policy.maximumEncodings))
        } else {
            ssrcs = Array(sources.primaries.prefix(1))
        }
        guard !ssrcs.isEmpty else { return [RemoteEncoding()] }
        return ssrcs.map { RemoteEncoding(ssrc: $0, rtxSSRC: sources.retransmission(of: $0)) }
    }
}
