import Forwarding
import MediaControl
import PeerTransport
import Primitives
import RTP

// RTCP feedback of subscribers (RFC 3550, 4585, 5104, transport-wide feedback).

extension MediaEngine {
    func receiveFeedback(_ packet: UnsafeRawBufferPointer, of peer: Int, at now: MonotonicTime) {
        let datagram = packet.bytes
        guard var compound = RTCPCompound(datagram) else { return counters.drops.count(.rtcpMalformed) }
        while let part = compound.next(in: datagram) {
            switch part {
            case .senderReport(let report): receive(report.blocks, packet, of: peer, at: now)
            case .receiverReport(let report): receive(report.blocks, packet, of: peer, at: now)
            case .nack(let nack): receive(nack, packet, of: peer, at: now)
            case .pictureLoss(let request): keyframeWanted(request.mediaSSRC, of: peer)
            case .fullIntraRequest(let request):
                for index in 0..<request.count { keyframeWanted(request.entry(at: index, in: datagram).ssrc, of: peer) }
            case .transportFeedback(let feedback): receive(feedback, packet, of: peer, at: now)
            case .maximumBitrate(let estimate):
                receiverEstimate(.bitsPerSecond(Int64(clamping: estimate.bitsPerSecond)), of: peer, at: now)
            case .sourceDescription, .goodbye, .receiverReferenceTime, .delaySinceLastReceiverReport, .application,
                .unknown:
                break
            }
        }
        if compound.isMalformed { counters.drops.count(.rtcpMalformed) }
    }

    private func receive(
        _ feedback: TransportFeedback, _ packet: UnsafeRawBufferPointer, of peer: Int, at now: MonotonicTime
    ) {
        guard let downlink = tables.peers[peer].pointee.downlink else { return }
        if let reason = downlink.pointee.receive(feedback, in: packet.bytes, at: now) { counters.drops.count(reason) }
        countProbe(of: downlink)
        if downlink.pointee.lookIfEstimateMoved(at: now) { touch(peer) }
    }

    private func receiverEstimate(_ bitrate: Bitrate, of peer: Int, at now: MonotonicTime) {
        guard let downlink = tables.peers[peer].pointee.downlink else { return }
        downlink.pointee.receiverEstimate(bitrate, at: now)
        if downlink.pointee.lookIfEstimateMoved(at: now) { touch(peer) }
    }

    private func receive(_ blocks: ReportBlocks, _ packet: UnsafeRawBufferPointer, of peer: Int, at now: MonotonicTime)
    {
        for position in 0..<blocks.count {
            let block = blocks.block(at: position, in: packet.bytes)
            guard let index = tables.sendingStreams[StreamKey.of(peer: peer, ssrc: block.ssrc)] else { continue }
            let roundTrip = tables.subscriptions[index].pointee.subscription.receivedReport(
                ssrc: block.ssrc, fractionLost: block.fractionLost, lastReport: block.lastSenderReport,
                delay: block.delaySinceLastSenderReport, at: now)
            guard let roundTrip else { continue }
            tables.peers[peer].pointee.downlink?.pointee.measured(roundTrip)
            tables.peers[peer].pointee.uplink.setRoundTripTime(roundTrip)
        }
    }

    /// A NACK is answered at the end of the turn.
    private func receive(_ nack: GenericNACK, _ packet: UnsafeRawBufferPointer, of peer: Int, at now: MonotonicTime) {
        guard let index = tables.sendingStreams[StreamKey.of(peer: peer, ssrc: nack.mediaSSRC)],
            let downlink = tables.peers[peer].pointee.downlink
        else { return counters.drops.count(.rtcpUnexpected) }
        let state = tables.subscriptions[index]
        let roundTrip = self.roundTrip(of: peer)
        for position in 0..<nack.count {
            let entry = nack.entry(at: position, in: packet.bytes)
            counters.nacksReceived &+= UInt64(entry.packetCount)
            guard downlink.pointee.mayLookUp(entry.packetCount) else {
                counters.drops[.retransmissionThrottled] &+= UInt64(entry.packetCount)
                continue
            }
            for number in entry {
                switch state.pointee.subscription.requestRepeat(number, roundTrip: roundTrip, at: now) {
                case .send(let sequence):
                    turn.repeats.append(.init(subscription: Int32(truncatingIfNeeded: index), sequence: sequence))
                case .dropped(let reason): counters.drops.count(reason)
                case .notYetHere: break
                }
            }
        }
        if state.pointee.subscription.takeRefresh(), state.pointee.track >= 0 {
            requestKeyframe(state.pointee.track, layer: 0)
        }
    }

    private func keyframeWanted(_ ssrc: UInt32, of peer: Int) {
        guard let index = tables.sendingStreams[StreamKey.of(peer: peer, ssrc: ssrc)] else {
            return counters.drops.count(.rtcpUnexpected)
        }
        counters.keyframeRequestsReceived &+= 1
        let state = tables.subscriptions[index]
        state.pointee.subscription.countKeyframeRequest()
        guard state.pointee.track >= 0, !state.pointee.subscription.isPaused, state.pointee.subscription.kind == .video
        else { return }
        // It would not be sent, but would cost all others: a keyframe is requested when its bandwidth is back.
        guard !state.pointee.subscription.isHeldBack else { return }
        guard !state.pointee.allocation.isAboutToShrink else { return shrinkNow(state.pointee.track) }
        let layer = state.pointee.subscription.layer ?? state.pointee.subscription.wantedLayer
        requestKeyframe(state.pointee.track, layer: layer)
    }

    /// A subscription that is about to become smaller needs a keyframe: it changes with that one, and so do all others that wait for the same.
    private func shrinkNow(_ track: Int) {
        tables.tracks[track].pointee.sizeChanges.open()
        for state in tables.subscriptions(ofTrack: track) where state.pointee.allocation.isAboutToShrink {
            scheduleAllocation(of: state.pointee.peer, at: clock)
        }
    }

    /// The subscriber's round trip: by its reports, otherwise by the server's own checks, otherwise assumed.
    func roundTrip(of peer: Int) -> TimeInterval {
        let state = tables.peers[peer]
        return state.pointee.downlink?.pointee.roundTrip ?? state.pointee.transport.roundTripTime
            ?? Self.assumedRoundTrip
    }

    /// Used before any measurement: long enough not to double every retransmission, short enough to repair.
    static let assumedRoundTrip = TimeInterval.milliseconds(60)
}
