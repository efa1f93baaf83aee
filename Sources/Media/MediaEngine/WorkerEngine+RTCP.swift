import Forwarding
import MediaControl
import PeerTransport
import Primitives
import RTP

// RTCP: what publishers and subscribers send (RFC 3550, 4585, 5104, transport-wide feedback), the sender reports for what the server forwards, and
// the uplinks' feedback.

extension WorkerEngine {
    func receiveRTCP(
        _ datagram: UnsafeMutableRawBufferPointer, _ length: Int, of index: Int, at now: MonotonicTime
    ) {
        tables.peers[index].pointee.media.pointee.capture(
            datagram, length: length, isSent: false, isRTCP: true, at: now)
        let packet = UnsafeRawBufferPointer(rebasing: datagram[..<length])
        if isTransportFeedback(packet), tables.peers[index].pointee.downlink != nil {
            receiveFeedback(packet, of: index, at: now)
            return finishFeedback(of: index, at: now)
        }
        tables.peers[index].pointee.uplink.receiveRTCP(packet.bytes, at: now)
        noteCaptureOffset(of: index)
        if tables.peers[index].pointee.downlink != nil { receiveFeedback(packet, of: index, at: now) }
        touchByMedia(index)
    }

    /// Whether a compound contains only transport-wide feedback, as twenty per second from each subscriber do: nothing in it is for the uplink.
    @inline(__always) private func isTransportFeedback(_ packet: UnsafeRawBufferPointer) -> Bool {
        // draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1: format 15 of type 205.
        packet[0] & 0x1f == 15 && packet[1] == 205
            && 4 &* (Int(packet[2]) << 8 | Int(packet[3])) &+ 4 == packet.count
    }

    /// Schedules the peer for the end of the turn if feedback has caused work, which is rare; otherwise only its downlink's deadline can have changed.
    @inline(__always) private func finishFeedback(of index: Int, at now: MonotonicTime) {
        guard let downlink = tables.peers[index].pointee.downlink else { return }
        let next = downlink.pointee.nextDeadline(at: now)
        guard next > now else { return touchByMedia(index) }
        deadlines.hasten(.peer(index), to: next)
    }

    /// The first sender report fixes the offset of the publisher's clock to the server's, for all its streams.
    private func noteCaptureOffset(of index: Int) {
        let peer = tables.peers[index]
        guard peer.pointee.captureOffset == nil, peer.pointee.trackCount > 0 else { return }
        for case let track? in peer.pointee.uplink.tracks {
            for layer in 0..<track.layerCount {
                guard let clock = track.layer(layer).pointee.clock else { continue }
                peer.pointee.captureOffset = Int64(bitPattern: NTPTime.at(clock.arrival) &- clock.ntp)
                return reportCaptureOffset(of: index)
            }
        }
    }

    private func reportCaptureOffset(of index: Int) {
        let peer = tables.peers[index]
        for case let track? in peer.pointee.uplink.tracks {
            for state in tables.subscriptions(ofTrack: track.tag) {
                state.pointee.subscription.captureOffset = peer.pointee.captureOffset
                // Lip sync needs the first report soon.
                if state.pointee.isReady { scheduleReports(of: state.pointee.peer, at: .zero) }
            }
        }
    }

    // MARK: - Feedback of subscribers

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
        if downlink.pointee.receive(feedback, in: packet.bytes, at: now, &counters) { touch(peer) }
    }

    private func receiverEstimate(_ bitrate: Bitrate, of peer: Int, at now: MonotonicTime) {
        if tables.peers[peer].pointee.downlink?.pointee.receive(estimate: bitrate, at: now) == true { touch(peer) }
    }

    private func receive(_ blocks: ReportBlocks, _ packet: UnsafeRawBufferPointer, of peer: Int, at now: MonotonicTime)
    {
        var packets = 0, lost = 0.0
        for position in 0..<blocks.count {
            let block = blocks.block(at: position, in: packet.bytes)
            guard let index = tables.sendingStreams[StreamKey.of(peer: peer, ssrc: block.ssrc)] else { continue }
            let report = tables.subscriptions[index].pointee.subscription.receivedReport(block, at: now)
            packets += report.packets
            lost += report.lost
            guard let roundTrip = report.roundTrip else { continue }
            tables.peers[peer].pointee.downlink?.pointee.measured(roundTrip, at: now)
            tables.peers[peer].pointee.uplink.setRoundTripTime(roundTrip, at: now)
        }
        guard packets > 0, let downlink = tables.peers[peer].pointee.downlink else { return }
        if downlink.pointee.receiveReports(about: packets, lost: lost, at: now) { touch(peer) }
    }

    /// A NACK is answered at the end of the turn.
    private func receive(_ nack: GenericNACK, _ packet: UnsafeRawBufferPointer, of peer: Int, at now: MonotonicTime) {
        guard let index = tables.sendingStreams[StreamKey.of(peer: peer, ssrc: nack.mediaSSRC)],
            let downlink = tables.peers[peer].pointee.downlink
        else { return counters.drops.count(.rtcpUnexpected) }
        addRepeats(for: nack, packet, of: index, downlink, roundTrip: roundTrip(of: peer, at: now), at: now)
        let state = tables.subscriptions[index]
        if state.pointee.subscription.consumeRepair() { repairByKeyframe(state) }
    }

    private func keyframeWanted(_ ssrc: UInt32, of peer: Int) {
        guard let index = tables.sendingStreams[StreamKey.of(peer: peer, ssrc: ssrc)] else {
            return counters.drops.count(.rtcpUnexpected)
        }
        counters.keyframeRequestsReceived &+= 1
        let state = tables.subscriptions[index]
        state.pointee.subscription.countKeyframeRequest()
        repairByKeyframe(state)
    }

    /// Requests the keyframe that a subscriber needs to show video again.
    private func repairByKeyframe(_ state: UnsafeMutablePointer<SubscriptionState>) {
        guard state.pointee.track >= 0, !state.pointee.subscription.isPaused, state.pointee.subscription.kind == .video
        else { return }
        // It would not be sent, but would cost all others bandwidth: a keyframe is requested when this subscriber's bandwidth is back.
        guard !state.pointee.subscription.isHeldBack else { return }
        if state.pointee.allocation.isAboutToShrink {
            shrinkNow(state.pointee.track)
            allocate(state.pointee.peer, at: clock)
            // Another layer begins with a keyframe anyway; a smaller size inside the same stream does not, nor does a layer that is kept after all.
            guard !state.pointee.subscription.isHeldBack,
                state.pointee.subscription.layer == state.pointee.subscription.wantedLayer
            else { return }
        }
        let layer = state.pointee.subscription.layer ?? state.pointee.subscription.wantedLayer
        requestKeyframe(state.pointee.track, layer: layer)
    }

    /// A subscription that is about to become smaller needs a keyframe: it changes with that keyframe, and so do all others that wait for one.
    private func shrinkNow(_ track: Int) {
        tables.tracks[track].pointee.sizeChanges.open()
        for state in tables.subscriptions(ofTrack: track) where state.pointee.allocation.isAboutToShrink {
            scheduleAllocation(of: state.pointee.peer, at: clock)
        }
    }

    /// The subscriber's round trip: by its reports, otherwise by the server's own checks, otherwise assumed.
    private func roundTrip(of peer: Int, at now: MonotonicTime) -> TimeSpan {
        let state = tables.peers[peer]
        return state.pointee.downlink?.pointee.roundTrip(at: now) ?? state.pointee.transport.roundTripTime
            ?? Self.assumedRoundTrip
    }

    /// Used before any measurement: long enough not to double every retransmission, short enough to repair.
    private static let assumedRoundTrip = TimeSpan.milliseconds(60)

    // MARK: - Reports and feedback that the server sends

    /// Bytes of one RTCP datagram: a size that fits any path, less the protection.
    private static let maximumReport = 1_200
    /// SR 28, SDES with a cname of 255: 8 + 2 + 255 + 3.
    private static let reportRoom = 300
    /// How often a peer's subscriptions are checked for a due report.
    private static let reportTick = TimeSpan.milliseconds(200)
    /// The same while none of them forwards anything: a muted track may resume at any time.
    private static let idleReportTick = TimeSpan.seconds(1)

    /// Schedules a check of a peer's sender reports soon after `moment`.
    func scheduleReports(of peer: Int, at moment: MonotonicTime) {
        if tables.peers[peer].pointee.downlink?.pointee.hastenReports(to: moment) == true { touch(peer) }
    }

    /// Writes a peer's due sender reports; false when the batch is full.
    func writeSenderReports(of peer: Int, at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        let state = tables.peers[peer]
        guard let downlink = state.pointee.downlink, downlink.pointee.reportsAreDue(at: now) else { return true }
        guard let destination = state.pointee.media.pointee.destination else {
            downlink.pointee.reported(next: .distantFuture)
            return true
        }
        var chain = tables.subscriptions(ofPeer: peer)
        var next = chain.next()
        var nextCheck = MonotonicTime.distantFuture
        while next != nil {
            guard let slot = batch.reserve(Self.maximumReport + WebRTCTransport.protectionOverhead) else {
                return false
            }
            var writer = RTCPWriter(UnsafeMutableRawBufferPointer(rebasing: slot[..<Self.maximumReport]))
            while let subscription = next, writer.length + Self.reportRoom <= Self.maximumReport {
                nextCheck = min(nextCheck, appendReport(of: subscription, to: &writer, at: now))
                next = chain.next()
            }
            if writer.length > 0 { sendRTCP(slot, length: writer.length, of: state, to: destination, into: &batch) }
        }
        downlink.pointee.reported(next: nextCheck)
        return true
    }

    /// Appends the report of one subscription if it is due; returns when to check for the next one.
    private func appendReport(
        of state: UnsafeMutablePointer<SubscriptionState>, to writer: inout RTCPWriter, at now: MonotonicTime
    ) -> MonotonicTime {
        guard state.pointee.track >= 0, !state.pointee.subscription.isPaused else { return .distantFuture }
        guard state.pointee.subscription.isReportDue(at: now) else { return now + Self.reportTick }
        let track = tables.tracks[state.pointee.track].pointee.track
        guard let values = state.pointee.subscription.senderReport(of: track, at: now) else {
            return now + (state.pointee.subscription.awaitsReport ? Self.reportTick : Self.idleReportTick)
        }
        let ssrc = state.pointee.subscription.ssrc
        writer.beginSenderReport(
            ssrc: ssrc, ntpTimestamp: values.ntp, rtpTimestamp: values.timestamp, packetCount: values.packets,
            octetCount: values.octets)
        writer.appendSourceDescription(ssrc: ssrc, cname: state.pointee.subscription.cname)
        state.pointee.subscription.sentReport(ntp: values.ntp, at: now)
        return now + Self.reportTick
    }

    /// Writes due feedback of a peer's uplink; false when the batch is full.
    func writeFeedback(of peer: Int, at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        let state = tables.peers[peer]
        let uplink = state.pointee.uplink
        guard state.pointee.transport.isConnected else {
            if state.pointee.profile == .player { advancePlayer(peer, at: now) }
            return true
        }
        // The assumed value would request each lost packet of a distant publisher twice, and then nothing could be measured: it is not known which of the two
        // requests was answered.
        if uplink.nextDeadline <= now, uplink.roundTripTime(at: now) == nil,
            let checked = state.pointee.transport.roundTripTime
        {
            uplink.setRoundTripTime(checked, at: now)
        }
        while uplink.nextDeadline <= now {
            guard let slot = batch.reserve(Self.maximumReport + WebRTCTransport.protectionOverhead) else {
                return false
            }
            let room = UnsafeMutableRawBufferPointer(rebasing: slot[..<Self.maximumReport])
            let length = uplink.advance(to: now, feedback: room)
            guard length > 0 else { break }
            guard let destination = state.pointee.transport.destination(ofReport: length) else {
                counters.drops.count(.withoutConsent)
                continue
            }
            sendRTCP(slot, length: length, of: state, to: destination, into: &batch)
        }
        if uplink.hasEvents { receive(uplink.consumeEvents(), at: now) }
        return true
    }

    private func sendRTCP(
        _ slot: UnsafeMutableRawBufferPointer, length: Int, of peer: UnsafeMutablePointer<PeerState>,
        to destination: SocketAddress, into batch: inout OutboundBatch
    ) {
        peer.pointee.media.pointee.capture(slot, length: length, isSent: true, isRTCP: true, at: clock)
        guard let total = peer.pointee.transport.protectRTCP(slot, length: length) else {
            return counters.drops.count(.protectFailed)
        }
        batch.commit(length: total, to: destination)
        peer.pointee.packetsSent &+= 1
        peer.pointee.bytesSent &+= UInt64(total)
        counters.packetsSent &+= 1
        counters.bytesSent &+= UInt64(total)
    }
}
