import Forwarding
import MediaControl
import PeerTransport
import Primitives

// Answers to NACKs: written before the turn's new packets, because somebody waits for them.

extension MediaEngine {
    /// Answers this turn's NACKs; false when the batch is full.
    func writeRepeats(at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        while turn.repeatCursor < repeats.count {
            let request = repeats[turn.repeatCursor]
            guard subscriptions.contains(Int(request.subscription)) else {
                turn.repeatCursor += 1
                continue
            }
            guard let slot = batch.reserve(Self.slotLength) else { return false }
            turn.repeatCursor += 1
            writeRepeat(request, into: slot, at: now, &batch)
        }
        return true
    }

    private func writeRepeat(
        _ request: RepeatRequest, into slot: UnsafeMutableRawBufferPointer, at now: MonotonicTime,
        _ batch: inout OutboundBatch
    ) {
        let state = subscriptions[Int(request.subscription)]
        let peer = peers[state.pointee.peer]
        guard state.pointee.track >= 0, let downlink = peer.pointee.downlink,
            let destination = peer.pointee.media.pointee.destination
        else { return }
        downlink.pointee.control?.pointee.refill(at: now)
        guard downlink.pointee.control?.pointee.isOpenForRepeats ?? true, downlink.pointee.mayRepeat() else {
            // The receiver asks again.
            return counters.drops.count(.retransmissionThrottled)
        }
        let track = tracks[state.pointee.track].pointee.track
        // A repeat on its own stream is a new packet for the receiver's estimator; one on the media stream is not.
        let isOwnStream = state.pointee.subscription.repeatsAsRTX
        let isNumbered = isOwnStream && state.pointee.subscription.usesTransportSequence
        if isNumbered { downlink.pointee.transportSequence &+= 1 }
        let stamp = SendStamp(at: now, transportSequence: downlink.pointee.transportSequence)
        guard
            let length = state.pointee.subscription.writeRepeat(
                request.sequence, of: track, stamp: stamp, at: now, into: slot)
        else { return counters.drops.count(.retransmissionTooOld) }
        let total = peer.pointee.media.pointee.protectRTP(slot, length: length)
        guard total >= 0 else { return counters.drops.count(.protectFailed) }
        batch.commit(length: total, to: destination)
        peer.pointee.packetsSent &+= 1
        peer.pointee.bytesSent &+= UInt64(total)
        downlink.pointee.rtpPacketsSent &+= 1
        downlink.pointee.repeatsSent &+= 1
        counters.packetsSent &+= 1
        counters.bytesSent &+= UInt64(total)
        counters.retransmissionsSent &+= 1
        noteSent(stamp, size: total, isNumbered: isNumbered, downlink, at: now)
        downlink.pointee.control?.pointee.spendOnRepeat(total)
    }
}
