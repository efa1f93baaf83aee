import Forwarding
import MediaControl
import PeerTransport
import Primitives

// Packets that wait for their path, and padding that asks how much more it carries.

extension MediaEngine {
    /// Lets a planned packet wait at the pacer; false where no room is left, and only its number goes out.
    func park(
        _ planned: SentPacket, of state: UnsafeMutablePointer<SubscriptionState>,
        _ control: UnsafeMutablePointer<SendControl>, at now: MonotonicTime
    ) -> Bool {
        guard let index = subscriptionIndex[state.pointee.subscription.id.rawValue],
            control.pointee.wait(
                subscription: index, sequence: planned.sequence, size: Self.parkedLength, at: now)
        else {
            counters.drops.count(.outboundFull)
            // Half a picture is none: the next one that is sent is a keyframe.
            state.pointee.subscription.stop(tracks[state.pointee.track].pointee.track)
            return false
        }
        touch(state.pointee.peer)
        return true
    }

    /// What a waiting packet is counted as: an encoder's usual packet with its headers.
    private static let parkedLength = 1_100

    /// Writes packets that waited, as far as the pacer lets them go; false when the batch is full.
    func writePaced(of index: Int, at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        let peer = peers[index]
        guard let downlink = peer.pointee.downlink, let control = downlink.pointee.control, control.pointee.isWaiting,
            let destination = peer.pointee.media.pointee.destination
        else { return true }
        control.pointee.refill(at: now)
        while let slot = batch.reserve(Self.slotLength) {
            guard let waiting = control.pointee.nextWaiting(at: now) else { return true }
            // The subscription is gone.
            guard subscriptions.contains(waiting.subscription) else { continue }
            let state = subscriptions[waiting.subscription]
            guard state.pointee.peer == index else { continue }
            let isNumbered = state.pointee.subscription.usesTransportSequence
            let number = downlink.pointee.transportSequence &+ (isNumbered ? 1 : 0)
            let stamp = SendStamp(at: now, transportSequence: number)
            guard let length = writeWaiting(waiting.sequence, of: state, stamp, at: now, into: slot) else { continue }
            downlink.pointee.transportSequence = number
            let total = peer.pointee.media.pointee.protectRTP(slot, length: length)
            guard total >= 0 else {
                counters.drops.count(.protectFailed)
                continue
            }
            batch.commit(length: total, to: destination)
            noteSent(stamp, size: total, isNumbered: isNumbered, downlink, at: now)
            count(total, of: peer, downlink)
            counters.packetsForwarded &+= 1
        }
        return false
    }

    /// Writes a packet that waited, or padding in its place; nil where there is nothing to send.
    private func writeWaiting(
        _ sequence: UInt32, of state: UnsafeMutablePointer<SubscriptionState>, _ stamp: SendStamp,
        at now: MonotonicTime, into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let track = state.pointee.track >= 0 ? tracks[state.pointee.track].pointee.track : nil
        switch state.pointee.subscription.writeWaiting(sequence, of: track, stamp: stamp, at: now, into: slot) {
        case .written(let length): return length
        case .gone:
            counters.drops.count(.outboundFull)
            return nil
        case .filled(let length, let breaksPicture):
            counters.drops.count(.retransmissionTooOld)
            if breaksPicture, let track { state.pointee.subscription.stop(track) }
            return length
        }
    }

    /// Sends the padding of a probe that is due; false when the batch is full.
    func writeProbe(of index: Int, at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        let peer = peers[index]
        guard let downlink = peer.pointee.downlink, let control = downlink.pointee.control else { return true }
        control.pointee.advance(to: now)
        defer { countProbe(of: control) }
        guard control.pointee.probeBytesDue(at: now) > 0 else { return true }
        guard let destination = peer.pointee.media.pointee.destination, let carrier = probeCarrier(of: downlink) else {
            control.pointee.abandonProbe()
            return true
        }
        let state = subscriptions[carrier]
        let track = tracks[state.pointee.track].pointee.track
        while control.pointee.probeBytesDue(at: now) > 0 {
            guard let slot = batch.reserve(Self.slotLength) else { return false }
            let wanted = min(max(control.pointee.probePacketBytes, Self.leastProbe), Self.mostProbe)
            downlink.pointee.transportSequence &+= 1
            let stamp = SendStamp(at: now, transportSequence: downlink.pointee.transportSequence)
            let length = state.pointee.subscription.writeProbe(
                wanted: wanted, of: track, stamp: stamp, at: now, into: slot)
            let total = length.map { peer.pointee.media.pointee.protectRTP(slot, length: $0) } ?? -1
            guard total >= 0 else {
                control.pointee.abandonProbe()
                return true
            }
            batch.commit(length: total, to: destination)
            noteSent(stamp, size: total, isNumbered: true, downlink, at: now)
            control.pointee.countProbe(total)
            count(total, of: peer, downlink)
        }
        return true
    }

    /// Counts the probe that has ended, if one has.
    func countProbe(of control: UnsafeMutablePointer<SendControl>) {
        if let outcome = control.pointee.takeProbeOutcome() { counters.probes.count(outcome) }
    }

    /// Five packets of this size are a probe of a 250 kbit/s link that delays nothing by more than 50 ms.
    private static let leastProbe = 240
    private static let mostProbe = 1_200

    /// The subscription that padding goes out with: one that has a stream for it, of these one that shows something.
    private func probeCarrier(of downlink: UnsafeMutablePointer<DownlinkState>) -> Int? {
        var best: (index: Int, rank: Int)?
        // What waits has its number already, and padding must not overtake it.
        let isWaiting = downlink.pointee.control?.pointee.isWaiting ?? false
        var next = downlink.pointee.firstSubscription
        while next >= 0 {
            let state = subscriptions[next]
            if state.pointee.track >= 0, state.pointee.subscription.canProbe,
                state.pointee.subscription.usesTransportSequence
            {
                let isBeside = state.pointee.subscription.padsBeside
                let rank = (isBeside ? 2 : 0) + (state.pointee.subscription.layer != nil ? 1 : 0)
                if rank == 3 { return next }
                if rank > best?.rank ?? -1, isBeside || !isWaiting { best = (next, rank) }
            }
            next = state.pointee.nextOfPeer
        }
        return best?.index
    }

    private func count(
        _ total: Int, of peer: UnsafeMutablePointer<PeerState>, _ downlink: UnsafeMutablePointer<DownlinkState>
    ) {
        peer.pointee.packetsSent &+= 1
        peer.pointee.bytesSent &+= UInt64(total)
        downlink.pointee.rtpPacketsSent &+= 1
        counters.packetsSent &+= 1
        counters.bytesSent &+= UInt64(total)
    }
}
