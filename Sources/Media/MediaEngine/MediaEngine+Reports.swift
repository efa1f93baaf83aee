import Forwarding
import MediaControl
import PeerTransport
import Primitives
import RTP

// RTCP that the server sends: sender reports for what it forwards, and the uplinks' feedback.

extension MediaEngine {
    /// Bytes of one RTCP datagram: a size that fits any path, less the protection.
    static let maximumReport = 1_200
    /// SR 28, SDES with a cname of 255: 8 + 2 + 255 + 3.
    private static let reportRoom = 300
    /// How often a peer's subscriptions are checked for a due report.
    private static let reportTick = TimeInterval.milliseconds(200)

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
        var isWaiting = false
        while next != nil {
            guard let slot = batch.reserve(Self.maximumReport + PeerTransport.protectionOverhead) else { return false }
            var writer = RTCPWriter(UnsafeMutableRawBufferPointer(rebasing: slot[..<Self.maximumReport]))
            while let subscription = next, writer.length + Self.reportRoom <= Self.maximumReport {
                isWaiting = appendReport(of: subscription, to: &writer, at: now) || isWaiting
                next = chain.next()
            }
            if writer.length > 0 { sendRTCP(slot, length: writer.length, of: state, to: destination, into: &batch) }
        }
        downlink.pointee.reported(next: isWaiting ? now + Self.reportTick : .distantFuture)
        return true
    }

    /// Appends the report of one subscription if it is due; returns whether it will be due again.
    private func appendReport(
        of state: UnsafeMutablePointer<SubscriptionState>, to writer: inout RTCPWriter, at now: MonotonicTime
    ) -> Bool {
        guard state.pointee.track >= 0 else { return false }
        guard state.pointee.subscription.reports.isDue(at: now) else { return true }
        let track = tables.tracks[state.pointee.track].pointee.track
        guard let values = state.pointee.subscription.senderReport(of: track, at: now) else {
            return state.pointee.subscription.layer != nil
        }
        let ssrc = state.pointee.subscription.ssrc
        writer.beginSenderReport(
            ssrc: ssrc, ntpTimestamp: values.ntp, rtpTimestamp: values.timestamp, packetCount: values.packets,
            octetCount: values.octets)
        writer.appendSourceDescription(ssrc: ssrc, cname: state.pointee.subscription.reports.cname)
        state.pointee.subscription.reports.sent(ntp: values.ntp, at: now)
        return true
    }

    /// Writes due feedback of a peer's uplink; false when the batch is full.
    func writeFeedback(of peer: Int, at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        let state = tables.peers[peer]
        let uplink = state.pointee.uplink
        guard state.pointee.transport.isConnected else { return true }
        while uplink.nextDeadline <= now {
            guard let slot = batch.reserve(Self.maximumReport + PeerTransport.protectionOverhead) else { return false }
            let room = UnsafeMutableRawBufferPointer(rebasing: slot[..<Self.maximumReport])
            let length = uplink.advance(to: now, feedback: room)
            guard length > 0 else { break }
            guard let destination = state.pointee.transport.destination(ofReport: length) else {
                counters.drops.count(.withoutConsent)
                continue
            }
            sendRTCP(slot, length: length, of: state, to: destination, into: &batch)
        }
        if uplink.hasEvents { take(uplink.takeEvents(), at: now) }
        return true
    }

    private func sendRTCP(
        _ slot: UnsafeMutableRawBufferPointer, length: Int, of peer: UnsafeMutablePointer<PeerState>,
        to destination: SocketAddress, into batch: inout OutboundBatch
    ) {
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
